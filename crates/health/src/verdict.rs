//! What a script's return value means.
//!
//! Argo CD writes the returned table as JSON and reads that into its own type. The odd rules here
//! are those of that detour.

use std::collections::HashSet;

use mlua::{Table, Value};
use serde::Serialize;
use tiphys_model::Health;

use crate::value;

/// What a script says of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// None: the script returned nothing of use. Argo CD counts that as good as Healthy.
    pub status: Option<Health>,
    pub message: String,
}

const INVALID: &str = "Lua returned an invalid health status";

impl Verdict {
    pub(crate) fn empty() -> Self {
        Verdict { status: None, message: String::new() }
    }

    /// The status as Argo CD writes it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.status.map_or("", Health::as_str)
    }

    /// Of several return values the last one counts.
    pub(crate) fn read(returned: Option<&Value>) -> Result<Self, String> {
        match returned {
            None | Some(Value::Nil) => Ok(Verdict::empty()),
            Some(Value::Table(table)) => Self::from_table(table),
            Some(other) => {
                Err(format!("expect table output from Lua script, not {}", value::kind(other)))
            }
        }
    }

    fn from_table(table: &Table) -> Result<Self, String> {
        let mut visited = HashSet::new();
        let fields = match encodable(table, &mut visited, 0)? {
            Shape::Array => return Ok(Verdict::empty()),
            Shape::Object(fields) => fields,
        };
        let (mut status, mut message) = (String::new(), String::new());
        for (key, value) in fields {
            let field = match key.to_lowercase().as_str() {
                "status" => &mut status,
                "message" => &mut message,
                _ => continue,
            };
            match value {
                Value::String(text) => *field = text.to_string_lossy(),
                // Go calls this an error of types, and Argo CD takes every such error for the
                // empty table.
                _ => return Ok(Verdict::empty()),
            }
        }
        Ok(match status.parse() {
            Ok(status) => Verdict { status: Some(status), message },
            Err(_) => Verdict { status: Some(Health::Unknown), message: INVALID.to_owned() },
        })
    }
}

enum Shape {
    Array,
    /// In the order of the keys: of two that differ in case only, the last one counts.
    Object(Vec<(String, Value)>),
}

/// Nobody nests a verdict, and each level takes some of the stack.
const DEEPEST: usize = 100;

/// Whether the table can be written as JSON, all the way down.
fn encodable(table: &Table, visited: &mut HashSet<usize>, depth: usize) -> Result<Shape, String> {
    // Argo CD refuses a table that it meets twice, even if it does not contain itself.
    if depth > DEEPEST || !visited.insert(table.to_pointer() as usize) {
        return Err("cannot encode recursively nested tables to JSON".to_owned());
    }
    let mut fields = Vec::new();
    let mut numbers = 0;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        match &value {
            Value::Table(inner) => {
                encodable(inner, visited, depth + 1)?;
            }
            Value::Number(number) if !number.is_finite() => {
                return Err("cannot encode a number that is not finite to JSON".to_owned());
            }
            Value::Nil
            | Value::Boolean(_)
            | Value::Number(_)
            | Value::Integer(_)
            | Value::String(_) => {}
            other => return Err(format!("cannot encode {} to JSON", value::kind(other))),
        }
        match key {
            Value::String(key) => fields.push((key.to_string_lossy(), value)),
            Value::Number(_) | Value::Integer(_) => numbers += 1,
            _ => return Err("cannot encode mixed or invalid key types".to_owned()),
        }
    }
    match (fields.is_empty(), numbers) {
        (true, count) if table.raw_len() == count => Ok(Shape::Array),
        (true, _) => Err("cannot encode sparse array".to_owned()),
        (false, 0) => {
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Ok(Shape::Object(fields))
        }
        (false, _) => Err("cannot encode mixed or invalid key types".to_owned()),
    }
}
