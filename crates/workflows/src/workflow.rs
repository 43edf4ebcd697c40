//! A workflow in the cluster, and what of it matters here.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, ListParams, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tiphys_cluster::names::{
    ARGOCD_LABEL, FIELD_MANAGER, NAMESPACE, PLATFORM_LABEL, TEARDOWN_NAMESPACE,
};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::PlatformName;

/// On the pods of a workflow.
pub(crate) const OF_WORKFLOW: &str = "workflows.argoproj.io/workflow";
/// On a workflow that has ended.
pub(crate) const COMPLETED: &str = "workflows.argoproj.io/completed";

/// Which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub namespace: String,
    pub name: String,
}

/// Looks for it wherever ours are.
pub async fn find(client: &Client, name: &str) -> Result<Option<Place>, RequestError> {
    for namespace in [NAMESPACE, TEARDOWN_NAMESPACE] {
        let what = format!("cannot read the workflow {name}");
        let found = api(client, namespace).get_metadata_opt(name).await;
        if seen(found.map_err(RequestError::because(what)))?.is_some() {
            return Ok(Some(Place { namespace: namespace.to_owned(), name: name.to_owned() }));
        }
    }
    Ok(None)
}

/// The workflow that a pod is a step of.
pub async fn of_pod(client: &Client, pod: &str) -> Result<Option<Place>, RequestError> {
    for namespace in [NAMESPACE, TEARDOWN_NAMESPACE] {
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let what = format!("cannot read the pod {pod}");
        let found = pods.get_metadata_opt(pod).await.map_err(RequestError::because(what));
        if let Some(name) = seen(found)?.and_then(|found| found.labels().get(OF_WORKFLOW).cloned())
        {
            return Ok(Some(Place { namespace: namespace.to_owned(), name }));
        }
    }
    Ok(None)
}

/// One of this platform that has not ended, or has not begun.
pub async fn unfinished(
    client: &Client,
    argocd: &str,
    platform: &PlatformName,
) -> Result<Option<String>, RequestError> {
    let labels = format!("{PLATFORM_LABEL}={platform},{ARGOCD_LABEL}={argocd},{COMPLETED}!=true");
    let listed = api(client, NAMESPACE).list_metadata(&ListParams::default().labels(&labels)).await;
    let listed = listed.map_err(RequestError::because("cannot list the workflows of runs"))?;
    Ok(listed.items.first().map(ResourceExt::name_any))
}

/// When a workflow of this name ended; nothing if it has not, or is not there.
pub async fn ended_at(client: &Client, name: &str) -> Result<Option<Timestamp>, RequestError> {
    let what = format!("cannot read the workflow {name}");
    let found = api(client, NAMESPACE).get_opt(name).await.map_err(RequestError::because(what))?;
    let finished = found.as_ref().and_then(|found| found.data["status"]["finishedAt"].as_str());
    Ok(finished.and_then(|time| time.parse().ok()))
}

/// Who may deploy need not see teardowns.
fn seen<T>(found: Result<Option<T>, RequestError>) -> Result<Option<T>, RequestError> {
    match found {
        Err(error) if error.cause() == Cause::Denied => Ok(None),
        found => found,
    }
}

pub(crate) fn api(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &kind("Workflow"))
}

/// With whom as the manager of fields something is created.
pub(crate) fn creating() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// The same for what is patched.
pub(crate) fn patching() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// A kind of Argo Workflows.
pub(crate) fn kind(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", kind))
}

/// How it is going.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// What Argo Workflows says about that.
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Waiting,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    pub(crate) fn has_ended(self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed)
    }
}

impl State {
    pub(crate) fn of(workflow: &DynamicObject) -> Self {
        let status = &workflow.data["status"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let phase = match &*text(&status["phase"]) {
            "Succeeded" => Phase::Succeeded,
            "Failed" | "Error" => Phase::Failed,
            "Running" => Phase::Running,
            _ => Phase::Waiting,
        };
        let mut message = text(&status["message"]);
        // What a node waits for is said of the node alone.
        let nodes = status["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
        if message.is_empty() {
            let pending = nodes.filter(|node| node["phase"] == "Pending");
            message = pending.map(|node| text(&node["message"])).max().unwrap_or_default();
        }
        State { phase, message }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(status: &Value) -> State {
        let workflow = json!({ "metadata": { "name": "a" }, "status": status });
        State::of(&serde_json::from_value(workflow).unwrap())
    }

    #[test]
    fn what_a_node_waits_for_is_what_the_workflow_waits_for() {
        let waiting = "Waiting for tiphys/Mutex/argocd.prod lock";
        let node = json!({ "phase": "Pending", "message": waiting });
        let found = state(&json!({ "phase": "Running", "nodes": { "a": node } }));
        assert_eq!((found.phase, &*found.message), (Phase::Running, waiting));
        assert_eq!(state(&json!({})).phase, Phase::Waiting);
        let error = state(&json!({ "phase": "Error", "message": "no account" }));
        assert_eq!((error.phase, &*error.message), (Phase::Failed, "no account"));
        assert!(error.phase.has_ended());
    }
}
