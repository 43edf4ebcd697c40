//! Where images come from, for sites without a way to the public registries.

use serde_json::Value;
use tiphys_model::bootstrap::{Mirror, Primitive, PrimitiveName};

/// Gives every image that an object names its place in a mirror: in containers, in variables and
/// arguments that hold nothing but an image, and in settings of controllers that make pods.
pub(super) fn rewrite(object: &mut Value, mirrors: &[Mirror]) {
    if !mirrors.is_empty() {
        walk(object, mirrors);
    }
}

fn walk(value: &mut Value, mirrors: &[Mirror]) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if is_image_field(name) => {
                        *text = mirrored(text, mirrors).unwrap_or_else(|| text.clone());
                    }
                    Value::String(text) if text.contains('\n') => *text = settings(text, mirrors),
                    Value::String(text) if name == "value" => replace_full(text, mirrors),
                    other => walk(other, mirrors),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::String(text) => replace_full(text, mirrors),
                    other => walk(other, mirrors),
                }
            }
        }
        _ => {}
    }
}

fn is_image_field(name: &str) -> bool {
    name == "image" || name.ends_with("Image")
}

/// Text that may be anything: only what names its registry in full is taken for an image.
fn replace_full(text: &mut String, mirrors: &[Mirror]) {
    let full = text.split('/').next().is_some_and(|host| host.contains('.'));
    if let Some(found) = full.then(|| mirrored(text, mirrors)).flatten() {
        *text = found;
    }
}

/// Lines such as `natsImage: nats:2.10.29` in a controller's settings.
fn settings(text: &str, mirrors: &[Mirror]) -> String {
    let line = |line: &str| -> Option<String> {
        let (field, image) = line.split_once(": ")?;
        let name = field.trim_start_matches([' ', '-']);
        let found = is_image_field(name).then(|| mirrored(image.trim(), mirrors)).flatten()?;
        Some(format!("{field}: {found}"))
    };
    text.split('\n')
        .map(|text| line(text).unwrap_or_else(|| text.to_owned()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The image in the first mirror that has it.
fn mirrored(image: &str, mirrors: &[Mirror]) -> Option<String> {
    mirrors.iter().find_map(|mirror| mirror.place_of(image))
}

/// The image that the workflow controller puts in every pod, if a mirror has it. Its name is built
/// into the controller, so no manifest shows it.
pub(super) fn executor(primitive: &Primitive, mirrors: &[Mirror]) -> Option<String> {
    let version = primitive.version.trim_start_matches('v');
    let image = format!("quay.io/argoproj/argoexec:v{version}");
    (primitive.name == PrimitiveName::Workflows).then(|| mirrored(&image, mirrors)).flatten()
}
