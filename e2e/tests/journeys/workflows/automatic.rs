//! Platforms that are deployed when Git has news.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_argocd::application::REFRESH;
use tiphys_e2e::{Site, World, count, figure, seed, tiphys, until};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::DeployMode;
use tiphys_model::platform::Retry;
use tiphys_sim::Chance;

use super::{CHART_NAMESPACE, install_chart, said};
use crate::audit::Mark;
use crate::deploy::configure;

/// In which the loop looks at least twice.
const TWO_LOOKS: Duration = Duration::from_secs(12);

/// A platform of two apps that is deployed automatically.
pub(super) async fn arrange(world: &Arc<World>, name: &str) -> Site {
    let site = two_apps(world, name).await;
    site.commit("two apps");
    configure(world, &site.platform_file()).await;
    deployed_once(&site, world).await;
    site
}

pub(super) async fn two_apps(world: &Arc<World>, name: &str) -> Site {
    let mut site = Site::new(world, name).await;
    let (database, api) = (format!("{name}-db"), format!("{name}-api"));
    let after = Duration::from_secs(2);
    site.platform.apps = vec![
        AppSource::new(&database, Behaviour::Healthy { after }),
        AppSource::new(&api, Behaviour::ConfigOnly).depends_on(&[&database]),
    ];
    site.platform.carries_its_file = true;
    site.platform.deploy = DeployMode::Automatic;
    site
}

/// The first deployment is a person's.
pub(super) async fn deployed_once(site: &Site, world: &World) {
    install_chart().await;
    until_loop_says(site, world, "never-deployed", None).await;
    let (code, stdout, stderr) = said(world, &["deploy", "--platform", &site.platform.name]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(workflows(site).await.is_empty(), "nobody else has deployed it");
}

pub(crate) async fn what_git_has(world: Arc<World>) {
    let mut site = arrange(&world, "wf-auto").await;
    let name = site.platform.name.clone();

    // News are deployed, in order and once.
    let before = Mark::now(&world);
    let began = Instant::now();
    let commit = everything_changes(&mut site, "news").await;
    until_loop_says(&site, &world, "up-to-date", Some(&commit)).await;
    figure(&format!(
        "deployed {:.1} s after Argo CD was told of a commit",
        began.elapsed().as_secs_f64()
    ));
    let writes = before.writes(&site);
    writes.check_order(&site, &commit);
    for (app, operations) in writes.operations() {
        assert_eq!(operations.len(), 1, "{app}: {operations:?}");
    }
    assert_eq!(workflows(&site).await.len(), 1);
    let told = format!("{commit} is deployed; apps synced: 2");
    assert!(told_on_the_root_app(&site).await.contains(&told), "{told}");

    // Whoever pauses stops that, and everybody can see it.
    let (code, _, stderr) = said(&world, &["pause", &name, "--reason", "audit"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let before = Mark::now(&world);
    let commit = everything_changes(&mut site, "while it is paused").await;
    until_loop_says(&site, &world, "paused", Some(&commit)).await;
    tokio::time::sleep(TWO_LOOKS).await;
    assert!(before.writes(&site).operations().is_empty(), "nothing is synced");
    let file = site.platform_file();
    let (_, status, stderr) = said(&world, &["status", "-f", file.path()]).await;
    assert!(status.contains("automatic deployments: paused by "), "{status}{stderr}");
    assert!(status.contains(": audit\n"), "{status}");
    let (code, _, stderr) = said(&world, &["resume", &name]).await;
    assert_eq!(code, Some(0), "{stderr}");
    until_loop_says(&site, &world, "up-to-date", Some(&commit)).await;

    // Of many commits, the last one counts.
    let known = workflows(&site).await;
    let mut commit = String::new();
    for number in 0..10 {
        commit = everything_changes(&mut site, &format!("commit {number} of ten")).await;
    }
    until_loop_says(&site, &world, "up-to-date", Some(&commit)).await;
    let runs = workflows(&site).await.difference(&known).count();
    figure(&format!("ten commits: {runs} runs"));
    assert!((1..=3).contains(&runs), "{runs} runs");

    nothing_more_is_allowed(&world, &name).await;

    // What somebody takes down stays down.
    let (code, stdout, stderr) = said(&world, &["teardown", "-f", file.path(), "--yes"]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let known = workflows(&site).await;
    tokio::time::sleep(TWO_LOOKS).await;
    assert_eq!(workflows(&site).await, known);
    let (code, _, stderr) = said(&world, &["pause", &name]).await;
    assert_eq!(code, Some(5), "{stderr}");
    site.close().await;
}

/// The loop dies at a random moment after a commit: the commit is deployed all the same, and once.
pub(crate) async fn whatever_becomes_of_the_loop(world: Arc<World>) {
    let mut site = arrange(&world, "wf-loop").await;
    let mut chance = Chance::new(seed());
    let mut worst = Duration::ZERO;
    for kill in 0..count("TIPHYS_E2E_KILLS", 10_u32) {
        let before = Mark::now(&world);
        let commit = everything_changes(&mut site, &format!("before kill {kill}")).await;
        let began = Instant::now();
        tokio::time::sleep(Duration::from_millis(chance.between(0, 12_000))).await;
        kill_the_loop(&site).await;
        while loop_says(&site, &world).await != ("up-to-date".to_owned(), commit.clone()) {
            assert!(began.elapsed() < Duration::from_secs(240), "kill {kill}: not deployed");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        worst = worst.max(began.elapsed());
        for (app, operations) in before.writes(&site).operations() {
            assert_eq!(operations.len(), 1, "kill {kill}: {app} {operations:?}");
        }
    }
    figure(&format!("the loop was killed each time: at worst {} s to deployed", worst.as_secs()));
    take_down(&site).await;
    site.close().await;
}

/// The loop looks after a platform until it is taken down.
pub(super) async fn take_down(site: &Site) {
    let file = site.platform_file();
    let (code, stdout, stderr) = said(&site.world, &["teardown", "-f", file.path(), "--yes"]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
}

/// As `kill -9` does, for who is left without a last word.
async fn kill_the_loop(site: &Site) {
    let pods = site.objects("v1", "Pod", Some(CHART_NAMESPACE));
    let of_loop = ListParams::default().labels("app.kubernetes.io/name=tiphys-serve");
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete_collection(&now, &of_loop).await.expect("the pods");
}

/// A commit that cannot be deployed is tried three times, and the next one at once.
pub(crate) async fn a_commit_that_fails(world: Arc<World>) {
    let mut site = arrange(&world, "wf-bad").await;
    let api = format!("{}-api", site.platform.name);
    let app = site.platform.app_mut(&api).expect("an app");
    app.behaviour = Behaviour::FailsToSync;
    app.retry = Some(Retry { limit: 0, ..Retry::default() });
    let bad = everything_changes(&mut site, "an app that cannot be applied").await;
    let began = Instant::now();
    while loop_says(&site, &world).await != ("gave-up".to_owned(), bad.clone()) {
        assert!(began.elapsed() < Duration::from_secs(900), "it does not give up");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(workflows(&site).await.len(), 3);
    figure(&format!("gave up after {} s", began.elapsed().as_secs()));
    site.platform.app_mut(&api).expect("an app").behaviour = Behaviour::ConfigOnly;
    let good = everything_changes(&mut site, "mended").await;
    until_loop_says(&site, &world, "up-to-date", Some(&good)).await;
    assert_eq!(workflows(&site).await.len(), 4);
    take_down(&site).await;
    site.close().await;
}

/// Commits a change of every app.
pub(super) fn commit_everything(site: &mut Site, message: &str) -> String {
    for app in &mut site.platform.apps {
        app.generation += 1;
    }
    site.commit(message).to_string()
}

/// Likewise, and tells Argo CD as a webhook would.
pub(super) async fn everything_changes(site: &mut Site, message: &str) -> String {
    let commit = commit_everything(site, message);
    refresh_root(site).await;
    commit
}

pub(super) async fn refresh_root(site: &Site) {
    let root = format!("{}-root", site.platform.name);
    let patch = json!({ "metadata": { "annotations": { REFRESH: "normal" } } });
    let (applications, patch) = (site.applications(), Patch::Merge(patch));
    let patched = applications.patch(&root, &PatchParams::default(), &patch).await;
    patched.expect("the root app");
}

/// Waits until the loop has found this state, and at this revision, if one is given.
pub(super) async fn until_loop_says(
    site: &Site,
    world: &World,
    state: &str,
    revision: Option<&str>,
) {
    until(&format!("the loop says {state}"), async || {
        let (found, at) = loop_says(site, world).await;
        found == state && revision.is_none_or(|revision| at == revision)
    })
    .await;
}

/// What `status` shows of the loop: a state, and the revision that it is about.
pub(super) async fn loop_says(site: &Site, world: &World) -> (String, String) {
    let file = site.platform_file();
    let args = ["status", "-f", file.path(), "-o", "json"];
    let (_, stdout, _) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    let status: Value = serde_json::from_str(&stdout).unwrap_or_default();
    let text = |field: &str| {
        let next = &status["deployLoop"]["seen"]["next"];
        next[field].as_str().unwrap_or_default().to_owned()
    };
    (text("state"), text("revision"))
}

/// The notes of the Events on the root app.
async fn told_on_the_root_app(site: &Site) -> BTreeSet<String> {
    let events = site.objects("events.k8s.io/v1", "Event", Some("argocd"));
    let listed = events.list(&ListParams::default()).await.expect("a list");
    let root = format!("{}-root", site.platform.name);
    let of_root = listed.into_iter().filter(|event| event.data["regarding"]["name"] == root);
    of_root.filter_map(|event| event.data["note"].as_str().map(str::to_owned)).collect()
}

/// The workflows that deploy the platform.
pub(super) async fn workflows(site: &Site) -> BTreeSet<String> {
    let workflows = site.objects("argoproj.io/v1alpha1", "Workflow", Some("tiphys"));
    let labels = format!("tiphys.dev/platform={}", site.platform.name);
    let listed = workflows.list(&ListParams::default().labels(&labels)).await.expect("a list");
    listed.into_iter().filter_map(|workflow| workflow.metadata.name).collect()
}

/// The loop's account can ask for a refresh of the root app and change nothing else of it, and can
/// create no workflow but those that deploy.
async fn nothing_more_is_allowed(world: &World, name: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let groups = ["system:serviceaccounts", "system:authenticated"];
    tiphys::act_as(
        &world.kubeconfig,
        "system:serviceaccount:tiphys-system:tiphys-serve",
        &groups,
        &kubeconfig,
    );
    let kubectl = |args: &[&str]| {
        let args: Vec<String> = args.iter().map(|&word| word.to_owned()).collect();
        let kubeconfig = kubeconfig.clone();
        tokio::task::spawn_blocking(move || {
            let mut kubectl = super::kubectl();
            kubectl.arg("--kubeconfig").arg(kubeconfig).args(args).output().expect("kubectl")
        })
    };
    let root = format!("application/{name}-root");
    let annotate = format!("{REFRESH}=normal");
    let refreshed = kubectl(&["-n", "argocd", "annotate", "--overwrite", &root, &annotate])
        .await
        .expect("it ends");
    assert!(refreshed.status.success(), "{}", String::from_utf8_lossy(&refreshed.stderr));
    let patch = r#"{"spec":{"source":{"targetRevision":"other"}}}"#;
    let refused = kubectl(&["-n", "argocd", "patch", "--type=merge", &root, "-p", patch])
        .await
        .expect("it ends");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(stderr.contains("may only request a refresh"), "{stderr}");
    let read = kubectl(&["-n", "argocd", "get", "secrets"]).await.expect("it ends");
    assert!(!read.status.success(), "it reads no Secrets");

    // What it would create is judged without being created.
    let deploys = json!({ "name": "tiphys-deploy", "clusterScope": true });
    let validates = json!({ "name": "tiphys-validate", "clusterScope": true });
    let removes = json!({ "name": "tiphys-teardown", "clusterScope": true });
    let own = workflow(&deploys, &[("platform", name), ("unattended", "true")]);
    let mut inline = own.clone();
    inline["spec"]["templates"] = json!([{ "name": "main", "container": { "image": "other" } }]);
    let mut account = own.clone();
    account["spec"]["serviceAccountName"] = "other".into();
    let unattended = ("unattended", "true");
    let cases = [
        (own, true),
        (inline, false),
        (account, false),
        (workflow(&deploys, &[("platform", name)]), false),
        (workflow(&json!({ "name": "tiphys-deploy" }), &[unattended]), false),
        (workflow(&removes, &[("confirm", name), unattended]), false),
        (workflow(&validates, &[("platform", name)]), true),
    ];
    for (workflow, is_allowed) in cases {
        let path = folder.path().join("workflow.json");
        std::fs::write(&path, workflow.to_string()).expect("the file can be written");
        let path = path.to_str().expect("a path");
        let tried = kubectl(&["-n", "tiphys", "create", "--dry-run=server", "-f", path]);
        let tried = tried.await.expect("it ends");
        let stderr = String::from_utf8_lossy(&tried.stderr);
        assert_eq!(tried.status.success(), is_allowed, "{workflow}: {stderr}");
        assert!(is_allowed || stderr.contains("the deploy loop may only create"), "{stderr}");
    }
}

fn workflow(template: &Value, parameters: &[(&str, &str)]) -> Value {
    let parameters: Vec<Value> =
        parameters.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": { "name": "judged" },
        "spec": { "workflowTemplateRef": template, "arguments": { "parameters": parameters } },
    })
}
