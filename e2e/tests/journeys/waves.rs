//! The same platform by Argo CD's own means: an app of apps with sync waves and nested health.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_cluster::Application;
use tiphys_e2e::{Site, World, figure, tiphys};

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
    let site = Site::reference(&world, "wave", Duration::from_secs(3)).await;
    site.commit("the reference platform");
    let file = site.platform_file();
    configure(&world, &file).await;
    let events = deploy(&world, &file, 0).await;
    let ours = events.last().expect("events")["makespanMs"].as_f64().expect("a makespan");
    let layers = layers(&world, file.path()).await;
    site.close().await;

    let site = Site::reference(&world, "wave", Duration::from_secs(3)).await;
    let mut files = site.platform.files();
    let template = files.get_mut("root/templates/applications.yaml").expect("the template");
    *template = template.replace(
        "  finalizers:",
        "  annotations: { argocd.argoproj.io/sync-wave: {{ .wave | quote }} }\n  finalizers:",
    );
    let values = files.get_mut("root/values.yaml").expect("the values");
    for (app, layer) in &layers {
        *values = values.replace(&format!("name: {app},"), &format!("name: {app}, wave: {layer},"));
    }
    site.repository.commit(&files, "with sync waves").expect("a commit");
    set_health(&site, json!(NESTED)).await;
    site.configure().await;
    let (root, project) = (site.platform.root_name(), site.platform.root_project.clone());
    world.argocd.refresh(&root, &project).await.expect("a refresh");
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
    figure(&format!(
        "sync waves {theirs:.0} ms, tiphys {ours:.0} ms: {:.2} times as quick",
        theirs / ours
    ));
    site.close().await;
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
