//! The same platform by Argo CD's own means: an app of apps with sync waves and nested health.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_argocd::{AppAddress, Application};
use tiphys_e2e::{Site, World, figure, seed, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::AppIx;
use tiphys_sim::Chance;
use tiphys_sim::generate::{self, Shape};

use crate::deploy::{configure, deploy};

const KEY: &str = "resource.customizations.health.argoproj.io_Application";
/// As Argo CD's documentation gives it for apps of apps.
const NESTED: &str = "\
hs = { status = \"Progressing\", message = \"\" }
if obj.status ~= nil and obj.status.health ~= nil then
  hs.status = obj.status.health.status
end
return hs
";

pub(crate) async fn against_sync_waves(world: Arc<World>) {
    let each = Duration::from_secs(3);
    let (ours, layers) = with_a_run(Site::reference(&world, "wave", each).await).await;
    let theirs = with_waves(Site::reference(&world, "wave", each).await, &layers).await;
    figure(&format!(
        "sync waves {theirs:.0} ms, tiphys {ours:.0} ms: {:.2} times as quick",
        theirs / ours
    ));
}

/// Random graphs of apps that take one to ten seconds each: a wave waits for the longest in it.
pub(crate) async fn against_sync_waves_on_random_graphs(world: Arc<World>) {
    let first = seed();
    for seed in first..first + 5 {
        let (ours, layers) = with_a_run(random(&world, seed).await).await;
        let theirs = with_waves(random(&world, seed).await, &layers).await;
        figure(&format!(
            "graph {seed}: sync waves {theirs:.0} ms, tiphys {ours:.0} ms: {:.2} times as quick",
            theirs / ours
        ));
    }
}

async fn random(world: &Arc<World>, seed: u64) -> Site {
    let mut site = Site::new(world, "wave").await;
    let mut chance = Chance::new(seed);
    let drawn = generate::platform(Shape { apps: 24, unlimited: true }, &mut chance);
    let name = |app: AppIx| format!("wave-{}", drawn.apps[app.position()].name);
    for (position, app) in drawn.apps.iter().enumerate() {
        let after = Duration::from_secs(chance.between(1, 10));
        let behaviour = Behaviour::Healthy { after };
        let mut source = AppSource::new(&name(AppIx::new(position)), behaviour);
        source.typical = Some(after);
        let names: Vec<String> = app.dependencies.iter().map(|d| name(d.app)).collect();
        source.depends_on = names;
        site.platform.apps.push(source);
    }
    site.platform.concurrency = Some(24);
    site
}

/// How long a run takes, and the layers of its plan.
async fn with_a_run(site: Site) -> (f64, BTreeMap<String, i64>) {
    let world = &site.world;
    site.commit("the platform");
    let file = site.platform_file();
    configure(world, &file).await;
    let events = deploy(world, &file, 0).await;
    let ours = events.last().expect("events")["makespanMs"].as_f64().expect("a makespan");
    let layers = layers(world, file.path()).await;
    site.close().await;
    (ours, layers)
}

/// How long sync waves take that are the layers.
async fn with_waves(site: Site, layers: &BTreeMap<String, i64>) -> f64 {
    let world = &site.world;
    let mut files = site.platform.files();
    let template = files.get_mut("root/templates/applications.yaml").expect("the template");
    *template = template.replace(
        "  finalizers:",
        "  annotations: { argocd.argoproj.io/sync-wave: {{ .wave | quote }} }\n  finalizers:",
    );
    let values = files.get_mut("root/values.yaml").expect("the values");
    for (app, layer) in layers {
        *values = values.replace(&format!("name: {app},"), &format!("name: {app}, wave: {layer},"));
    }
    site.repository.commit(&files, "with sync waves").expect("a commit");
    set_health(&site, json!(NESTED)).await;
    site.configure().await;
    let (root, project) = (site.platform.root_name(), site.platform.root_project.clone());
    world.argocd.refresh(&AppAddress::own(&root, &project)).await.expect("a refresh");
    let began = Instant::now();
    site.sync_in(&project, &root, "", 1).await.expect("the sync is taken");
    let done = |root: &Application| {
        root.status.operation_state.as_ref().is_some_and(|state| state.phase == "Succeeded")
    };
    site.until_within(Duration::from_secs(300), &root, "synced", done).await;
    for app in &site.platform.apps {
        site.until_healthy(&app.name).await;
    }
    let theirs = began.elapsed().as_secs_f64() * 1e3;
    set_health(&site, Value::Null).await;
    site.close().await;
    theirs
}

async fn layers(world: &World, file: &str) -> BTreeMap<String, i64> {
    let output = tiphys::run(&["plan", "-f", file, "-o", "json"], &world.kubeconfig).await;
    let plan: Value = serde_json::from_slice(&output.stdout).expect("a plan");
    let apps = plan["apps"].as_array().expect("apps").iter();
    apps.map(|app| {
        (app["name"].as_str().expect("a name").to_owned(), app["layer"].as_i64().expect("a layer"))
    })
    .collect()
}

async fn set_health(site: &Site, script: Value) {
    let settings = site.objects("v1", "ConfigMap", Some("argocd"));
    let patch = Patch::Merge(json!({ "data": { KEY: script } }));
    let changed = settings.patch("argocd-cm", &PatchParams::default(), &patch).await;
    changed.expect("Argo CD can be configured");
}
