//! What others do to apps while a run wants to deploy them: operations that do not end, a project
//! that forbids, self-heal that is busy with drift.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::{Retry, Timeouts};
use tokio::task::JoinHandle;

use crate::audit::Mark;
use crate::deploy::{configure, deploy};

/// A Job that never ends, and which every sync has to wait for.
const ENDLESS: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: endless
  annotations: { argocd.argoproj.io/hook: PreSync }
spec:
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers:
        - { name: wait, image: IMAGE, imagePullPolicy: Never }
";

/// A rollout of some seconds, and something that is applied only after it.
const SLOW: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: { name: slow }
spec:
  minReadySeconds: 6
  selector: { matchLabels: { app: slow } }
  template:
    metadata: { labels: { app: slow, drift: none } }
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 0
      containers:
        - { name: app, image: IMAGE, imagePullPolicy: Never }
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: after
  annotations: { argocd.argoproj.io/sync-wave: \"1\" }
data: { drift: none }
";

fn manifests(text: &str) -> Behaviour {
    Behaviour::Resource { manifests: text.replace("IMAGE", tiphys_lab::PAUSE_IMAGE) }
}

pub(crate) async fn of_others(world: Arc<World>) {
    let mut site = Site::new(&world, "odd").await;
    let app = |name: &str, behaviour: Behaviour| {
        let mut app = AppSource::new(&format!("odd-{name}"), behaviour);
        let sync = Duration::from_secs(10);
        app.timeouts = Some(Timeouts { sync, health: Duration::from_secs(60) });
        app.retry = Some(Retry { limit: 0, ..Retry::default() });
        app
    };
    site.platform.apps = vec![
        app("busy", manifests(ENDLESS)),
        app("after-busy", Behaviour::ConfigOnly).depends_on(&["odd-busy"]),
        app("forbidden", Behaviour::ConfigOnly),
        app("after-forbidden", Behaviour::ConfigOnly).depends_on(&["odd-forbidden"]),
        app("fine", Behaviour::ConfigOnly),
    ];
    let revision = site.commit("apps that others are in the way of");
    let file = site.platform_file();
    configure(&world, &file).await;
    // One namespace is not among those that the project allows.
    let allowed = ["odd-busy", "odd-after-*", "odd-fine"];
    let destinations: Vec<Value> =
        allowed.iter().map(|name| json!({ "server": "*", "namespace": name })).collect();
    let patch = Patch::Merge(json!({ "spec": { "destinations": destinations } }));
    let projects = site.objects("argoproj.io/v1alpha1", "AppProject", Some("argocd"));
    let project = site.platform.project.clone();
    projects.patch(&project, &PatchParams::default(), &patch).await.expect("a project");
    site.create_application("odd-busy", revision.as_str(), false).await;
    site.sync("odd-busy", revision.as_str(), 1).await.expect("the administrator may sync");

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 1).await;
    let of = |kind: &str, app: &str| -> Value {
        let is = |event: &&Value| event["kind"] == kind && event["app"] == app;
        events.iter().find(is).cloned().unwrap_or_default()
    };
    let ways = [
        ("busy", "timed-out", "an operation of admin did not end before the sync timeout", "admin"),
        ("forbidden", "failed", "its spec is invalid: application destination", "correct the"),
    ];
    for (name, state, cause, hint) in ways {
        let failed = of("step-failed", &format!("odd-{name}"));
        assert_eq!(failed["state"], state, "{failed:#}");
        let text = |field: &str| failed[field].as_str().unwrap_or_default().to_owned();
        assert!(text("cause").starts_with(cause), "{failed:#}");
        assert!(text("hint").contains(hint), "{failed:#}");
        assert!(!failed["evidence"].is_null(), "{failed:#}");
        let skipped = of("step-skipped", &format!("odd-after-{name}"));
        assert_eq!(skipped["because"][0], format!("odd-{name}"), "{skipped}");
    }
    // The one is awaited as long as its sync may take, the other is hopeless at once.
    let when = |app: &str| of("step-failed", app)["elapsedMs"].as_u64().expect("a time");
    assert!(when("odd-busy") >= 10_000 && when("odd-forbidden") < when("odd-busy"), "{events:#?}");
    let ours = before.writes(&site).operations();
    assert_eq!(of("step-done", "odd-fine")["how"], "applied");
    assert!(!ours.contains_key("odd-forbidden") && !ours.contains_key("odd-after-busy"));
    site.close().await;
}

/// Self-heal is busy with an app when a run begins: its sync is awaited. One that slips in between
/// that and the hold is frozen, and finished when it is the app's turn.
pub(crate) async fn of_self_heal(world: Arc<World>) {
    let mut site = Site::new(&world, "heal").await;
    site.platform.apps = vec![
        AppSource::new("heal-first", Behaviour::Healthy { after: Duration::from_secs(3) }),
        AppSource::new("heal-slow", manifests(SLOW)).depends_on(&["heal-first"]),
        AppSource::new("heal-next", Behaviour::ConfigOnly).depends_on(&["heal-slow"]),
    ];
    let revision = site.commit("an app that takes its time");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;

    for app in ["heal-first", "heal-next"] {
        site.platform.app_mut(app).expect("an app").generation = 2;
    }
    site.commit("a change of the others");
    let before = Mark::now(&world);
    let drift = keep_drifting(&site, revision.to_string());
    site.until("heal-slow", "being synced by itself", |application| {
        application.operation.as_ref().is_some_and(|o| o.initiated_by.automated)
    })
    .await;
    deploy(&world, &file, 0).await;
    drift.await.expect("it ends when the app is held");
    let writes = before.writes(&site);
    let automated = writes.automated("heal-slow");
    assert!(
        automated.first().is_some_and(|(_, blocked)| !blocked),
        "it was awaited: {automated:?}"
    );
    assert!(automated.iter().any(|(_, blocked)| *blocked), "and one was frozen: {automated:?}");
    let turn = writes.operations()["heal-first"].first().copied().expect("an operation");
    let thawed = automated.iter().rev().find(|(_, blocked)| !blocked).map(|(at, _)| *at);
    assert!(thawed.is_some_and(|at| at > turn), "but not for ever: {automated:?}");
    assert_eq!(writes.automated("heal-next"), [], "nothing overtakes what it depends on");
    assert!(world.held(&site.platform.project).await.is_empty(), "everything was handed off");
    site.close().await;
}

/// Somebody who changes the app each time that it has been healed. When it is held, once more,
/// with the operation that Argo CD would have begun for it a moment earlier.
fn keep_drifting(site: &Site, revision: String) -> JoinHandle<()> {
    let deployments = site.objects("apps/v1", "Deployment", Some("heal-slow"));
    let maps = site.objects("v1", "ConfigMap", Some("heal-slow"));
    let (world, project) = (site.world.clone(), site.platform.project.clone());
    let applications = site.applications();
    let params = PatchParams::default();
    tokio::spawn(async move {
        for number in 0.. {
            let mut held = !world.held(&project).await.is_empty();
            if held {
                // A run looks once more after it has set the hold, and begins again.
                tokio::time::sleep(Duration::from_secs(1)).await;
                held = !world.held(&project).await.is_empty();
            }
            let application = applications.get("heal-slow").await.expect("the Application");
            let busy = application.operation.is_some();
            if held || (!busy && application.status.sync.status == "Synced") {
                let value = number.to_string();
                let template = json!({ "metadata": { "labels": { "drift": value } } });
                let patch = Patch::Merge(json!({ "spec": { "template": template } }));
                deployments.patch("slow", &params, &patch).await.expect("a drift");
                let patch = Patch::Merge(json!({ "data": { "drift": value } }));
                maps.patch("after", &params, &patch).await.expect("a drift");
            }
            if held {
                let sync = json!({ "revision": revision, "syncOptions": ["CreateNamespace=true"] });
                let operation = json!({ "initiatedBy": { "automated": true }, "sync": sync });
                let patch = Patch::Merge(json!({ "operation": operation }));
                if !busy {
                    applications.patch("heal-slow", &params, &patch).await.expect("an operation");
                }
                return;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    })
}
