//! How much of a node a controller may have, and how many of it there are.

use serde_json::{Value, json};

use super::{kind, name, pod_spec};

/// Requests and limits of processor and memory.
struct Size {
    requests: (&'static str, &'static str),
    limits: (&'static str, &'static str),
}

const LARGE: Size = Size { requests: ("250m", "256Mi"), limits: ("500m", "512Mi") };
const MEDIUM: Size = Size { requests: ("125m", "128Mi"), limits: ("250m", "256Mi") };
const SMALL: Size = Size { requests: ("50m", "64Mi"), limits: ("200m", "256Mi") };

/// What renders manifests does so in bursts, and a run waits for it.
const BURSTS: Size = Size { requests: ("250m", "256Mi"), limits: ("1", "1Gi") };

fn size(workload: &str) -> &'static Size {
    match workload {
        "argocd-application-controller" | "workflow-controller" => &LARGE,
        "argocd-repo-server" => &BURSTS,
        "argocd-server" | "argo-server" => &MEDIUM,
        _ => &SMALL,
    }
}

/// Gives every container requests and limits that has none. What upstream has set stays.
pub(super) fn limit(object: &mut Value) {
    let Size { requests, limits } = size(name(object));
    let Some(spec) = pod_spec(object) else { return };
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let resources = &container["resources"];
            if resources.as_object().is_none_or(serde_json::Map::is_empty) {
                container["resources"] = json!({
                    "requests": { "cpu": requests.0, "memory": requests.1 },
                    "limits": { "cpu": limits.0, "memory": limits.1 },
                });
            }
        }
    }
}

/// Those of which a second one takes over, or shares the work, and does not need to be told how.
const REPLICATED: [&str; 7] = [
    "argocd-applicationset-controller",
    "argocd-repo-server",
    "argocd-server",
    "argo-server",
    "controller-manager",
    "events-webhook",
    "workflow-controller",
];

/// How many share the clusters, as Argo CD's controller is told.
const SHARDS: &str = "ARGOCD_CONTROLLER_REPLICAS";

/// Gives what can have them several replicas. What upstream has set to more stays.
pub(super) fn replicate(object: &mut Value, replicas: u64) {
    let few = object["spec"]["replicas"].as_u64().unwrap_or(1) < replicas;
    match (kind(object), name(object)) {
        ("Deployment", name) if few && REPLICATED.contains(&name) => {
            object["spec"]["replicas"] = replicas.into();
        }
        // It has to be told how many share the clusters.
        ("StatefulSet", "argocd-application-controller") if few => {
            object["spec"]["replicas"] = replicas.into();
            let container = object.pointer_mut("/spec/template/spec/containers/0");
            let Some(container) = container else { return };
            let mut variables = container["env"].as_array().cloned().unwrap_or_default();
            variables.retain(|variable| variable["name"] != SHARDS);
            variables.push(json!({ "name": SHARDS, "value": replicas.to_string() }));
            container["env"] = variables.into();
        }
        _ => {}
    }
}
