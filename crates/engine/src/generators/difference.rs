//! Whether an Application has the spec that Argo CD renders for it.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// The path of a field: `spec`, `sources`, `1`, `targetRevision`. What stands there is never said:
/// inline values of a chart may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field(pub Vec<String>);

/// Fields where a zero value says something else than no value.
const MEANT_WHEN_ZERO: [&str; 3] = ["automated", "enabled", "revisionHistoryLimit"];
/// What is below belongs to a chart, and so do its zero values.
const CHART_VALUES: &str = "valuesObject";

/// The first field in which the two specs differ, apart from these. A field that is absent equals
/// one with a zero value: Argo CD leaves those out where it writes a spec itself.
pub(super) fn differs(rendered: &Value, live: &Value, ignored: &[Field]) -> Option<Field> {
    let path = Field(vec!["spec".to_owned()]);
    first_difference(&significant_spec(rendered, ignored), &significant_spec(live, ignored), &path)
}

fn significant_spec(spec: &Value, ignored: &[Field]) -> Value {
    let mut spec = spec.clone();
    if spec["project"].as_str().unwrap_or_default().is_empty() {
        spec["project"] = "default".into();
    }
    significant(&spec, &Field(vec!["spec".to_owned()]), ignored, false)
}

/// A value without what says nothing; `null` if nothing is left.
fn significant(value: &Value, at: &Field, ignored: &[Field], of_chart: bool) -> Value {
    if ignored.contains(at) {
        return Value::Null;
    }
    let field = at.0.last().map_or("", String::as_str);
    let below = of_chart || field == CHART_VALUES;
    let within = |step: String, value| significant(value, &at.then(step), ignored, below);
    let left = match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name, within(name.clone(), value)));
            let fields = fields.filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| (name.clone(), value)).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate().map(|(n, item)| within(n.to_string(), item));
            items.collect::<Vec<_>>().into()
        }
        other => other.clone(),
    };
    let counts = of_chart || MEANT_WHEN_ZERO.contains(&field) || !is_zero(&left);
    if counts { left } else { Value::Null }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn first_difference(one: &Value, other: &Value, at: &Field) -> Option<Field> {
    let equal = match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let of = |fields: &Map<String, Value>, name: &String| {
                fields.get(name).cloned().unwrap_or_default()
            };
            return names.into_iter().find_map(|name| {
                first_difference(&of(one, name), &of(other, name), &at.then(name.clone()))
            });
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut both = one.iter().zip(other).enumerate();
            return both.find_map(|(n, (one, other))| {
                first_difference(one, other, &at.then(n.to_string()))
            });
        }
        // `1.0` comes back as `1`.
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    };
    (!equal).then(|| at.clone())
}

impl Field {
    fn then(&self, step: String) -> Field {
        Field(self.0.iter().cloned().chain([step]).collect())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.0.iter().enumerate() {
            match step.parse::<usize>() {
                Ok(index) => write!(f, "[{index}]")?,
                Err(_) if n == 0 => f.write_str(step)?,
                Err(_) => write!(f, ".{step}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(rendered: &Value, live: &Value, ignored: &[Field]) -> Option<String> {
        let found = differs(rendered, live, ignored).map(|field| field.to_string());
        let other_way = differs(live, rendered, ignored).map(|field| field.to_string());
        assert_eq!(found, other_way, "{rendered} {live}");
        found
    }

    #[test]
    fn the_first_field_that_differs_is_named() {
        let values = |values: Value| json!({ "source": { "helm": { "valuesObject": values } } });
        let automated = |policy: Value| json!({ "syncPolicy": policy });
        let sources = |second: &str| {
            let sources = [json!({ "chart": "c" }), json!({ "targetRevision": second })];
            json!({ "sources": sources })
        };
        let cases = [
            (
                json!({ "source": { "targetRevision": "new" } }),
                json!({ "source": { "targetRevision": "old" } }),
                "spec.source.targetRevision",
            ),
            (sources("new"), sources("old"), "spec.sources[1].targetRevision"),
            (sources("new"), json!({ "sources": [{ "chart": "c" }] }), "spec.sources"),
            (sources("new"), json!({ "source": { "chart": "c" } }), "spec.source"),
            (
                json!({ "source": { "helm": { "values": "a: 1" } } }),
                json!({ "source": { "path": "" } }),
                "spec.source",
            ),
            (values(json!({ "a": { "n": 0 } })), values(json!({ "a": {} })), "VALUES.a.n"),
            (values(json!({ "a": 1, "on": false })), values(json!({ "a": 1 })), "VALUES.on"),
            (values(json!({ "a": [] })), values(json!({ "a": [0] })), "VALUES.a"),
            (automated(json!({ "automated": {} })), automated(json!({})), "spec.syncPolicy"),
            (
                automated(json!({ "automated": { "enabled": false } })),
                automated(json!({ "automated": {} })),
                "spec.syncPolicy.automated.enabled",
            ),
            (json!({ "revisionHistoryLimit": 0 }), json!({}), "spec.revisionHistoryLimit"),
            (json!({ "project": "apps" }), json!({}), "spec.project"),
            (json!({ "destination": { "namespace": "a" } }), json!({}), "spec.destination"),
        ];
        for (rendered, live, field) in cases {
            let field = field.replace("VALUES", "spec.source.helm.valuesObject");
            assert_eq!(found(&rendered, &live, &[]), Some(field), "{rendered} {live}");
        }
    }

    #[test]
    fn what_says_the_same_does_not_differ() {
        let cases = [
            (json!({}), json!({ "project": "default" })),
            (json!({ "source": { "helm": {} } }), json!({ "source": {} })),
            (json!({ "source": { "directory": { "jsonnet": {} } } }), json!({ "source": null })),
            (json!({ "syncPolicy": { "syncOptions": [] } }), json!({ "syncPolicy": null })),
            (
                json!({ "syncPolicy": { "automated": { "prune": false } } }),
                json!({ "syncPolicy": { "automated": {} } }),
            ),
            (
                json!({ "source": { "helm": { "valuesObject": { "n": 1.0, "gone": null } } } }),
                json!({ "source": { "helm": { "valuesObject": { "n": 1 } } } }),
            ),
            (json!({ "source": { "helm": { "valuesObject": {} } } }), json!({})),
        ];
        for (rendered, live) in cases {
            assert_eq!(found(&rendered, &live, &[]), None, "{rendered} {live}");
        }
    }

    #[test]
    fn what_is_ignored_does_not_differ_and_all_else_does() {
        let field = |path: &str| Field(path.split('.').map(str::to_owned).collect());
        let rendered = json!({ "source": { "targetRevision": "new", "path": "a" } });
        let live = json!({ "source": { "targetRevision": "old", "path": "a" } });
        let ignored = [field("spec.source.targetRevision")];
        assert_eq!(found(&rendered, &live, &ignored), None);
        let live = json!({ "source": { "targetRevision": "old", "path": "b" } });
        assert_eq!(found(&rendered, &live, &ignored).unwrap(), "spec.source.path");
        assert_eq!(found(&rendered, &live, &[field("spec")]), None);
    }
}
