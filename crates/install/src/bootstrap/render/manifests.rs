//! Reading manifests: a stream of objects.

use serde_json::Value;

use super::RenderError;

/// All objects of a stream of YAML documents; lists are opened, empty documents left out.
pub(super) fn read(text: &str) -> Result<Vec<Value>, RenderError> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| RenderError(format!("the manifests are not valid YAML: {error}")))?;
    let mut objects = Vec::new();
    for (number, document) in (1..).zip(documents) {
        match document {
            Value::Null => {}
            Value::Object(mut fields) if fields.get("kind").is_some_and(|kind| kind == "List") => {
                let items = fields.remove("items");
                for item in items.iter().filter_map(Value::as_array).flatten() {
                    objects.push(checked(item.clone(), number)?);
                }
            }
            object => objects.push(checked(object, number)?),
        }
    }
    if objects.is_empty() {
        return Err(RenderError("the manifests contain no objects".to_owned()));
    }
    Ok(objects)
}

fn checked(object: Value, number: usize) -> Result<Value, RenderError> {
    for pointer in ["/apiVersion", "/kind", "/metadata/name"] {
        if object.pointer(pointer).and_then(Value::as_str).is_none_or(str::is_empty) {
            let field = pointer[1..].replace('/', ".");
            return Err(RenderError(format!(
                "`{field}` is missing in document {number} of the manifests"
            )));
        }
    }
    Ok(object)
}
