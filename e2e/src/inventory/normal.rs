//! An object without what differs between two that are the same.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Drawn by lot, counted, or kept by the API server about itself.
const DRAWN: [&str; 9] = [
    "uid",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "managedFields",
    "selfLink",
    "nodePort",
    "healthCheckNodePort",
    "caBundle",
];
/// Labels whose values stand in the names of what controllers make from a template.
const HASHES: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];
/// A volume that every pod with a token gets; five letters follow.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// `namespace/name` and the object, both in their comparable form.
pub(super) fn object(kind: &str, mut object: Value) -> (String, Value) {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    let hashes: Vec<String> = HASHES
        .iter()
        .filter_map(|label| metadata["labels"][label].as_str())
        .map(str::to_owned)
        .collect();
    let (name, generated, namespace) = (text("name"), text("generateName"), text("namespace"));
    // What is generated in the name may be repeated in labels.
    let mut drawn = hashes;
    if !generated.is_empty() && name.starts_with(&generated) {
        drawn.push(name[generated.len()..].to_owned());
    }
    if let Some(status) = object.get_mut("status") {
        *status = essence(status);
    }
    if kind == "Secret" {
        hide(&mut object["data"]);
    }
    strip(&mut object, &drawn);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let full = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    (full, object)
}

/// Of a status, only what says whether the object is as it should be: the rest tells how it got
/// there, which differs from time to time.
fn essence(status: &Value) -> Value {
    let mut kept = Map::new();
    for pointer in ["/phase", "/health/status", "/sync/status", "/sync/revision"] {
        if let Some(text) = status.pointer(pointer) {
            kept.insert(pointer[1..].to_owned(), text.clone());
        }
    }
    Value::Object(kept)
}

/// What is secret counts by its name.
fn hide(data: &mut Value) {
    for value in data.as_object_mut().into_iter().flat_map(Map::values_mut) {
        *value = "(secret)".into();
    }
}

fn strip(value: &mut Value, drawn: &[String]) {
    match value {
        Value::Object(fields) => {
            for name in DRAWN {
                fields.remove(name);
            }
            fields.values_mut().for_each(|field| strip(field, drawn));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, drawn)),
        Value::String(text) => *text = plain(text, drawn),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn plain(text: &str, drawn: &[String]) -> String {
    if text.parse::<Timestamp>().is_ok() {
        return "(time)".to_owned();
    }
    if text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok() {
        return "(address)".to_owned();
    }
    if text.contains("-----BEGIN CERTIFICATE-----") {
        return "(certificate)".to_owned();
    }
    if text.starts_with(TOKEN_VOLUME) {
        return format!("{TOKEN_VOLUME}*");
    }
    drawn.iter().fold(text.to_owned(), |text, hash| text.replace(hash.as_str(), "*"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A pod of a Deployment, as two clusters have it.
    fn pod(hash: &str, suffix: &str, time: &str, address: &str) -> Value {
        json!({
            "metadata": {
                "name": format!("vault-{hash}-{suffix}"),
                "generateName": format!("vault-{hash}-"),
                "namespace": "vault",
                "uid": format!("{suffix}{suffix}"),
                "creationTimestamp": time,
                "labels": { "app": "vault", "pod-template-hash": hash },
                "ownerReferences": [{ "kind": "ReplicaSet", "name": format!("vault-{hash}"), "uid": suffix }],
            },
            "spec": { "volumes": [{ "name": format!("kube-api-access-{suffix}") }] },
            "status": { "phase": "Running", "podIP": address, "startTime": time },
        })
    }

    #[test]
    fn what_a_cluster_draws_by_lot_makes_no_difference() {
        let one = object("Pod", pod("5d4b9c", "x7k2p", "2026-11-15T00:00:00Z", "10.244.0.7"));
        let two = object("Pod", pod("77f6bd", "q9zzt", "2026-11-16T01:02:03Z", "10.244.0.9"));
        assert_eq!(one, two);
        assert_eq!(one.0, "vault/vault-*-*");
        assert_eq!(one.1["status"], json!({ "phase": "Running" }));
        assert_eq!(one.1["metadata"]["ownerReferences"][0]["name"], "vault-*");
    }

    #[test]
    fn what_a_person_wrote_does() {
        let of = |value: &str| {
            let map = json!({ "metadata": { "name": "x" }, "data": { "k": value } });
            object("ConfigMap", map)
        };
        assert_ne!(of("1"), of("2"));
        assert_eq!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(of("1").0, "x");
    }

    #[test]
    fn secrets_count_by_name_only() {
        let of =
            |data: Value| object("Secret", json!({ "metadata": { "name": "x" }, "data": data }));
        assert_eq!(of(json!({ "token": "b25l" })), of(json!({ "token": "dHdv" })));
        assert_ne!(of(json!({ "token": "b25l" })), of(json!({ "other": "b25l" })));
    }

    #[test]
    fn of_a_status_its_verdict_is_kept() {
        let application = json!({
            "metadata": { "name": "vault" },
            "status": {
                "health": { "status": "Healthy", "lastTransitionTime": "2026-11-15T00:00:00Z" },
                "sync": { "status": "Synced", "revision": "abc" },
                "history": [{ "id": 3 }],
            },
        });
        let (_, application) = object("Application", application);
        let kept =
            json!({ "health/status": "Healthy", "sync/status": "Synced", "sync/revision": "abc" });
        assert_eq!(application["status"], kept);
    }
}
