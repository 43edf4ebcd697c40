//! `health_test.yaml`, in Argo CD's format.

use std::path::Path;

use serde_json::Value as Json;

use crate::{ObjectError, object};

/// One object, and what the script should say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) input: String,
    pub(crate) status: String,
    pub(crate) message: String,
}

/// Argo CD reads the file with Go's rules, so the names of fields may be in any case, and it has
/// cases that make use of it.
pub(crate) fn cases(text: &str) -> Result<Vec<Case>, ObjectError> {
    let document: Json = object::document(text)?;
    let Some(Json::Array(tests)) = field(&document, "tests") else {
        return Err(ObjectError::NotATest("the list `tests` is missing"));
    };
    let text =
        |json: Option<&Json>| json.and_then(Json::as_str).map(str::to_owned).unwrap_or_default();
    let mut cases = Vec::with_capacity(tests.len());
    for test in tests {
        let health = field(test, "healthStatus").unwrap_or(&Json::Null);
        let input = text(field(test, "inputPath"));
        if input.is_empty() {
            return Err(ObjectError::NotATest("a test has no `inputPath`"));
        }
        let message = text(field(health, "message"));
        cases.push(Case { input, status: text(field(health, "status")), message });
    }
    Ok(cases)
}

fn field<'j>(object: &'j Json, name: &str) -> Option<&'j Json> {
    let fields = object.as_object()?;
    let folded = || fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    fields.get(name).or_else(|| folded().map(|(_, value)| value))
}

/// The object of a case.
pub(crate) fn object_of(path: &Path) -> Result<Json, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    object::document(&text).map_err(|error| error.to_string())
}
