//! Server-side apply takes no field from whoever manages it: what is said then.

use kube::core::Status;
use serde_json::Value;

use crate::error::{ClusterError, Kind};

/// Names the fields that somebody else manages, and who. `what` is the object in words.
#[must_use]
pub fn conflict(what: &str, desired: &Value, status: &Status) -> ClusterError {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<(String, String)> = causes
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| {
            // `conflict with "MANAGER" using v1`
            let manager = cause.message.split('"').nth(1).unwrap_or(&cause.message);
            (cause.field.clone(), manager.to_owned())
        })
        .collect();
    let what = format!("{what} has fields that somebody else manages");
    if fields.is_empty() {
        return ClusterError::new(Kind::Failed, what, status.message.clone());
    }
    let said = fields.iter().map(|(field, manager)| {
        let wanted = match field_value(desired, field) {
            // What takes a page to say is found with `--dry-run`, or in the program's sources.
            Some(Value::String(text)) if text.lines().count() > 1 => {
                ", and Tiphys needs another text".to_owned()
            }
            Some(value) if desired["kind"] != "Secret" => {
                format!(", and Tiphys needs {value}")
            }
            _ => String::new(),
        };
        format!("`{field}` is managed by `{manager}`{wanted}")
    });
    ClusterError::new(Kind::Failed, what, said.collect::<Vec<_>>().join("; ")).hint(
        "let whoever manages it set the same value, or take the field out, and run this again",
    )
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
