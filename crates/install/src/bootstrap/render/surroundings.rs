//! What a primitive lives in: its namespace, and who may talk to it.

use serde_json::{Value, json};
use tiphys_model::bootstrap::{Primitive, PrimitiveName};

const EVENTS_METRICS_PORT: u16 = 7777;

/// The namespace, and network policies where upstream has none.
pub(super) fn surroundings(primitive: &Primitive) -> Vec<Value> {
    let policies = match primitive.name {
        // Upstream has one for each of its components.
        PrimitiveName::ArgoCd => Vec::new(),
        PrimitiveName::Tiphys => vec![only_from_within(primitive)],
        PrimitiveName::Workflows => vec![
            only_from_within(primitive),
            open(primitive, "argo-server", &json!({ "matchLabels": { "app": "argo-server" } })),
        ],
        PrimitiveName::Events => vec![
            only_from_within(primitive),
            // Webhooks come from outside.
            open(
                primitive,
                "eventsources",
                &json!({ "matchExpressions": [{ "key": "eventsource-name", "operator": "Exists" }] }),
            ),
            // The API server calls it, which is in no namespace.
            open(primitive, "webhook", &json!({ "matchLabels": { "app": "events-webhook" } })),
        ],
    };
    [namespace(primitive)].into_iter().chain(policies).collect()
}

/// Argo CD's own pods and ours keep the strictest rules. Workflows and events make pods of their
/// users'.
fn namespace(primitive: &Primitive) -> Value {
    let enforced = match primitive.name {
        PrimitiveName::ArgoCd | PrimitiveName::Tiphys => "restricted",
        PrimitiveName::Workflows | PrimitiveName::Events => "baseline",
    };
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": primitive.namespace,
            "labels": {
                "pod-security.kubernetes.io/enforce": enforced,
                "pod-security.kubernetes.io/warn": "restricted",
            },
        },
    })
}

/// Nobody but its own namespace reaches a pod, and metrics are for everybody in the cluster.
fn only_from_within(primitive: &Primitive) -> Value {
    let mut metrics = vec![json!({ "port": "metrics" })];
    if primitive.name == PrimitiveName::Events {
        // Its controller gives the port no name.
        metrics.push(json!({ "port": EVENTS_METRICS_PORT }));
    }
    policy(
        primitive,
        "only-from-within",
        &json!({}),
        &json!([
            { "from": [{ "podSelector": {} }] },
            { "from": [{ "namespaceSelector": {} }], "ports": metrics },
        ]),
    )
}

fn open(primitive: &Primitive, name: &str, pods: &Value) -> Value {
    policy(primitive, name, pods, &json!([{}]))
}

fn policy(primitive: &Primitive, name: &str, pods: &Value, ingress: &Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": { "name": format!("tiphys-{name}"), "namespace": primitive.namespace },
        "spec": { "podSelector": pods, "policyTypes": ["Ingress"], "ingress": ingress },
    })
}
