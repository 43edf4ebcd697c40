//! Objects of any kind.

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;

/// Any kind of object.
#[must_use]
pub fn objects(
    client: &Client,
    version: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let known = GroupVersionKind::gvk(group, version, kind);
    let resource = match kind {
        // Buses and one bus have the same name.
        "EventBus" => ApiResource::from_gvk_with_plural(&known, "eventbus"),
        _ => ApiResource::from_gvk(&known),
    };
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Server-side apply of any object.
pub async fn apply(client: &Client, object: &Value) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let (version, kind) = (text("/apiVersion").expect("a version"), text("/kind").expect("a kind"));
    let name = text("/metadata/name").expect("a name");
    let objects = objects(client, version, kind, text("/metadata/namespace"));
    let params = PatchParams::apply("tiphys-e2e").force();
    let applied = objects.patch(name, &params, &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| unreachable!("{kind} {name} was not applied: {error}"));
}
