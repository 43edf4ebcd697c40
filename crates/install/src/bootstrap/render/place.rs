//! Which namespace an object is in.

use serde_json::Value;

use super::kind;

/// Kinds that are in no namespace, of those that upstream's manifests have.
const CLUSTER_WIDE: [&str; 10] = [
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterWorkflowTemplate",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PriorityClass",
    "StorageClass",
    "ValidatingWebhookConfiguration",
];

/// Puts an object in a namespace. Manifests are written for one namespace, or for whichever they
/// are applied to; bindings and webhooks name it too.
pub(super) fn place(object: &mut Value, written_for: &str, namespace: &str) {
    let moved = |field: &mut Value| {
        if field.is_null() || *field == written_for {
            *field = namespace.into();
        }
    };
    if !CLUSTER_WIDE.contains(&kind(object)) {
        moved(&mut object["metadata"]["namespace"]);
    }
    if ["RoleBinding", "ClusterRoleBinding"].contains(&kind(object)) {
        let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
        for subject in subjects.into_iter().flatten() {
            if subject["kind"] == "ServiceAccount" {
                moved(&mut subject["namespace"]);
            }
        }
    }
    let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
            moved(&mut service["namespace"]);
        }
    }
}
