//! Argo CD's picture of the cluster can be old. Then it is no use to look for a trouble of the app.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tiphys_argocd::AppAddress;
use tiphys_e2e::{Site, World, until};
use tiphys_lab::repository::{AppSource, Behaviour};

use super::Eye;
use crate::deploy::configure;

const CONTROLLER: &str = "argocd-application-controller";
const APP: &str = "behind-app";
const LIKELY: &str = "likely: Argo CD is behind the cluster";

/// Lets the application controller run, or not.
async fn run_controller(world: &World, replicas: u32) {
    let sets: Api<StatefulSet> = Api::namespaced(world.client.clone(), "argocd");
    let scale = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    sets.patch(CONTROLLER, &PatchParams::default(), &scale).await.expect("it can be scaled");
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "argocd");
    let name = format!("{CONTROLLER}-0");
    let (pods, name) = (&pods, &name);
    until("the controller is scaled", || async move {
        pods.get_opt(name).await.expect("an answer").is_some() == (replicas > 0)
    })
    .await;
}

pub(crate) async fn is_told(world: Arc<World>) {
    let mut site = Site::new(&world, "behind").await;
    let after = Duration::from_secs(20);
    site.platform.apps = vec![AppSource::new(APP, Behaviour::Healthy { after })];
    let revision = site.commit("an app that takes its time");
    let eye = Eye::new(&world, &site);
    configure(&world, &eye.file).await;
    site.create_application(APP, revision.as_str(), false).await;
    site.sync(APP, revision.as_str(), 1).await.expect("it can be synced");
    site.until(APP, "synced and Progressing", |application| {
        let state = application.status.operation_state.as_ref();
        application.status.health.status == "Progressing"
            && state.is_some_and(|state| state.phase == "Succeeded")
    })
    .await;
    let (code, early, stderr) = eye.look(&["why", APP]).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{early}");
    assert!(!early.contains(LIKELY), "{early}");

    run_controller(&world, 0).await;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), APP);
    let deployments = &deployments;
    until("the Deployment is available", || async move {
        let deployment = deployments.get(APP).await.expect("the Deployment");
        deployment.status.and_then(|status| status.available_replicas) == Some(1)
    })
    .await;
    let (code, late, stderr) = eye.look(&["why", APP]).await;
    run_controller(&world, 1).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{late}");
    assert!(late.contains(LIKELY), "{late}");
    let told = format!("Deployment/{APP}: ready in the cluster, at version ");
    assert!(late.contains(&told), "{late}");
    assert_eq!(eye.writes(), Vec::<String>::new());

    // A new controller takes its time to compare an app anew, unless it is asked.
    world.argocd.refresh(&AppAddress::own(APP, &site.platform.project)).await.expect("a refresh");
    site.until_healthy(APP).await;
    site.close().await;
}
