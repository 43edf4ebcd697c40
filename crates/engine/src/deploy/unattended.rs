//! A deployment that no person has asked for. What people have decided stays so: a platform that was
//! never deployed, one that was taken down, and one whose automatic deployments are paused.

use kube::Client;
use tiphys_model::Platform;
use tiphys_state::deploy_loop::LoopStore;
use tiphys_state::graph::GraphStore;

use super::DeployError;

/// Why it ends before it begins, in words; `None`: it may begin. Asked under the Lease, because a
/// teardown may have been first.
pub(super) async fn refusal(
    client: &Client,
    platform: &Platform,
) -> Result<Option<String>, DeployError> {
    let (argocd, name) = (&platform.argocd.namespace, &platform.name);
    let graph = GraphStore::new(client, argocd, name).read().await?;
    if graph.is_none_or(|graph| graph.deploy_policy().is_none()) {
        let why = "the platform is not deployed; the next deployment is started by a person";
        return Ok(Some(format!("nothing was done: {why}")));
    }
    let kept = LoopStore::new(client).get(argocd, name).await?;
    let pause = kept.and_then(|kept| kept.pause);
    Ok(pause.map(|pause| {
        format!("nothing was done: {} paused automatic deployments of {name}", pause.by)
    }))
}
