//! Names of the workflows that the loop submits.

use sha2::{Digest, Sha256};
use tiphys_cluster::RunWorkflow;
use tiphys_model::TriggerAction;
use tiphys_state::deploy_loop::LoopState;

/// The same for the same reason: a loop that died before it could note what it had submitted is followed
/// by one that submits nothing new.
pub(crate) fn workflow_name(state: &LoopState, action: TriggerAction, reason: &[&str]) -> String {
    let platform = [state.argocd.as_str(), state.platform.as_str()];
    let digest = Sha256::digest([&platform, reason].concat().join("\n"));
    let short: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{short}", RunWorkflow::template(action))
}
