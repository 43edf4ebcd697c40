//! Settings that change while Argo CD first looks at a cluster make it process the cluster's
//! events out of order for as long as it runs.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use serde_json::json;
use tiphys_e2e::{World, figure, until};

use super::ground::Ground;

const CONTROLLER: &str = "argocd-application-controller-0";
const ROUNDS: usize = 3;

/// An Argo CD that has just started, without definitions, and with no app to look at.
async fn restarted(world: &World) {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "argocd");
    let nothing =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "argocd-cm" } });
    let params = PatchParams::apply("tiphys.health");
    maps.patch("argocd-cm", &params, &Patch::Apply(&nothing)).await.expect("the settings");
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "argocd");
    let before = pods.get(CONTROLLER).await.expect("the controller").metadata.uid;
    pods.delete(CONTROLLER, &DeleteParams::default()).await.expect("it can be restarted");
    let (pods, before) = (&pods, &before);
    until("a new controller is ready", || async move {
        let Some(pod) = pods.get_opt(CONTROLLER).await.expect("an answer") else { return false };
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True");
        ready && pod.metadata.uid != *before
    })
    .await;
}

async fn log(world: &World) -> String {
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "argocd");
    pods.logs(CONTROLLER, &LogParams::default()).await.expect("its log")
}

/// Whether settings changed between the beginning of a look and its end.
fn was_disturbed(log: &str) -> bool {
    let mut looking = false;
    for line in log.lines() {
        match line {
            line if line.contains("\"Start syncing cluster\"") => looking = true,
            line if line.contains("\"Cluster successfully synced\"") => looking = false,
            line if line.contains("\"invalidating live state cache\"") && looking => return true,
            _ => {}
        }
    }
    false
}

pub(crate) async fn of_settings_and_the_first_look(world: Arc<World>) {
    let mut seen = 0;
    for round in 0..ROUNDS {
        let ground = Ground::new(&world, "conf-order").await;
        let others = ground.site.applications().list(&ListParams::default()).await;
        let others = others.expect("a list").items.len();
        assert_eq!(others, 0, "Argo CD has Applications, and will look without being asked");
        restarted(&world).await;
        ground.configure(&[]).await;
        let root = ground.site.platform.root_name();
        ground.site.until(&root, "compared", |root| root.status.reconciled_at.is_some()).await;
        let log = log(&world).await;
        assert!(!was_disturbed(&log), "in round {round}:\n{log}");
        seen += usize::from(log.contains("\"invalidating live state cache\""));
        ground.close().await;
    }
    // It was there to be disturbed.
    assert!(seen > 0, "no settings were changed");
    figure(&format!("settings changed {seen} times, and never during the first look"));
}
