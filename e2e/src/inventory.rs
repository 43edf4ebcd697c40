//! All that a cluster contains, in a form in which two clusters, or one at two times, can be
//! compared: without what the cluster itself draws by lot or reads from a clock.

mod normal;

use std::collections::BTreeMap;

use kube::api::{DynamicObject, ListParams};
use kube::core::discovery::verbs;
use kube::{Api, Client, Discovery};
use serde_json::Value;

/// `group/Kind namespace/name`, with `*` for what is generated in a name. The core's group and the
/// namespace of what has none are left out.
pub type Key = String;

pub type Inventory = BTreeMap<Key, Value>;

/// These follow from other objects or come and go by themselves.
const PASSING: [&str; 5] = ["ComponentStatus", "Endpoints", "EndpointSlice", "Event", "Lease"];

/// Everything that can be listed now.
pub async fn inventory(client: &Client) -> Result<Inventory, String> {
    let failed = |error: kube::Error| format!("what kinds there are is not known: {error}");
    // One request: asking group by group fails if one goes away in between.
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(failed)?;
    let mut found: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            let listed = capabilities.supports_operation(verbs::LIST);
            if !listed || PASSING.contains(&resource.kind.as_str()) {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            let objects = match api.list(&ListParams::default()).await {
                Ok(objects) => objects,
                // The kind has gone since it was discovered.
                Err(kube::Error::Api(status)) if status.code == 404 => continue,
                Err(error) => return Err(format!("{} cannot be listed: {error}", resource.kind)),
            };
            for object in objects {
                let text = format!("{} cannot be written as JSON", resource.kind);
                let object = serde_json::to_value(object).map_err(|_| text)?;
                let (name, object) = normal::object(&resource.kind, object);
                let kind = match resource.group.as_str() {
                    "" => resource.kind.clone(),
                    group => format!("{group}/{}", resource.kind),
                };
                found.entry(format!("{kind} {name}")).or_default().push(object);
            }
        }
    }
    Ok(numbered(found))
}

/// What of it belongs to a site, as far as names say. Other tests change the rest meanwhile.
pub async fn inventory_of(client: &Client, site: &str) -> Result<Inventory, String> {
    let mut all = inventory(client).await?;
    let begins = format!("{site}-");
    all.retain(|key, _| {
        let object = key.split(' ').nth(1).unwrap_or_default();
        let mut parts = object.split('/').map(|part| part.trim_start_matches("tiphys-"));
        parts.any(|part| part == site || part.starts_with(&begins))
    });
    Ok(all)
}

/// Objects whose names differ only in what is generated, one after the other.
fn numbered(found: BTreeMap<Key, Vec<Value>>) -> Inventory {
    let mut inventory = Inventory::new();
    for (key, mut objects) in found {
        objects.sort_by_key(Value::to_string);
        for (number, object) in objects.into_iter().enumerate() {
            let key = if number == 0 { key.clone() } else { format!("{key} #{}", number + 1) };
            inventory.insert(key, object);
        }
    }
    inventory
}

/// What is only in the first (`-`), only in the second (`+`), or not the same in both (`~`, with
/// the place in the object).
#[must_use]
pub fn difference(before: &Inventory, after: &Inventory) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, was) in before {
        match after.get(key) {
            None => lines.push(format!("- {key}")),
            Some(is) => changes(key, was, is, &mut lines),
        }
    }
    let new = after.keys().filter(|key| !before.contains_key(*key));
    lines.extend(new.map(|key| format!("+ {key}")));
    lines
}

fn changes(place: &str, was: &Value, is: &Value, lines: &mut Vec<String>) {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let new = is.keys().filter(|name| !was.contains_key(*name));
            for name in was.keys().chain(new) {
                let field = |side: &serde_json::Map<String, Value>| {
                    side.get(name).cloned().unwrap_or_default()
                };
                changes(&format!("{place} {name}"), &field(was), &field(is), lines);
            }
        }
        _ if was == is => {}
        _ => lines.push(format!("~ {place}: {was} -> {is}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_names_objects_and_places() {
        let of = |objects: &[(&str, Value)]| -> Inventory {
            objects.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
        };
        let before = of(&[
            ("ConfigMap a/x", json!({ "data": { "k": "1", "gone": "2" } })),
            ("ConfigMap a/y", json!({})),
        ]);
        let after =
            of(&[("ConfigMap a/x", json!({ "data": { "k": "3" } })), ("Secret a/z", json!({}))]);
        assert_eq!(
            difference(&before, &after),
            [
                "~ ConfigMap a/x data gone: \"2\" -> null",
                "~ ConfigMap a/x data k: \"1\" -> \"3\"",
                "- ConfigMap a/y",
                "+ Secret a/z",
            ]
        );
        assert_eq!(difference(&before, &before), Vec::<String>::new());
    }

    #[test]
    fn names_that_differ_in_what_is_generated_are_counted() {
        let pod = |node: &str| json!({ "spec": { "nodeName": node } });
        let found = |nodes: &[&str]| {
            let pods = nodes.iter().map(|node| pod(node)).collect();
            numbered(BTreeMap::from([("Pod a/x-*".to_owned(), pods)]))
        };
        let inventory = found(&["two", "one"]);
        assert_eq!(inventory["Pod a/x-*"], pod("one"));
        assert_eq!(inventory["Pod a/x-* #2"], pod("two"));
        assert_eq!(inventory, found(&["one", "two"]), "in whatever order they are listed");
        assert_eq!(difference(&inventory, &found(&["one"])), ["- Pod a/x-* #2"]);
    }
}
