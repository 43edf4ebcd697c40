//! Looking at the workflow controllers that would have a node for each app.

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tiphys_assess::preflight::nodes::{Controller, installed, judge, not_asked};
use tiphys_assess::preflight::{Check, Problem};
use tiphys_cluster::{access_review, names};
use tiphys_model::Platform;
use tiphys_model::bootstrap::{PrimitiveName, REQUEUE_TIME};
use tiphys_model::platform::WorkflowMode;

use super::within;

/// How upstream's manifests and its chart label the pods.
const CONTROLLER: &str = "app=workflow-controller";

/// No row, if the platform does without.
pub(super) async fn look(client: &Client, platform: &Platform) -> Option<Check> {
    if platform.workflows != WorkflowMode::Nodes {
        return None;
    }
    if installs(platform) {
        return Some(installed());
    }
    Some(judge(&controllers(client).await))
}

/// The same row for a cluster that cannot be reached.
pub(super) fn out_of_reach(platform: &Platform) -> Option<Check> {
    let wanted = platform.workflows == WorkflowMode::Nodes;
    wanted.then(|| if installs(platform) { installed() } else { not_asked() })
}

fn installs(platform: &Platform) -> bool {
    let mut primitives = platform.bootstrap.iter().flat_map(|bootstrap| &bootstrap.primitives);
    primitives.any(|primitive| primitive.name == PrimitiveName::Workflows)
}

async fn controllers(client: &Client) -> Result<Vec<Controller>, Problem> {
    let pods: Api<Pod> = Api::all(client.clone());
    let labelled = ListParams::default().labels(CONTROLLER);
    let listed = within("cannot list the pods of Argo Workflows", pods.list(&labelled)).await?;
    Ok(join_all(listed.items.iter().map(|pod| controller(client, pod))).await)
}

async fn controller(client: &Client, pod: &Pod) -> Controller {
    let namespace = pod.namespace().unwrap_or_default();
    let spec = pod.spec.as_ref();
    let account = spec.and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default");
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let tidy = ResourceAttributes {
        verb: Some("patch".to_owned()),
        group: Some("argoproj.io".to_owned()),
        resource: Some("workflowtasksets".to_owned()),
        subresource: Some("status".to_owned()),
        namespace: Some(names::NAMESPACE.to_owned()),
        ..ResourceAttributes::default()
    };
    let may = access_review::may_another(client, user, tidy);
    Controller {
        pod: format!("{namespace}/{}", pod.name_any()),
        requeue: requeue(pod),
        may_tidy: within("cannot check the rights of Argo Workflows", may).await,
    }
}

fn requeue(pod: &Pod) -> Option<String> {
    let container = pod.spec.as_ref()?.containers.first()?;
    let variable = container.env.iter().flatten().find(|one| one.name == REQUEUE_TIME.0)?;
    variable.value.clone()
}
