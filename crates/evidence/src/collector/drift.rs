//! In which fields resources differ from what their source says.

use serde::Deserialize;
use serde_json::Value;

use tiphys_cluster::ObjectName;

#[derive(Debug, Deserialize)]
pub(super) struct ManagedList {
    pub(super) items: Option<Vec<Managed>>,
}

/// A resource as it is and as it should be. Argo CD has taken out what is to be ignored, and
/// hides the values of Secrets.
#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Managed {
    #[serde(flatten)]
    pub(super) object: ObjectName,
    live_state: String,
    target_state: String,
    normalized_live_state: String,
    predicted_live_state: String,
    hook: bool,
}

/// How much of a value is shown.
const VALUE: usize = 60;

/// `Kind/name: path is THIS and should be THAT`, at most so many.
pub(super) fn differences(resources: &[Managed], limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    for resource in resources.iter().filter(|resource| !resource.hook) {
        let (live, target) = (state(&resource.live_state), state(&resource.target_state));
        let name = resource.name();
        match (live, target) {
            (Value::Null, Value::Null) => {}
            (Value::Null, _) => found.push(format!("{name}: is not in the cluster")),
            (_, Value::Null) => found.push(format!("{name}: is not in the source any more")),
            (_, _) => {
                let live = state(&resource.normalized_live_state);
                let predicted = state(&resource.predicted_live_state);
                let mut paths = Vec::new();
                compare("", &live, &predicted, &mut paths);
                found.extend(paths.into_iter().map(|path| format!("{name}: {path}")));
            }
        }
    }
    let rest = found.len().saturating_sub(limit);
    found.truncate(limit);
    if rest > 0 {
        found.push(format!("and {rest} more"));
    }
    found
}

/// A resource whose controller has not seen its newest generation.
pub(super) fn lagging(resource: &Managed) -> Option<String> {
    lags(&state(&resource.live_state)).then(|| resource.name())
}

/// Whether the controller of an object has not seen its newest generation, as far as it says.
pub(super) fn lags(live: &Value) -> bool {
    let number = |pointer| live.pointer(pointer).and_then(Value::as_i64);
    let (generation, observed) =
        (number("/metadata/generation"), number("/status/observedGeneration"));
    observed.is_some_and(|observed| generation.is_some_and(|generation| observed < generation))
}

impl Managed {
    fn name(&self) -> String {
        format!("{}/{}", self.object.kind, self.object.name)
    }

    /// Of its API.
    pub(super) fn version(&self) -> String {
        let live = state(&self.live_state);
        let version = live["apiVersion"].as_str().unwrap_or_default();
        version.rsplit('/').next().unwrap_or_default().to_owned()
    }
}

/// A resource that is being deleted and waits for somebody.
pub(super) fn held_back(resource: &Managed) -> Option<String> {
    let live = state(&resource.live_state);
    let since = live.pointer("/metadata/deletionTimestamp")?.as_str()?;
    let finalizers = live.pointer("/metadata/finalizers")?.as_array()?;
    let finalizers: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
    let name = resource.name();
    let waits = format!("waits for the finalizers {}", finalizers.join(", "));
    (!finalizers.is_empty()).then(|| format!("{name} is being deleted since {since} and {waits}"))
}

/// Argo CD puts objects in texts; none is an empty text or `null`.
fn state(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn compare(path: &str, live: &Value, target: &Value, found: &mut Vec<String>) {
    if live == target {
        return;
    }
    match (live, target) {
        (Value::Object(live), Value::Object(target)) => {
            for (key, value) in live {
                let other = target.get(key).unwrap_or(&Value::Null);
                compare(&join(path, key), value, other, found);
            }
            for (key, value) in target.iter().filter(|(key, _)| !live.contains_key(*key)) {
                compare(&join(path, key), &Value::Null, value, found);
            }
        }
        (Value::Array(live), Value::Array(target)) if live.len() == target.len() => {
            for (at, (live, target)) in live.iter().zip(target).enumerate() {
                compare(&format!("{path}[{at}]"), live, target, found);
            }
        }
        (Value::Null, target) => found.push(format!("{path} should be {}", short(target))),
        (live, Value::Null) => {
            found.push(format!("{path} is {} and should not be set", short(live)));
        }
        (live, target) => {
            found.push(format!("{path} is {} and should be {}", short(live), short(target)));
        }
    }
}

/// A key with dots in it is quoted, or nobody could tell where it ends.
fn join(path: &str, key: &str) -> String {
    let plain = key.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    match (path.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[\"{key}\"]"),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn managed(live: &Value, target: &Value) -> Managed {
        let text = |value: &Value| value.to_string();
        Managed {
            object: ObjectName {
                group: "apps".to_owned(),
                kind: "Deployment".to_owned(),
                namespace: "shop".to_owned(),
                name: "web".to_owned(),
            },
            live_state: text(live),
            target_state: text(target),
            normalized_live_state: text(live),
            predicted_live_state: text(target),
            hook: false,
        }
    }

    fn paths(live: &Value, target: &Value) -> Vec<String> {
        differences(&[managed(live, target)], 10)
    }

    #[test]
    fn fields_are_named_with_both_values() {
        let live = json!({
            "metadata": { "annotations": { "a.b/c": "1" } },
            "spec": { "replicas": 1, "args": ["a", "b"], "extra": true, "ports": [1] },
        });
        let target = json!({
            "metadata": { "annotations": { "a.b/c": "2" } },
            "spec": { "replicas": 3, "args": ["a", "c"], "paused": false, "ports": [1, 2] },
        });
        assert_eq!(
            paths(&live, &target),
            [
                "Deployment/web: metadata.annotations[\"a.b/c\"] is \"1\" and should be \"2\"",
                "Deployment/web: spec.args[1] is \"b\" and should be \"c\"",
                "Deployment/web: spec.extra is true and should not be set",
                "Deployment/web: spec.ports is [1] and should be [1,2]",
                "Deployment/web: spec.replicas is 1 and should be 3",
                "Deployment/web: spec.paused should be false",
            ]
        );
    }

    #[test]
    fn what_is_missing_on_either_side_is_said() {
        let object = json!({ "spec": {} });
        assert_eq!(paths(&Value::Null, &object), ["Deployment/web: is not in the cluster"]);
        assert_eq!(paths(&object, &Value::Null), ["Deployment/web: is not in the source any more"]);
        assert_eq!(paths(&object, &object), Vec::<String>::new());
        let object = ObjectName { kind: "A".to_owned(), ..ObjectName::default() };
        let empty = Managed { object, ..Managed::default() };
        assert_eq!(differences(&[empty], 10), Vec::<String>::new());
    }

    #[test]
    fn there_is_an_end_to_it() {
        let all = |value: u32| -> Value {
            (0..20)
                .map(|at| (format!("f{at:02}"), json!(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let found = differences(&[managed(&all(1), &all(2))], 10);
        assert_eq!((found.len(), found[10].as_str()), (11, "and 10 more"));
    }

    #[test]
    fn what_holds_a_deletion_back_is_named() {
        let object = |finalizers: Value| {
            let stamp = "2026-11-15T12:00:00Z";
            let metadata = json!({ "deletionTimestamp": stamp, "finalizers": finalizers });
            held_back(&managed(&json!({ "metadata": metadata }), &json!({})))
        };
        assert_eq!(
            object(json!(["a/b", "c/d"])).unwrap(),
            "Deployment/web is being deleted since 2026-11-15T12:00:00Z and waits for the \
             finalizers a/b, c/d"
        );
        assert_eq!(object(json!([])), None);
        assert_eq!(held_back(&managed(&json!({ "metadata": {} }), &json!({}))), None);
    }

    #[test]
    fn a_controller_that_lags_behind_is_found() {
        let object = |generation: u32, observed: Value| {
            let status = json!({ "observedGeneration": observed });
            managed(
                &json!({ "metadata": { "generation": generation }, "status": status }),
                &json!({}),
            )
        };
        assert_eq!(lagging(&object(3, json!(2))).as_deref(), Some("Deployment/web"));
        assert_eq!(lagging(&object(3, json!(3))), None);
        assert_eq!(lagging(&object(3, Value::Null)), None, "not every controller says so");
    }

    #[test]
    fn a_resource_is_asked_for_by_all_that_it_is_known_by() {
        let resource = json!({
            "group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web",
            "liveState": json!({ "apiVersion": "apps/v1" }).to_string(),
        });
        let resource: Managed = serde_json::from_value(resource).unwrap();
        assert_eq!(resource.version(), "v1");
        let ObjectName { group, kind, namespace, name } = resource.object;
        assert_eq!([group, kind, namespace, name], ["apps", "Deployment", "shop", "web"]);
    }
}
