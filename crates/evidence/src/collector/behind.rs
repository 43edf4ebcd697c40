//! Argo CD can go on showing what a workload was, long after it has become ready.

use std::time::Duration;

use serde_json::Value;
use tiphys_model::Health;

use super::EvidenceCollector;
use super::tree::Node;
use tiphys_argocd::AppAddress;
use tiphys_cluster::workload::{awaits, is_workload};

/// How much later than the cluster Argo CD may be.
const LATER: Duration = Duration::from_secs(3);

impl EvidenceCollector {
    /// What Argo CD shows of a workload, if the cluster has long had something else. What cannot
    /// be read is not known to be old.
    pub(super) async fn what_is_old(&self, app: &AppAddress, chain: &[&Node]) -> Option<String> {
        let shown = chain.iter().find(|node| is_workload(&node.object.kind))?;
        let live = self.live(app, &shown.object, &shown.version).await.ok()?;
        contradiction(shown, &live)?;
        tokio::time::sleep(LATER).await;
        let tree = self.tree(app).await.ok()?;
        contradiction(tree.node(&shown.uid)?, &live)
    }
}

/// A workload that is ready, and shown as something else from a time when it was not.
fn contradiction(shown: &Node, live: &Value) -> Option<String> {
    let version = live.pointer("/metadata/resourceVersion")?.as_str()?;
    let health = shown.health();
    // One that is paused is ready and Suspended.
    let doubtful = matches!(health, Health::Progressing | Health::Degraded | Health::Missing);
    if !doubtful || awaits(live).is_some() || shown.resource_version == version {
        return None;
    }
    Some(format!(
        "{}: ready in the cluster, at version {version}; Argo CD still shows version {} as {health}",
        shown.name(),
        shown.resource_version
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(health: &str, shown: &str, ready: u64) -> Option<String> {
        let node = json!({
            "kind": "Deployment", "name": "app", "resourceVersion": shown,
            "health": { "status": health },
        });
        let live = json!({
            "kind": "Deployment", "metadata": { "generation": 1, "resourceVersion": "20" },
            "spec": { "replicas": 1 },
            "status": {
                "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
                "availableReplicas": ready,
            },
        });
        contradiction(&serde_json::from_value(node).unwrap(), &live)
    }

    #[test]
    fn a_ready_workload_that_is_shown_from_before_is_told() {
        let text = told("Progressing", "10", 1).unwrap();
        assert_eq!(
            text,
            "Deployment/app: ready in the cluster, at version 20; Argo CD still shows version 10 as \
             Progressing"
        );
        assert_eq!(told("Progressing", "10", 0), None, "it is not ready");
        assert_eq!(told("Healthy", "10", 1), None, "only its status was written again");
        assert_eq!(told("Suspended", "10", 1), None, "it is paused");
        assert_eq!(told("Degraded", "20", 1), None, "Argo CD judges the same object otherwise");
    }
}
