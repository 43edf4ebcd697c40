//! Runs on Argo Workflows, from the templates of the chart.

pub(crate) mod automatic;
pub(crate) mod changes;
pub(crate) mod nodes;
pub(crate) mod notifications;
pub(crate) mod schedules;
pub(crate) mod statuses;
pub(crate) mod survival;
pub(crate) mod webhooks;

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World, figure, image, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_lab::{Cluster, Home};
use tiphys_model::platform::{Retry, WorkflowMode};
use tokio::sync::OnceCell;

use crate::audit::Mark;
use crate::deploy::configure;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/chart");
const CHART_NAMESPACE: &str = "tiphys-system";
const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// A platform of two apps that Git has, and the chart.
async fn arrange(world: &Arc<World>, name: &str, after: Duration) -> Site {
    let mut site = Site::new(world, name).await;
    let (database, api) = (format!("{name}-db"), format!("{name}-api"));
    site.platform.apps = vec![
        AppSource::new(&database, Behaviour::Healthy { after }),
        AppSource::new(&api, Behaviour::ConfigOnly).depends_on(&[&database]),
    ];
    site.platform.carries_its_file = true;
    site.commit("two apps");
    configure(world, &site.platform_file()).await;
    install_chart().await;
    site
}

/// Once for all journeys: Helm refuses to do two things at a time.
pub(crate) async fn install_chart() {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    INSTALLED.get_or_init(upgrade_chart).await;
}

/// As its users do, with the program of this build.
async fn upgrade_chart() {
    let (repository, tag) = image::executor().await.rsplit_once(':').expect("a tag");
    let values = [
        format!("image.repository={repository}"),
        format!("image.tag={tag}"),
        "image.pullPolicy=Never".to_owned(),
    ];
    let values = values.join(",");
    let args = ["upgrade", "--install", "--create-namespace", "tiphys", CHART, "--set", &values];
    helm(&args).await;
}

async fn helm(args: &[&str]) {
    let output = run_in(CHART_NAMESPACE, helm_command(), args).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn helm_command() -> Command {
    Cluster::new(Home::from_environment(), |_| {}).helm().expect("the lab has helm")
}

fn kubectl() -> Command {
    Cluster::new(Home::from_environment(), |_| {}).kubectl().expect("the lab has kubectl")
}

async fn argo(args: &[&str]) {
    let argo = Cluster::new(Home::from_environment(), |_| {}).argo();
    let output = run_in("tiphys", argo.expect("the lab has argo"), args).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn run_in(namespace: &str, mut command: Command, args: &[&str]) -> Output {
    command.args(["-n", namespace]).args(args);
    let run = move || command.output().expect("it can be started");
    tokio::task::spawn_blocking(run).await.expect("nobody cancels it")
}

/// Submits a workflow as `argo submit --from` does; it once it has ended.
async fn submit(site: &Site, action: &str, namespace: &str, parameters: &[(&str, &str)]) -> Value {
    let name = format!("{}-{action}", site.platform.name);
    submitted(site, &name, action, namespace, parameters).await
}

async fn submitted(
    site: &Site,
    name: &str,
    action: &str,
    namespace: &str,
    parameters: &[(&str, &str)],
) -> Value {
    let workflows = site.objects("argoproj.io/v1alpha1", "Workflow", Some(namespace));
    // One of an earlier test would be taken for it.
    workflows.delete(name, &DeleteParams::background()).await.ok();
    tiphys_e2e::until("no workflow has this name", async || {
        workflows.get_opt(name).await.expect("an answer").is_none()
    })
    .await;
    let parameters: Vec<Value> =
        parameters.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    site.apply(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "workflowTemplateRef": { "name": format!("tiphys-{action}"), "clusterScope": true },
            "arguments": { "parameters": parameters },
        },
    }))
    .await;
    ended(site, name, namespace).await
}

/// The status of a workflow that has ended.
async fn ended(site: &Site, name: &str, namespace: &str) -> Value {
    let workflows = site.objects("argoproj.io/v1alpha1", "Workflow", Some(namespace));
    let began = Instant::now();
    loop {
        // The API server may be away for a moment.
        let found = match workflows.get(name).await {
            Ok(found) => found,
            Err(error) => {
                assert!(began.elapsed() < WAIT_LIMIT, "{name} cannot be read: {error}");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let phase = found.data["status"]["phase"].as_str().unwrap_or_default().to_owned();
        if ["Succeeded", "Failed", "Error"].contains(&&*phase) {
            return found.data["status"].clone();
        }
        assert!(began.elapsed() < WAIT_LIMIT, "{name} does not end: {:#}", found.data["status"]);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

pub(crate) async fn in_one_container(world: Arc<World>) {
    let site = arrange(&world, "wf-one", Duration::from_secs(8)).await;
    let name = site.platform.name.as_str();

    // Whoever submitted it may go away: the run goes on, and all of it can be seen.
    let began = Instant::now();
    let args = ["deploy", "--engine", "workflows", "--platform", name, "-o", "jsonl"];
    let workflow = submitted_and_killed(&world, &args).await;
    let (code, stdout, stderr) = said(&world, &["attach", &workflow, "-o", "jsonl"]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    figure(&format!("deployment by a workflow: {} s", began.elapsed().as_secs()));
    let events: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no event is missing");
    assert_eq!(events.last().expect("events")["verdict"], "succeeded", "{stdout}");
    let run = events[0]["run"].as_str().expect("a run").to_owned();

    // Argo Workflows knows how far it was.
    let workflows = site.objects("argoproj.io/v1alpha1", "Workflow", Some("tiphys"));
    let found = workflows.get(&workflow).await.expect("the workflow");
    assert_eq!(found.data["status"]["progress"], "2/2", "{:#}", found.data["status"]);

    // It is recorded, and can be seen again: while its pod is there, and without.
    let (code, stdout, stderr) = said(&world, &["runs", "--platform", name, "-o", "json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let runs: Vec<Value> = serde_json::from_str(&stdout).expect("a list");
    assert_eq!((&runs[0]["run"], &runs[0]["state"]), (&json!(run), &json!("succeeded")));
    let (code, by_workflow, _) = said(&world, &["attach", &workflow, "-o", "jsonl"]).await;
    assert_eq!(code, Some(0), "{by_workflow}");
    workflows.delete(&workflow, &DeleteParams::background()).await.expect("deleted");
    tiphys_e2e::until("the workflow is gone", async || {
        workflows.get_opt(&workflow).await.expect("an answer").is_none()
    })
    .await;
    let (code, by_record, _) = said(&world, &["attach", &run, "-o", "jsonl"]).await;
    assert_eq!(code, Some(0), "{by_record}");
    assert_eq!(by_workflow, by_record, "what was recorded is what was said");

    let valid = submit(&site, "validate", "tiphys", &[("platform", name)]).await;
    assert_eq!(valid["phase"], "Succeeded", "{valid:#}");
    // The account for teardowns is in the other namespace.
    let parameters = [("platform", name), ("confirm", name)];
    let misplaced = submit(&site, "teardown", "tiphys", &parameters).await;
    assert_ne!(misplaced["phase"], "Succeeded", "{misplaced:#}");
    site.until_healthy(&format!("{name}-db")).await;
    let gone = submit(&site, "teardown", "tiphys-teardown", &parameters).await;
    assert_eq!(gone["phase"], "Succeeded", "{gone:#}");
    site.close().await;
}

/// Starts the program, and kills it as soon as it has submitted a workflow; which one.
async fn submitted_and_killed(world: &World, args: &[&str]) -> String {
    let mut command = tiphys::command(args, &world.kubeconfig);
    let submit = move || {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let name = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let name = line.split("submitted as workflow ").nth(1)?;
            Some(name.split_whitespace().next()?.to_owned())
        });
        child.kill()?;
        child.wait()?;
        std::io::Result::Ok(name.expect("a workflow is submitted"))
    };
    let submitted = tokio::task::spawn_blocking(submit).await.expect("nobody cancels it");
    submitted.expect("the program can be started")
}

/// It lints, takes no nonsense, is upgraded, and goes without a trace.
pub(crate) async fn chart(world: Arc<World>) {
    let mut site = Site::new(&world, "wf-chart").await;
    site.platform.apps = vec![AppSource::new("wf-chart-app", Behaviour::ConfigOnly)];
    configure(&world, &site.platform_file()).await;
    let templates = site.objects("argoproj.io/v1alpha1", "ClusterWorkflowTemplate", None);
    let names = async || {
        let listed = templates.list(&ListParams::default()).await.expect("a list");
        listed.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    upgrade_chart().await;
    assert_eq!(names().await, ["tiphys-deploy", "tiphys-teardown", "tiphys-validate"]);
    helm(&["lint", "--strict", CHART, "--set", "image.repository=a/b"]).await;
    for wrong in ["image.repository=", "image.digest=sha256:1", "imge.tag=1"] {
        let args = ["template", "x", CHART, "--set", "image.repository=a/b", "--set", wrong];
        let output = run_in(CHART_NAMESPACE, helm_command(), &args).await;
        assert!(!output.status.success(), "{wrong}");
    }
    let digest = format!("image.digest=sha256:{}", "0".repeat(64));
    helm(&["upgrade", "tiphys", CHART, "--reuse-values", "--set", &digest]).await;
    let deploy = templates.get("tiphys-deploy").await.expect("the template");
    let image = &deploy.data["spec"]["templates"][0]["container"]["image"];
    assert!(image.as_str().is_some_and(|image| image.contains("@sha256:0")), "{image}");
    helm(&["uninstall", "tiphys", "--wait"]).await;
    assert_eq!(names().await, Vec::<String>::new());
    // Others come after this.
    upgrade_chart().await;
    site.close().await;
}

/// How long a run takes, compared with the longest chain of what its steps took.
pub(crate) async fn as_quick_as_local(world: Arc<World>) {
    let mut site = Site::reference(&world, "wf-quick", Duration::from_secs(2)).await;
    site.platform.carries_its_file = true;
    site.commit("the reference platform");
    configure(&world, &site.platform_file()).await;
    install_chart().await;
    let name = site.platform.name.clone();
    let mut ratios = Vec::new();
    // The longest that they may take, by the critical path.
    let engines = [
        ("local", WorkflowMode::Single, 1.05),
        ("workflows", WorkflowMode::Single, 1.05),
        ("workflows", WorkflowMode::Nodes, 1.5),
    ];
    for (generation, (engine, mode, limit)) in engines.into_iter().cycle().take(9).enumerate() {
        for app in &mut site.platform.apps {
            app.generation = u32::try_from(generation).expect("a few") + 2;
        }
        site.platform.workflows = mode;
        site.commit("everything changed");
        // What nodes need, and no more where there are none.
        configure(&world, &site.platform_file()).await;
        let args = ["deploy", "--engine", engine, "--platform", &name, "-o", "jsonl"];
        let (code, stdout, stderr) = said(&world, &args).await;
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        let last: Value =
            serde_json::from_str(stdout.lines().last().expect("events")).expect("JSON");
        let millis = |field: &str| last[field].as_f64().expect("a number");
        let ratio = millis("makespanMs") / millis("criticalPathMs");
        ratios.push(format!("{engine} {} {ratio:.3}", mode.as_str()));
        assert!(ratio <= limit, "{engine} {mode:?}: {ratios:?} {last:#}");
    }
    figure(&format!("makespan by critical path: {}", ratios.join(", ")));
    site.close().await;
}

/// Who retries an old workflow gets what Git has now, and nothing if that is there.
pub(crate) async fn retried(world: Arc<World>) {
    let mut site = arrange(&world, "wf-old", Duration::from_secs(1)).await;
    let name = site.platform.name.clone();
    let api = format!("{name}-api");
    let app = site.platform.app_mut(&api).expect("an app");
    app.behaviour = Behaviour::FailsToSync;
    app.retry = Some(Retry { limit: 0, ..Retry::default() });
    site.commit("an app that cannot be applied");
    let platform = [("platform", &*name)];
    let failed = submit(&site, "deploy", "tiphys", &platform).await;
    assert_eq!(failed["phase"], "Failed", "{failed:#}");
    site.platform.app_mut(&api).expect("an app").behaviour = Behaviour::ConfigOnly;
    site.commit("mended");
    let (code, stdout, stderr) = said(&world, &["deploy", "--platform", &name]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let before = Mark::now(&world);
    argo(&["retry", &format!("{name}-deploy")]).await;
    let retried = ended(&site, &format!("{name}-deploy"), "tiphys").await;
    assert_eq!(retried["phase"], "Succeeded", "{retried:#}");
    let synced = before.writes(&site).operations();
    assert!(synced.is_empty(), "nothing is synced: {synced:?}");
    site.close().await;
}

/// Who cancels a run stops it, and the next one goes on where it was.
pub(crate) async fn cancelled(world: Arc<World>) {
    let site = arrange(&world, "wf-stop", Duration::from_secs(15)).await;
    let name = site.platform.name.as_str();
    let deploy = ["deploy", "--engine", "workflows", "--platform", name];
    let workflow = submitted_and_killed(&world, &deploy).await;
    site.until(&format!("{name}-db"), "synced", |app| {
        app.status.operation_state.as_ref().is_some_and(|state| state.phase == "Succeeded")
    })
    .await;
    let (code, _, stderr) = said(&world, &["cancel", &workflow]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let (code, stdout, stderr) = said(&world, &["attach", &workflow]).await;
    assert_eq!(code, Some(143), "{stdout}{stderr}");
    assert!(!world.held(&site.platform.project).await.is_empty(), "what is not done stays held");
    let (code, _, stderr) = said(&world, &["cancel", &workflow]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("already ended"), "{stderr}");
    let (code, stdout, stderr) = said(&world, &deploy).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(world.held(&site.platform.project).await.is_empty(), "{stdout}");
    let (code, _, stderr) = said(&world, &["attach", "nothing-1"]).await;
    assert_eq!(code, Some(5), "{stderr}");
    site.close().await;
}

async fn said(world: &World, args: &[&str]) -> (Option<i32>, String, String) {
    tiphys::said(&tiphys::run(args, &world.kubeconfig).await)
}
