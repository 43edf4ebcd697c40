//! The checked-in JSON Schema is the one that the types generate.

use std::path::Path;

#[test]
fn schema_file_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/platform.v1alpha1.json");
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == tiphys_spec::platform_schema(),
        "the schema has changed: `cargo run -- schema > schema/platform.v1alpha1.json`",
    );
}
