//! Reading manifests: a stream of objects.

use serde_json::Value;

use super::RenderError;

/// As many as a platform file may have. Argo Workflows 4 with its full CRDs has about 270,000, more than the
/// library allows by itself.
const MOST_NODES: usize = 4_000_000;

/// All objects of a stream of YAML documents; lists are opened, empty documents left out.
pub(super) fn read(text: &str) -> Result<Vec<Value>, RenderError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MOST_NODES, max_events: 2 * MOST_NODES },
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_may_be_as_large_as_those_of_argo_workflows() {
        let schema = "  - {name: key, description: The key of the secret, type: string}\n";
        let text = format!(
            "apiVersion: v1\nkind: CustomResourceDefinition\nmetadata: {{name: a}}\nspec:\n{}",
            schema.repeat(45_000)
        );
        let objects = read(&text).unwrap();
        assert_eq!(objects[0]["spec"].as_array().unwrap().len(), 45_000);
    }
}
