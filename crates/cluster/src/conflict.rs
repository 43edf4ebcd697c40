//! Server-side apply takes no field from whoever manages it: what is said then.

use kube::core::Status;
use serde_json::Value;
use tiphys_model::{Exit, Explain, Explanation};

/// An object that cannot be written, because somebody else manages fields of it.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub struct FieldConflict {
    /// The object, in words.
    object: String,
    fields: Vec<Field>,
    /// What the API server said.
    message: String,
}

#[derive(Debug)]
struct Field {
    path: String,
    manager: String,
    needed: Needed,
}

#[derive(Debug)]
enum Needed {
    Value(Value),
    /// What takes a page to say is found with `--dry-run`, or in the program's sources.
    Text,
    /// A secret, or nothing that could be shown.
    Unsaid,
}

impl FieldConflict {
    /// `object` is the object in words, `desired` what it was to become.
    #[must_use]
    pub fn new(object: &str, desired: &Value, status: Status) -> Self {
        let causes = status.details.into_iter().flat_map(|details| details.causes);
        let fields = causes
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .map(|cause| {
                // `conflict with "MANAGER" using v1`
                let manager = cause.message.split('"').nth(1).unwrap_or(&cause.message);
                Field {
                    manager: manager.to_owned(),
                    needed: needed(desired, &cause.field),
                    path: cause.field,
                }
            })
            .collect();
        FieldConflict { object: object.to_owned(), fields, message: status.message }
    }
}

impl Explain for FieldConflict {
    fn explain(&self) -> Explanation {
        let what = format!("{} has fields that somebody else manages", self.object);
        if self.fields.is_empty() {
            return Explanation::new(Exit::Failed, what, &self.message);
        }
        let said = self.fields.iter().map(|Field { path, manager, needed }| {
            let needed = match needed {
                Needed::Value(value) => format!(", and Tiphys needs {value}"),
                Needed::Text => ", and Tiphys needs another text".to_owned(),
                Needed::Unsaid => String::new(),
            };
            format!("`{path}` is managed by `{manager}`{needed}")
        });
        Explanation::new(Exit::Failed, what, said.collect::<Vec<_>>().join("; ")).hint(
            "set the same value with that manager, or remove the field there, and run this again",
        )
    }
}

fn needed(desired: &Value, path: &str) -> Needed {
    match field_value(desired, path) {
        Some(Value::String(text)) if text.lines().count() > 1 => Needed::Text,
        Some(value) if desired["kind"] != "Secret" => Needed::Value(value.clone()),
        _ => Needed::Unsaid,
    }
}

/// The value at a path as the API server writes it in conflicts: `.spec.source.path`,
/// `.data.accounts.tiphys`. Keys may have dots in them, so the longest that fits is taken.
fn field_value<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() {
        return Some(object);
    }
    let fields = object.as_object()?;
    let fits = |name: &str| {
        let rest = path.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with('.')).then_some(rest)
    };
    let mut fitting: Vec<(&String, &str)> =
        fields.keys().filter_map(|name| Some((name, fits(name)?))).collect();
    fitting.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    fitting.into_iter().find_map(|(name, rest)| field_value(&fields[name], rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_found_as_conflicts_name_them() {
        let object = json!({
            "spec": { "sourceRepos": ["*"], "source": { "path": "root" } },
            "data": { "accounts.tiphys": "apiKey", "policy.tiphys-prod.csv": "p" },
        });
        assert_eq!(field_value(&object, ".spec.source.path"), Some(&json!("root")));
        assert_eq!(field_value(&object, ".spec.sourceRepos"), Some(&json!(["*"])));
        assert_eq!(field_value(&object, ".data.accounts.tiphys"), Some(&json!("apiKey")));
        assert_eq!(field_value(&object, ".data.policy.tiphys-prod.csv"), Some(&json!("p")));
        assert_eq!(field_value(&object, ".spec.nothing"), None);
    }
}
