//! Laying partial objects over manifests, so that a site can have its own sizes and settings.

use serde_json::Value;

use super::{RenderError, kind, name, namespace};

/// Lays each patch over the object that it names. One that fits none is a mistake.
pub(super) fn lay(
    objects: &mut [Value],
    patches: &[Value],
    default_namespace: &str,
) -> Result<(), RenderError> {
    for patch in patches {
        let fits = |object: &&mut Value| {
            let place = match namespace(patch) {
                "" => [default_namespace, ""].contains(&namespace(object)),
                place => namespace(object) == place,
            };
            kind(object) == kind(patch) && name(object) == name(patch) && place
        };
        let Some(object) = objects.iter_mut().find(fits) else {
            return Err(RenderError(format!(
                "a patch targets {} {}, which is not in the manifests",
                kind(patch),
                name(patch)
            )));
        };
        merge(object, patch);
    }
    Ok(())
}

/// Objects are merged field by field, `null` removes a field, lists of named things are merged by
/// name, and everything else is replaced.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(fields), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    fields.remove(name);
                } else {
                    merge(fields.entry(name.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(items), Value::Array(patch)) if all_named(items) && all_named(patch) => {
            for item in patch {
                match items.iter_mut().find(|known| known["name"] == item["name"]) {
                    Some(known) => merge(known, item),
                    None => items.push(item.clone()),
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

fn all_named(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item["name"].is_string())
}
