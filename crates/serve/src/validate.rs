//! Platforms are validated when objects have changed that their triggers watch.

use jiff::Timestamp;
use kube::Client;
use tiphys_assess::deploy_loop::validation::{Validated, is_due};
use tiphys_cluster::RunWorkflow;
use tiphys_model::TriggerAction;
use tiphys_state::changes::NotedChange;
use tiphys_state::deploy_loop::{LoopState, LoopStore};
use tiphys_workflows::{Submission, submit};

use crate::look::{LoopError, busy};
use crate::named::workflow_name;

/// Submits a workflow for each of the platform's triggers whose last change has not been followed by one;
/// what was submitted, in words.
pub(crate) async fn validate(
    client: &Client,
    state: &LoopState,
    changes: &[NotedChange],
    now: Timestamp,
) -> Result<Vec<String>, LoopError> {
    let mut told = Vec::new();
    let mut validated = state.validated.clone();
    for change in changes {
        let Some((_, event)) = &change.last else { continue };
        let before = validated.get(&change.trigger);
        if !is_due(event, before, false, now)
            || !is_due(event, before, busy(client, state).await?.is_some(), now)
        {
            continue;
        }
        let name = workflow_name(state, TriggerAction::Validate, &[&change.trigger, event]);
        let run = RunWorkflow {
            action: TriggerAction::Validate,
            platform: state.platform.clone(),
            argocd: state.argocd.clone(),
            scope: change.scope.clone(),
            environment: None,
            unattended: true,
        };
        let workflow = submit(client, &Submission { run, name: Some(name) }).await?.name;
        told.push(format!("{} changed, validating: workflow {workflow}", change.trigger));
        let one = Validated { change: event.clone(), workflow, at: now };
        validated.insert(change.trigger.clone(), one);
        let store = LoopStore::new(client);
        store.note_validated(&state.argocd, &state.platform, &validated).await?;
    }
    Ok(told)
}
