//! A deny window as a hold.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tiphys_argocd::{AppAddress, Application};
use tiphys_e2e::{Recording, Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};

/// Long enough for Argo CD to do what it must not do, if it would; its own next look at an app
/// that nobody touches is two minutes away.
const A_WHILE: Duration = Duration::from_secs(15);

fn is_current(application: &Application) -> bool {
    application.status.sync.status == "Synced" && application.status.health.status == "Healthy"
}

pub(crate) async fn a_window_holds(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-hold").await;
    let (held, free) = ("fact-hold-held", "fact-hold-free");
    site.platform.apps = vec![
        AppSource::new(held, Behaviour::ConfigOnly),
        AppSource::new(free, Behaviour::ConfigOnly),
    ];
    site.commit("two apps");
    site.configure().await;
    site.hold(&[held]).await;
    site.create_application(held, "main", true).await;
    site.create_application(free, "main", true).await;
    // The other one shows that automated sync works here.
    site.until_healthy(free).await;
    tokio::time::sleep(A_WHILE).await;
    let application = site.application(held).await;
    assert_eq!(application.status.sync.status, "OutOfSync");
    assert!(application.status.operation_state.is_none(), "nothing has synced it");

    site.sync(held, "", 1).await.expect("a manual sync is taken");
    site.until_healthy(held).await;
    site.close().await;
}

pub(crate) async fn a_window_freezes(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-freeze").await;
    let app = "fact-freeze-app";
    site.platform.apps = vec![AppSource::new(app, Behaviour::Resource { manifests: two_waves() })];
    site.commit("an app whose operation takes long");
    site.configure().await;
    site.create_application(app, "main", true).await;
    let running = |application: &Application| {
        let state = application.status.operation_state.as_ref();
        state
            .is_some_and(|state| state.phase == "Running" && state.operation.initiated_by.automated)
    };
    site.until(app, "being synced by itself", running).await;
    let namespace = site.platform.namespace(app);
    let deployments = site.objects("apps/v1", "Deployment", Some(&namespace));
    for _ in 0..100 {
        if deployments.get_opt("first").await.expect("an answer").is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    site.hold(&["*"]).await;
    // The controller comes back to the operation when something in it changes.
    let touch = |note: &str| {
        let patch = json!({ "metadata": { "annotations": { "lab.tiphys.dev/note": note } } });
        let deployments = deployments.clone();
        async move { deployments.patch("first", &PatchParams::default(), &Patch::Merge(&patch)).await }
    };
    touch("look").await.expect("a patch");
    let blocked = |application: &Application| {
        let state = application.status.operation_state.as_ref();
        state.is_some_and(|state| state.message.contains("blocked by sync window"))
    };
    site.until(app, "blocked", blocked).await;

    // What the first wave waits for comes true, and still nothing goes on.
    let scaled = json!({ "spec": { "replicas": 0 } });
    deployments
        .patch("first", &PatchParams::default(), &Patch::Merge(&scaled))
        .await
        .expect("a patch");
    let terminated = world.argocd.terminate(&AppAddress::own(app, &site.platform.project)).await;
    tokio::time::sleep(A_WHILE).await;
    let application = site.application(app).await;
    let state = application.status.operation_state.as_ref().expect("an operation");
    assert!(!matches!(state.phase.as_str(), "Succeeded" | "Failed" | "Error"), "{}", state.phase);
    assert!(application.operation.is_some(), "the operation stands: {terminated:?}");
    let busy = site.sync(app, "", 1).await.expect_err("another operation is under way");
    assert!(busy.to_string().contains("another operation is already in progress"), "{busy}");

    site.hold(&[]).await;
    site.applications()
        .patch(app, &PatchParams::default(), &Patch::Merge(json!({ "metadata": { "annotations": { "argocd.argoproj.io/refresh": "normal" } } })))
        .await
        .expect("a refresh");
    site.until(app, "at the end of its operation", |application| application.operation.is_none())
        .await;
    site.close().await;
}

/// The first wave does not get ready by itself.
fn two_waves() -> String {
    "\
apiVersion: apps/v1
kind: Deployment
metadata: { name: first, annotations: { argocd.argoproj.io/sync-wave: \"0\" } }
spec:
  replicas: 1
  selector: { matchLabels: { app: first } }
  template:
    metadata: { labels: { app: first } }
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: app
          image: nobody.example/none:1
          imagePullPolicy: Never
          readinessProbe: { tcpSocket: { port: 1 } }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: second, annotations: { argocd.argoproj.io/sync-wave: \"1\" } }
"
    .to_owned()
}

pub(crate) async fn an_edit_wakes_nobody(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-wake").await;
    let app = "fact-wake-app";
    site.platform.apps = vec![AppSource::new(app, Behaviour::ConfigOnly)];
    site.commit("one app");
    site.configure().await;
    site.hold(&["*"]).await;
    site.create_application(app, "main", true).await;
    site.until(app, "compared", |a| a.status.sync.status == "OutOfSync").await;
    // What its creation has set off is over.
    tokio::time::sleep(Duration::from_secs(5)).await;

    let objects = site.objects("argoproj.io/v1alpha1", "Application", Some("argocd"));
    let recording = Recording::start(objects, Some(app)).await;
    site.hold(&[]).await;
    tokio::time::sleep(A_WHILE).await;
    let written = recording.end();
    assert!(written.is_empty(), "{} writes after the window was lifted", written.len());
    assert_eq!(site.application(app).await.status.sync.status, "OutOfSync");

    world.argocd.refresh(&AppAddress::own(app, &site.platform.project)).await.expect("a refresh");
    site.until(app, "synced by itself after a refresh", is_current).await;
    site.close().await;
}

pub(crate) async fn a_sync_error_stands(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-error").await;
    let app = "fact-error-app";
    site.platform.apps = vec![AppSource::new(app, Behaviour::FailsToSync)];
    site.commit("an app that cannot be applied");
    site.configure().await;
    site.create_application(app, "main", true).await;
    let has_error = |application: &Application| {
        application.status.conditions.iter().flatten().any(|c| c.kind == "SyncError")
    };
    site.until(app, "in a SyncError", has_error).await;
    site.hold(&["*"]).await;

    site.platform.apps = vec![AppSource::new(app, Behaviour::ConfigOnly)];
    site.commit("repaired");
    world.argocd.refresh(&AppAddress::own(app, &site.platform.project)).await.expect("a refresh");
    site.sync(app, "", 1).await.expect("a manual sync is taken");
    site.until_healthy(app).await;
    world.argocd.refresh(&AppAddress::own(app, &site.platform.project)).await.expect("a refresh");
    let application = site.application(app).await;
    assert!(is_current(&application), "all is well");
    assert!(has_error(&application), "and the error of before still stands");
    site.close().await;
}
