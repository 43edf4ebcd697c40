//! Platforms in the shapes that people have: stacks of automated Applications at `HEAD`, in projects
//! that others use too, and Applications that nobody generates.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_argocd::Application;
use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour, Files};

use crate::audit::Mark;
use crate::deploy::{configure, deploy, deploys_what_was_stored};
use crate::teardown::teardown;

/// One after the other: a project has one hold.
pub(crate) async fn in_default(world: Arc<World>) {
    flat_with_waves(&world).await;
    for (name, in_default) in [("stacked", true), ("rooted", false)] {
        automated_stacks(&world, name, in_default).await;
    }
}

/// A folder of Applications at `HEAD` with sync waves, which become dependencies.
async fn flat_with_waves(world: &Arc<World>) {
    let mut site = Site::new(world, "flat").await;
    site.platform.apps = vec![
        in_stack("all", "flat-db", &[]),
        in_stack("all", "flat-api", &["flat-db"]),
        in_stack("all", "flat-cache", &["flat-db"]),
        in_stack("all", "flat-page", &["flat-api", "flat-cache"]),
    ];
    let waves = [("flat-db", -1), ("flat-api", 0), ("flat-cache", 0), ("flat-page", 5)];
    let mut files = site.platform.files();
    files.retain(|path, _| !path.starts_with("root/"));
    let folder = tempfile::tempdir().expect("a folder");
    for (app, wave) in waves {
        let path = format!("apps/{app}");
        let plain = application(app, "default", &site.platform.repo_url, &path, app, true);
        let wave =
            format!("metadata: {{ annotations: {{ argocd.argoproj.io/sync-wave: '{wave}' }},");
        let text = plain.replace("metadata: {", &wave);
        std::fs::write(folder.path().join(format!("{app}.yaml")), &text).expect("a file");
        files.insert(format!("root/{app}.yaml"), text);
    }
    site.repository.commit(&files, "waves").expect("a commit");
    let path = folder.path().display().to_string();
    let args = ["init", "--name", "flat", "--from-applications", &path, "--edges-from-waves"];
    let (code, printed, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    assert_eq!(code, Some(0), "{stderr}");
    let file = site.platform_file_with(|_| {
        let head = format!(
            "spec:\n  source: {{ repoURL: {}, path: root, directory: {{}} }}\n  argocd:\n    \
             rootProject: flat-root\n",
            site.platform.repo_url
        );
        let text = printed.replacen("spec:\n  argocd:\n", &head, 1);
        assert_ne!(text, printed, "{printed}");
        text
    });
    configure(world, &file).await;

    let before = Mark::now(world);
    let args = ["deploy", "-f", file.path(), "--allow-uncommitted"];
    let (code, _, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    assert_eq!(code, Some(3), "{stderr}");
    for words in ["wave -1: flat-db", "wave 0: flat-api, flat-cache", "--edges-from-waves"] {
        assert!(stderr.contains(words), "no `{words}` in:\n{stderr}");
    }
    assert!(before.writes(&site).operations().is_empty(), "nothing was synced");

    for (path, text) in &mut files {
        if path.starts_with("root/") {
            let begins = text.find("annotations: {").expect("an annotation");
            let ends = text[begins..].find("},").expect("its end") + begins + 2;
            text.replace_range(begins..ends, "");
        }
    }
    let revision = site.repository.commit(&files, "no waves").expect("a commit");
    let before = Mark::now(world);
    let events = deploy(world, &file, 0).await;
    assert_eq!(applied(&events), 4, "{events:#?}");
    before.writes(&site).check_order(&site, revision.as_str());
    teardown(world, &file, &[], 0).await;
    site.close().await;
}

/// A folder of manifests as root app, stacks that Argo CD syncs by itself, and their apps, all of
/// them at `HEAD`. The apps are in `default`; so are the stacks, or in the root app's project.
async fn automated_stacks(world: &Arc<World>, name: &'static str, in_default: bool) {
    let mut site = Site::new(world, name).await;
    let named = |app: &str| format!("{name}-{app}");
    site.platform.apps = vec![
        in_stack("data", &named("db"), &[]),
        in_stack("data", &named("cache"), &[&named("db")]),
        in_stack("web", &named("api"), &[&named("cache")]),
        in_stack("web", &named("page"), &[&named("api"), &named("db")]),
    ];
    let others = Others::in_project(&site, "default", &named("others")).await;
    let root_project = site.platform.root_project.clone();
    let project = if in_default { "default" } else { &root_project };
    let file = site.platform_file_with(|text| {
        let text = text.replace("    path: root\n", "    path: root\n    directory: {}\n");
        let own = format!("    project: {name}\n");
        assert!(text.contains(&own), "{text}");
        text.replace(&own, "    projects: [default]\n")
    });
    for generation in 1..=2 {
        for app in &mut site.platform.apps {
            app.generation = generation;
        }
        let files = stacks(&site, project);
        let revision = site.repository.commit(&files, "stacks").expect("a commit");
        if generation == 1 {
            configure(world, &file).await;
        }
        let before = Mark::now(world);
        let events = deploy(world, &file, 0).await;
        assert_eq!(applied(&events), 4, "{name} {generation}: {events:#?}");
        before.writes(&site).check_order(&site, revision.as_str());
        for project in ["default", &root_project] {
            assert!(world.held(project).await.is_empty(), "all was handed off in {project}");
        }
    }
    let before = Mark::now(world);
    let events = deploy(world, &file, 0).await;
    assert_eq!(applied(&events), 0, "{events:#?}");
    let told = teardown(world, &file, &[], 0).await;
    assert_eq!(told.events.last().expect("events")["counts"]["removed"], 4, "{}", told.stderr);
    before.writes(&site).check_reverse_order(&site);
    let there = site.applications().list(&ListParams::default()).await.expect("a list");
    let there = there.items.iter().map(Application::name);
    let left: Vec<&str> = there.filter(|app| app.starts_with(&named(""))).collect();
    assert_eq!(left, [&*named("others")], "generators and apps have gone, and nothing else");
    others.are_as_before(&site).await;
    site.close().await;
}

/// Nobody but people creates the Applications, in a project that they have made.
pub(crate) async fn made_by_hand(world: Arc<World>) {
    let mut site = Site::new(&world, "byhand").await;
    site.platform.apps = vec![
        in_stack("all", "byhand-db", &[]),
        in_stack("all", "byhand-api", &["byhand-db"]),
        in_stack("all", "byhand-page", &["byhand-api"]),
    ];
    let spec = json!({
        "description": "ours", "sourceRepos": ["*"],
        "destinations": [{ "server": "*", "namespace": "*" }],
        "clusterResourceWhitelist": [{ "group": "*", "kind": "*" }],
        "roles": [{ "name": "reader", "policies": ["p, proj:byhand:reader, applications, get, byhand/*, allow"] }],
    });
    let metadata = json!({ "name": "byhand", "namespace": "argocd" });
    site.apply(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": metadata, "spec": spec,
    }))
    .await;
    let others = Others::in_project(&site, "byhand", "byhand-others").await;
    site.commit("three apps");
    let apps = ["byhand-db", "byhand-api", "byhand-page"];
    for app in apps {
        site.create_application(app, "HEAD", true).await;
    }
    for app in apps {
        site.until_healthy(app).await;
    }
    let file = site.platform_file_with(|text| {
        let source = text.find("  source:\n").expect("a source");
        let end = text.find("  argocd:\n").expect("settings");
        format!("{}{}", &text[..source], &text[end..])
    });
    configure(&world, &file).await;
    let deployed = deploy(&world, &file, 0).await;
    assert_eq!(applied(&deployed), 0, "{deployed:#?}");
    deploys_what_was_stored(&world, "byhand").await;

    for app in &mut site.platform.apps {
        app.generation = 2;
    }
    let revision = site.commit("three apps, changed");
    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    assert_eq!(applied(&events), 3, "{events:#?}");
    before.writes(&site).check_order(&site, revision.as_str());
    let args = ["status", "-f", file.path(), "-o", "json"];
    let status = tiphys::run(&args, &world.kubeconfig).await.stdout;
    let status: Value = serde_json::from_slice(&status).expect("a status");
    assert_eq!(status["phase"], 3, "{status:#}");
    teardown(&world, &file, &[], 0).await;
    for app in apps {
        site.until_gone(app).await;
    }
    others.are_as_before(&site).await;
    site.close().await;
}

fn in_stack(stack: &str, name: &str, depends_on: &[&str]) -> AppSource {
    let behaviour = Behaviour::Healthy { after: Duration::from_secs(1) };
    let app = AppSource::new(name, behaviour).depends_on(depends_on);
    AppSource { stack: stack.to_owned(), ..app }
}

fn applied(events: &[Value]) -> u64 {
    events.last().and_then(|last| last["counts"]["applied"].as_u64()).expect("a count")
}

/// A folder of stacks, a folder of apps for each, and what the apps are made of.
fn stacks(site: &Site, project: &str) -> Files {
    let mut files = site.platform.files();
    files.retain(|path, _| !path.starts_with("root/"));
    let (name, url) = (&site.platform.name, &site.platform.repo_url);
    let names: BTreeSet<&str> = site.platform.apps.iter().map(|app| app.stack.as_str()).collect();
    for stack in names {
        let path = format!("stacks/{stack}");
        let text =
            application(&format!("{name}-stack-{stack}"), project, url, &path, "argocd", false);
        files.insert(format!("root/{stack}.yaml"), text);
    }
    for app in &site.platform.apps {
        let path = format!("apps/{}", app.name);
        let text = application(&app.name, "default", url, &path, &app.name, true);
        files.insert(format!("stacks/{}/{}.yaml", app.stack, app.name), text);
    }
    files
}

/// Automated and at `HEAD`, as people write them.
fn application(
    name: &str,
    project: &str,
    url: &str,
    path: &str,
    namespace: &str,
    cascades: bool,
) -> String {
    let finalizers = if cascades { "[resources-finalizer.argocd.argoproj.io]" } else { "[]" };
    format!(
        "\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{ name: {name}, namespace: argocd, finalizers: {finalizers} }}
spec:
  project: {project}
  source: {{ repoURL: {url}, path: {path}, targetRevision: HEAD }}
  destination: {{ server: https://kubernetes.default.svc, namespace: {namespace} }}
  syncPolicy:
    automated: {{ prune: true, selfHeal: true }}
    syncOptions: [CreateNamespace=true]
"
    )
}

/// What others have in a project: an Application, and windows that say nothing to the platform.
struct Others {
    project: String,
    application: String,
    project_before: Value,
    application_before: Value,
}

impl Others {
    async fn in_project(site: &Site, project: &str, name: &str) -> Others {
        site.apply(json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": { "name": name, "namespace": "argocd" },
            "spec": {
                "project": project,
                "source": { "repoURL": site.platform.repo_url, "path": "none", "targetRevision": "v0" },
                "destination": { "server": "https://kubernetes.default.svc", "namespace": name },
            },
        }))
        .await;
        let windows = json!({ "spec": { "syncWindows": [{
            "kind": "deny", "schedule": "0 3 * * *", "duration": "1h",
            "applications": [name], "manualSync": true,
        }] } });
        let projects = site.objects("argoproj.io/v1alpha1", "AppProject", Some("argocd"));
        let (params, windows) = (PatchParams::default(), Patch::Merge(&windows));
        projects.patch(project, &params, &windows).await.expect("a window");
        let mut others = Others {
            project: project.to_owned(),
            application: name.to_owned(),
            project_before: Value::Null,
            application_before: Value::Null,
        };
        (others.project_before, others.application_before) = others.now(site).await;
        others
    }

    async fn now(&self, site: &Site) -> (Value, Value) {
        let kind = |kind: &str| site.objects("argoproj.io/v1alpha1", kind, Some("argocd"));
        let project = kind("AppProject").get(&self.project).await.expect("the project");
        let application = kind("Application").get(&self.application).await.expect("their own");
        let labels = json!(project.metadata.labels);
        let project = json!({ "spec": project.data["spec"], "labels": labels });
        (project, application.data["spec"].clone())
    }

    /// What Tiphys has put beside it has gone.
    async fn are_as_before(&self, site: &Site) {
        let (mut project, application) = self.now(site).await;
        // Argo CD writes it into every window when it writes a project.
        for window in project["spec"]["syncWindows"].as_array_mut().into_iter().flatten() {
            window.as_object_mut().map(|fields| fields.remove("timeZone"));
        }
        assert_eq!(project, self.project_before);
        assert_eq!(application, self.application_before);
        if self.project == "default" {
            let none = Patch::Merge(json!({ "spec": { "syncWindows": null } }));
            let projects = site.objects("argoproj.io/v1alpha1", "AppProject", Some("argocd"));
            projects.patch("default", &PatchParams::default(), &none).await.expect("no window");
        }
    }
}
