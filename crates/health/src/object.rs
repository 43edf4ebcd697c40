//! Kubernetes objects: from YAML, and into Lua.

use mlua::{Lua, Value};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    #[error("invalid YAML: {0}")]
    NotYaml(String),
    #[error("not a Kubernetes object: {0}")]
    NotAnObject(&'static str),
    #[error("invalid test file: {0}")]
    NotATest(&'static str),
    #[error("it is empty")]
    Empty,
}

/// The objects of a file: documents, and the items of lists among them.
pub fn objects(text: &str) -> Result<Vec<Json>, ObjectError> {
    let mut objects = Vec::new();
    for document in documents::<Json>(text)? {
        match document {
            Json::Null => {}
            Json::Object(mut list) if list.get("kind") == Some(&Json::from("List")) => {
                if let Some(Json::Array(items)) = list.remove("items") {
                    objects.extend(items);
                }
            }
            other => objects.push(other),
        }
    }
    for object in &objects {
        let missing = |field: &str| object.get(field).and_then(Json::as_str).is_none();
        if missing("kind") {
            return Err(ObjectError::NotAnObject("`kind` is missing"));
        }
        if missing("apiVersion") {
            return Err(ObjectError::NotAnObject("`apiVersion` is missing"));
        }
    }
    Ok(objects)
}

/// The first document, in any shape; Argo CD overlooks what follows too.
pub(crate) fn document<T: DeserializeOwned>(text: &str) -> Result<T, ObjectError> {
    documents(text)?.into_iter().next().ok_or(ObjectError::Empty)
}

/// How often a text is put right before it is given up. Each time costs a reading.
const REPAIRS: usize = 100;

/// Reads YAML as leniently as Argo CD does. Of a field that is given twice the last one counts.
/// And in a quoted text that goes on in the next line, that line may begin as far left as the
/// field: YAML forbids it, older versions of kubectl have printed it.
fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, ObjectError> {
    let mut repaired: Option<Vec<String>> = None;
    for _ in 0..REPAIRS {
        let options = serde_saphyr::options! {
            duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        };
        let joined = repaired.as_ref().map(|lines| lines.join("\n"));
        let text = joined.as_deref().unwrap_or(text);
        let error = match serde_saphyr::from_multiple_with_options(text, options) {
            Ok(documents) => return Ok(documents),
            Err(error) => error,
        };
        let line = error.location().and_then(|place| usize::try_from(place.line()).ok());
        let message = error.to_string();
        let mut lines = repaired.unwrap_or_else(|| text.lines().map(str::to_owned).collect());
        match line.and_then(|line| lines.get_mut(line.checked_sub(1)?)) {
            // White space there has no meaning, so more of it changes nothing.
            Some(line) if message.contains(TOO_FAR_LEFT) => line.insert_str(0, "  "),
            _ => return Err(not_yaml(&message)),
        }
        repaired = Some(lines);
    }
    Err(not_yaml("too many lines of quoted text are not indented enough"))
}

const TOO_FAR_LEFT: &str = "invalid indentation in multiline quoted scalar";

fn not_yaml(message: &str) -> ObjectError {
    let first = message.lines().next().unwrap_or_default();
    ObjectError::NotYaml(first.trim_start_matches("error: ").to_owned())
}

/// As Argo CD hands an object to a script: all numbers floating point, null as nothing.
pub(crate) fn into_lua(lua: &Lua, json: &Json) -> mlua::Result<Value> {
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            // A null in a list leaves no gap.
            let items = items.iter().filter(|item| !item.is_null());
            for (index, item) in items.enumerate() {
                table.raw_set(index + 1, into_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
        Json::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                table.raw_set(key.as_str(), into_lua(lua, value)?)?;
            }
            Value::Table(table)
        }
    })
}
