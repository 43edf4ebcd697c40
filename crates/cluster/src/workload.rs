//! Kubernetes' own kinds that run pods: whether all of their pods are new and work.

use serde_json::Value;

#[must_use]
pub fn is_workload(kind: &str) -> bool {
    ["Deployment", "StatefulSet", "DaemonSet"].contains(&kind)
}

/// What a workload waits for; nothing once it is ready.
pub fn awaits(live: &Value) -> Option<String> {
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    if number("/status/observedGeneration") < number("/metadata/generation") {
        return Some("its controller has not seen it yet".to_owned());
    }
    let wanted = live.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    match live["kind"].as_str().unwrap_or_default() {
        "Deployment" => {
            let (all, updated) = (number("/status/replicas"), number("/status/updatedReplicas"));
            let available = number("/status/availableReplicas");
            (updated < wanted || available < wanted || all > updated).then(|| {
                format!("{available} of {wanted} pods are available, {updated} of them new")
            })
        }
        "StatefulSet" => {
            let ready = number("/status/readyReplicas");
            let current =
                live.pointer("/status/currentRevision") == live.pointer("/status/updateRevision");
            (ready < wanted || !current).then(|| format!("{ready} of {wanted} pods are ready"))
        }
        _ => {
            let wanted = number("/status/desiredNumberScheduled");
            let available = number("/status/numberAvailable");
            let updated = number("/status/updatedNumberScheduled");
            (available < wanted || updated < wanted)
                .then(|| format!("{available} of {wanted} pods are available"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(status: &Value) -> Option<String> {
        awaits(&json!({
            "kind": "Deployment", "metadata": { "generation": 2 }, "spec": { "replicas": 2 },
            "status": status,
        }))
    }

    #[test]
    fn a_deployment_is_ready_when_all_of_it_is_new_and_available() {
        let status = |generation: u64, all: u64, updated: u64, available: u64| {
            deployment(&json!({
                "observedGeneration": generation, "replicas": all, "updatedReplicas": updated,
                "availableReplicas": available,
            }))
        };
        assert_eq!(status(2, 2, 2, 2), None);
        for (case, early) in [
            ("an old look", status(1, 2, 2, 2)),
            ("an old pod is left", status(2, 3, 2, 3)),
            ("half of it is old", status(2, 2, 1, 2)),
            ("not available", status(2, 2, 2, 1)),
            ("nothing yet", deployment(&json!({}))),
        ] {
            assert_ne!(early, None, "{case}");
        }
    }

    #[test]
    fn a_stateful_set_is_ready_when_its_revision_is_the_newest() {
        let set = |ready: u64, current: &str| {
            awaits(&json!({
                "kind": "StatefulSet", "metadata": { "generation": 1 }, "spec": { "replicas": 1 },
                "status": {
                    "observedGeneration": 1, "readyReplicas": ready, "currentRevision": current,
                    "updateRevision": "b",
                },
            }))
        };
        assert_eq!(set(1, "b"), None);
        assert_ne!(set(1, "a"), None);
        assert_ne!(set(0, "b"), None);
    }
}
