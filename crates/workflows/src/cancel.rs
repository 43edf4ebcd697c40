//! Stopping a workflow.

use kube::Client;
use kube::api::Patch;
use serde_json::json;
use tiphys_cluster::RequestError;

use crate::error::WorkflowsError;
use crate::workflow::{Place, State, api, patching};

/// Has Argo Workflows end it: its run gets SIGTERM and leaves in order. Whether there was
/// anything to end.
pub async fn cancel(client: &Client, at: &Place) -> Result<bool, WorkflowsError> {
    let workflows = api(client, &at.namespace);
    let what = format!("cannot stop the workflow {}", at.name);
    let found = workflows.get(&at.name).await.map_err(RequestError::because(&what))?;
    if State::of(&found).phase.has_ended() {
        return Ok(false);
    }
    let patch = Patch::Merge(json!({ "spec": { "shutdown": "Stop" } }));
    workflows.patch(&at.name, &patching(), &patch).await.map_err(RequestError::because(what))?;
    Ok(true)
}
