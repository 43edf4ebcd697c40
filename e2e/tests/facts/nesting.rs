//! Why a generator's gate never looks at health.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tiphys_argocd::{AppAddress, Application};
use tiphys_e2e::{Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};

/// The health check for Applications that Argo CD's documentation gives for app-of-apps.
const NESTED: &str = "\
hs = {}
hs.status = \"Progressing\"
hs.message = \"\"
if obj.status ~= nil then
  if obj.status.health ~= nil then
    hs.status = obj.status.health.status
    if obj.status.health.message ~= nil then
      hs.message = obj.status.health.message
    end
  end
end
return hs
";
const KEY: &str = "resource.customizations.health.argoproj.io_Application";

pub(crate) async fn waves_and_nested_health_deadlock(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-nest").await;
    let (first, second) = ("fact-nest-first", "fact-nest-second");
    site.platform.apps = vec![
        AppSource::new(first, Behaviour::ConfigOnly),
        AppSource::new(second, Behaviour::ConfigOnly),
    ];
    let mut files = site.platform.files();
    let template = files.get_mut("root/templates/applications.yaml").expect("the template");
    *template = template.replace(
        "  finalizers:",
        "  annotations: { argocd.argoproj.io/sync-wave: {{ if hasSuffix \"second\" .name }}\"1\"{{ else }}\"0\"{{ end }} }\n  finalizers:",
    );
    site.repository.commit(&files, "two waves").expect("a commit");
    let settings = site.objects("v1", "ConfigMap", Some("argocd"));
    let set = |value: serde_json::Value| {
        let patch = Patch::Merge(json!({ "data": { KEY: value } }));
        let settings = settings.clone();
        async move { settings.patch("argocd-cm", &PatchParams::default(), &patch).await }
    };
    let before =
        settings.get("argocd-cm").await.expect("Argo CD's settings").data["data"][KEY].take();
    set(json!(NESTED)).await.expect("Argo CD can be configured");
    site.configure().await;
    site.hold(&["*"]).await;
    let (root, project) = (site.platform.root_name(), site.platform.root_project.clone());
    world.argocd.refresh(&AppAddress::own(&root, &project)).await.expect("a refresh");
    site.sync_in(&project, &root, "", 1).await.expect("the sync is taken");
    site.until(first, "there", |_| true).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let application = site.application(&root).await;
    let state = application.status.operation_state.as_ref().expect("an operation");
    let (phase, message) = (state.phase.clone(), state.message.clone());
    let there = site.applications().get_opt(second).await.expect("an answer").is_some();

    // The child is synced by a run, and the root app goes on: it was waiting for health.
    site.sync(first, "", 1).await.expect("a manual sync is taken");
    let done = |root: &Application| {
        root.status.operation_state.as_ref().is_some_and(|state| state.phase == "Succeeded")
    };
    site.until(&root, "synced once the child is healthy", done).await;
    // Platforms count on the definition that `tiphys configure` puts there.
    set(before).await.expect("Argo CD can be configured");
    assert_eq!(phase, "Running", "{message}");
    assert!(!there, "the second wave was not begun");
    site.close().await;
}
