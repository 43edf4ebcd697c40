//! Lua values as text.

use mlua::Value;

use crate::number;

/// As `tostring` writes it, without asking metatables.
pub(crate) fn text(value: &Value) -> Vec<u8> {
    match value {
        Value::Nil => b"nil".to_vec(),
        Value::Boolean(value) => value.to_string().into_bytes(),
        #[expect(clippy::cast_precision_loss, reason = "numbers are floating point in gopher-lua")]
        Value::Integer(value) => number::text(*value as f64).into_bytes(),
        Value::Number(value) => number::text(*value).into_bytes(),
        Value::String(value) => value.as_bytes().to_vec(),
        // Addresses differ from one evaluation to the next, so they are no use to anybody.
        other => format!("{}: 0x0", other.type_name()).into_bytes(),
    }
}

/// How long the text will be, or a little longer.
pub(crate) fn length(value: &Value) -> usize {
    match value {
        Value::String(value) => value.as_bytes().len(),
        _ => 32,
    }
}

/// What Lua calls its type.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) | Value::Number(_) => "number",
        Value::LightUserData(_) => "userdata",
        other => other.type_name(),
    }
}
