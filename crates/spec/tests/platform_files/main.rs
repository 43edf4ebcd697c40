//! Reading platform files: the same platform whatever its files look like, and the same line
//! between right and wrong as the schema.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod nesting;
#[path = "../../../plan/tests/common/mod.rs"]
mod random;
mod reading;
mod schema_agreement;
mod waves;
mod write;
mod yaml;
