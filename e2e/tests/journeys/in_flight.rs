//! Operations on generators that are under way when a run begins.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tiphys_argocd::AppAddress;
use tiphys_argocd::rest::SyncRequest;
use tiphys_e2e::{Site, World, operation, tiphys, until};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_run::Revisions;

use crate::deploy::configure;
use crate::resume::start;

const CONTROLLER: &str = "argocd-application-controller";
/// Longer than a run once waited.
const A_WHILE: Duration = Duration::from_secs(35);

/// Somebody has asked for a sync of the root app, and Argo CD takes its time: the run awaits it.
pub(crate) async fn on_the_root_app(world: Arc<World>) {
    let mut site = Site::new(&world, "flight").await;
    site.platform.apps = vec![AppSource::new("flight-app", Behaviour::ConfigOnly)];
    site.commit("an app");
    let file = site.platform_file();
    configure(&world, &file).await;
    let (root, project) = (site.platform.root_name(), site.platform.root_project.clone());
    site.until(&root, "compared", |root| root.status.reconciled_at.is_some()).await;

    run_controller(&world, 0).await;
    let (id, none) = (operation(&root, 1), Revisions::default());
    let request = SyncRequest { operation: &id, revisions: &none, prune: false };
    world
        .argocd
        .sync(&AppAddress::own(&root, &project), request)
        .await
        .expect("the administrator may sync");
    let run = start(&world, &file);
    tokio::time::sleep(A_WHILE).await;
    run_controller(&world, 1).await;
    let wait = move || run.wait_with_output().expect("it ends");
    let output = tokio::task::spawn_blocking(wait).await.expect("nobody cancels it");
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stderr}\n{stdout}");
    site.until_healthy("flight-app").await;
    site.close().await;
}

async fn run_controller(world: &World, replicas: i32) {
    let sets: Api<StatefulSet> = Api::namespaced(world.client.clone(), "argocd");
    let scale = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    sets.patch(CONTROLLER, &PatchParams::default(), &scale).await.expect("it can be scaled");
    let settled = || async {
        let set = sets.get(CONTROLLER).await.expect("the controller");
        let status = set.status.unwrap_or_default();
        status.replicas == replicas && status.ready_replicas.unwrap_or_default() == replicas
    };
    until("the controller is as it should be", settled).await;
}
