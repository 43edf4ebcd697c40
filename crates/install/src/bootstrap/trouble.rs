//! Why the pods of a workload do not start, from what Kubernetes says about them.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use tiphys_cluster::stuck;
use tiphys_cluster::{Kinds, ObjectName};

/// What is wrong, and what to do about it.
#[derive(Debug)]
pub struct Trouble {
    pub text: String,
    pub next: Option<&'static str>,
}

/// Looks at the pods of a workload, and at the workload itself if it has none. Nothing is found
/// where nothing is said: then there is nothing to add.
pub(super) async fn of(client: &Client, workload: &ObjectName) -> Option<Trouble> {
    let kinds = Kinds::discover(client).await.ok()?;
    let live = kinds.get(workload).await.ok().flatten()?;
    let labels = live.data.pointer("/spec/selector/matchLabels")?.as_object()?.clone();
    let selector: Vec<String> = labels
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
        .collect();
    let failure = live.data.pointer("/status/conditions").and_then(|c| c.as_array());
    let failure = failure.into_iter().flatten().find(|c| c["type"] == "ReplicaFailure");
    // New pods cannot even be made: those that there are say what was wrong before.
    if let Some(message) = failure.and_then(|failure| failure["message"].as_str()) {
        return Some(Trouble::new(message.to_owned()));
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &workload.namespace);
    let pods = pods.list(&ListParams::default().labels(&selector.join(","))).await.ok()?;
    if let Some(text) = pods.items.iter().find_map(of_pod) {
        return Some(Trouble::new(text));
    }
    // Other kinds say it in events only.
    stuck::events(client, workload).await.pop().map(Trouble::new)
}

impl Trouble {
    fn new(text: String) -> Self {
        Trouble { next: next(&text), text }
    }
}

/// What a pod says of itself, if it is not ready.
fn of_pod(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let name = pod.name_any();
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    if let Some(text) = containers.flatten().find_map(of_container) {
        return Some(format!("pod {name}: {text}"));
    }
    let conditions = status.conditions.iter().flatten();
    let unscheduled = conditions.clone().find(|c| c.type_ == "PodScheduled" && c.status == "False");
    let unready = || conditions.clone().find(|c| c.type_ == "Ready" && c.status == "False");
    let condition = unscheduled.or_else(unready)?;
    let reason = condition.reason.as_deref().or(status.reason.as_deref()).unwrap_or_default();
    let message = condition.message.as_deref().or(status.message.as_deref()).unwrap_or_default();
    Some(format!("pod {name}: {reason} {message}").trim_end().to_owned())
}

fn of_container(container: &ContainerStatus) -> Option<String> {
    let name = &container.name;
    let ended = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        // What comes before every start.
        if ["PodInitializing", "ContainerCreating"].contains(&reason) {
            return None;
        }
        let message = waiting.message.as_deref().unwrap_or_default();
        let why = ended.map_or_else(String::new, |ended| {
            let reason = ended.reason.as_deref().unwrap_or("no reason");
            format!(" (last exit: {reason}, code {})", ended.exit_code)
        });
        return Some(format!("container {name}: {reason} {message}{why}").trim().to_owned());
    }
    let terminated = state.terminated.as_ref().filter(|terminated| terminated.exit_code != 0)?;
    let reason = terminated.reason.as_deref().unwrap_or_default();
    Some(format!("container {name} exited with code {}: {reason}", terminated.exit_code))
}

const IMAGE: &str = "make the image reachable: check its name, the registry, its credentials, and \
    `spec.bootstrap.images` for a mirror";

/// What helps, by what is said. What keeps pods from being made comes first.
pub(super) const CAUSES: [(&str, &str); 8] = [
    ("exceeded quota", "raise the quota of the namespace, or lower the requests with `patches`"),
    ("violates PodSecurity", "set the missing security settings with `patches`"),
    ("Insufficient", "add nodes to the cluster, or lower the requests with `patches`"),
    ("untolerated taint", "remove the taint from a node, or add a toleration with `patches`"),
    ("OOMKilled", "raise its memory limit with `patches`"),
    ("ImagePull", IMAGE),
    ("ErrImage", IMAGE),
    ("CrashLoopBackOff", "run `kubectl logs --previous` to see why it exits"),
];

fn next(text: &str) -> Option<&'static str> {
    CAUSES.iter().find(|(word, _)| text.contains(word)).map(|(_, next)| *next)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(status: &Value) -> Option<String> {
        let pod = json!({ "metadata": { "name": "p" }, "status": status });
        of_pod(&serde_json::from_value(pod).unwrap())
    }

    fn container(state: &Value, last: &Value) -> Value {
        json!({ "containerStatuses": [{
            "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
            "state": state, "lastState": last,
        }] })
    }

    #[test]
    fn the_pod_says_why() {
        let pull = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "not found" } });
        let text = said(&container(&pull, &json!({}))).unwrap();
        assert_eq!(text, "pod p: container c: ImagePullBackOff not found");
        assert!(next(&text).unwrap().contains("mirror"));
        let crash = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": "back-off" } });
        let killed = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
        let text = said(&container(&crash, &killed)).unwrap();
        assert!(text.ends_with("(last exit: OOMKilled, code 137)"), "{text}");
        assert!(next(&text).unwrap().contains("memory"));
        let pending = json!({ "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Insufficient cpu.",
        }] });
        let text = said(&pending).unwrap();
        assert_eq!(text, "pod p: Unschedulable 0/1 nodes are available: 1 Insufficient cpu.");
        assert!(next(&text).unwrap().contains("nodes"));
    }

    #[test]
    fn a_pod_that_is_starting_is_in_no_trouble() {
        let creating = json!({ "waiting": { "reason": "ContainerCreating" } });
        assert_eq!(said(&container(&creating, &json!({}))), None);
        assert_eq!(said(&json!({})), None);
    }
}
