//! The JSON Schema of platform files, generated from the document types and held against the file
//! that is part of the program. Only tests build this: generating takes long to compile.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use tiphys_model::bootstrap::Installer;
use tiphys_model::platform::AppType;
use tiphys_model::{PushProvider, StatusProvider, TriggerAction};

use crate::document::criteria::STATUS_CODES;
use crate::document::deploy::{DeployDocument, DeployObject};
use crate::document::{
    API_VERSION, DependencyDocument, KIND, MAX_CONCURRENCY, MAX_COUNT, PlatformDocument,
    StackDocument,
};

#[test]
#[expect(clippy::disallowed_methods, reason = "the file is found by a macro that looks for it")]
fn schema_file_is_current() {
    // `SNAPSHOTS=overwrite` writes it.
    let file = snapbox::file!["../../../schema/platform.v1alpha1.json": Text];
    snapbox::assert_data_eq!(platform_schema(), file.raw());
}

/// The schema as pretty JSON, ending in a line break.
fn platform_schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let stack = generator.subschema_for::<StackDocument>();
    let platform = generator.subschema_for::<PlatformDocument>();
    let definitions = generator.take_definitions(true);
    let schema = json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tiphys platform file",
        "description": "A platform, or one file of a directory that describes a platform: \
            such a file may hold nothing but `stacks`.",
        "if": { "required": ["stacks"] },
        "then": {
            "type": "object",
            "properties": { "stacks": { "type": "array", "items": stack } },
            "additionalProperties": false,
        },
        "else": platform,
        "$defs": definitions,
    });
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a schema is a tree of plain JSON values");
    text.push('\n');
    text
}

/// Of the fields of an object, each with how it is read, those that must be there.
pub(crate) fn required(fields: &[(&str, &'static str)]) -> Vec<&'static str> {
    fields.iter().filter(|(how, _)| *how == "required").map(|(_, name)| *name).collect()
}

pub(crate) fn api_version(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": API_VERSION })
}

pub(crate) fn kind(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": KIND })
}

pub(crate) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1 })
}

pub(crate) fn app_name(_: &mut SchemaGenerator) -> Schema {
    let part = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    json_schema!({
        "type": "string", "maxLength": 253, "pattern": format!("^{part}(\\.{part})*$"),
    })
}

fn dns_label(longest: u32) -> Schema {
    json_schema!({
        "type": "string", "maxLength": longest, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    })
}

pub(crate) fn label(_: &mut SchemaGenerator) -> Schema {
    dns_label(63)
}

pub(crate) fn platform_name(_: &mut SchemaGenerator) -> Schema {
    dns_label(56)
}

pub(crate) fn trigger_name(_: &mut SchemaGenerator) -> Schema {
    dns_label(20)
}

pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "minLength": 1, "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
        "examples": ["90s", "18m", "1h30m"],
    })
}

pub(crate) fn hold(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["during-run", "always"], "default": "during-run" })
}

pub(crate) fn workflows(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["single", "nodes"], "default": "single" })
}

pub(crate) fn deploy_mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["manual", "automatic"], "default": "manual" })
}

pub(crate) fn trigger_action(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": TriggerAction::ALL.map(TriggerAction::as_str) })
}

pub(crate) fn push_provider(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": PushProvider::ALL.map(PushProvider::as_str) })
}

pub(crate) fn status_provider(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": StatusProvider::ALL.map(StatusProvider::as_str) })
}

/// A label of objects, with its value.
pub(crate) fn object_label(_: &mut SchemaGenerator) -> Schema {
    let word = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
    let prefix = "[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?";
    json_schema!({ "type": "string", "pattern": format!("^({prefix}/)?{word}={word}$") })
}

/// A name with `*` in it is one with letters in their place.
pub(crate) fn scope(_: &mut SchemaGenerator) -> Schema {
    let part = "[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?";
    let one = format!("(platform|stack:{part}|app:{part}(\\.{part})*)");
    json_schema!({ "type": "string", "pattern": format!("^{one}(,{one})*$"), "default": "platform" })
}

pub(crate) fn cron(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "pattern": "^\\s*\\S+(\\s+\\S+){4}\\s*$",
        "examples": ["0 22 * * mon-fri"],
    })
}

pub(crate) fn access(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["api", "kubernetes"], "default": "api" })
}

pub(crate) fn server(_: &mut SchemaGenerator) -> Schema {
    let part = "[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?";
    let host = format!("({part}(\\.{part})*|\\[[0-9A-Fa-f:.]+\\])");
    json_schema!({ "type": "string", "pattern": format!("^(https?://)?{host}(:[0-9]{{1,5}})?/?$") })
}

pub(crate) fn certificates(_: &mut SchemaGenerator) -> Schema {
    let block = "-----BEGIN CERTIFICATE-----\\s[A-Za-z0-9+/=\\s]+-----END CERTIFICATE-----";
    json_schema!({ "type": "string", "pattern": block })
}

pub(crate) fn root_path(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[-A-Za-z0-9._~/]+$" })
}

/// Which fields about the API server go together.
pub(crate) fn api_server_rules() -> serde_json::Value {
    let is = |field: &str, value: serde_json::Value| serde_json::json!({ "properties": { field: { "const": value } }, "required": [field] });
    let server = |other: &str| serde_json::json!({ "not": { "pattern": format!("^{other}://") } });
    serde_json::json!([
        {
            "if": is("insecure", true.into()),
            "then": { "properties": { "ca": false, "server": server("https") } },
            "else": { "properties": { "server": server("http") } },
        },
        {
            "if": is("access", "kubernetes".into()),
            "then": { "properties": {
                "server": false, "ca": false, "tokenSecret": false, "rootPath": false,
                "insecure": { "const": false },
            } },
        },
    ])
}

pub(crate) fn installer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": Installer::ALL.map(Installer::as_str), "default": "native" })
}

pub(crate) fn checksum(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

pub(crate) fn https(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^https://[^/]" })
}

pub(crate) fn https_list(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": https(generator) })
}

pub(crate) fn texts(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": text(generator) })
}

pub(crate) fn some_texts(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "items": text(generator), "minItems": 1, "uniqueItems": true,
    })
}

pub(crate) fn namespaces(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": label(generator), "uniqueItems": true })
}

pub(crate) fn kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "string", "pattern": "^([^/]+/)?[^/]+$" },
    })
}

pub(crate) fn disposable_kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "string", "pattern": "^([-.a-z0-9]+/)?[A-Z][-A-Za-z0-9]*$" },
    })
}

pub(crate) fn app_type(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": AppType::ALL.map(AppType::as_str), "default": "simple" })
}

fn integer(least: i64, most: i64) -> Schema {
    json_schema!({ "type": "integer", "minimum": least, "maximum": most })
}

pub(crate) fn concurrency(_: &mut SchemaGenerator) -> Schema {
    integer(1, MAX_CONCURRENCY)
}

pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    integer(0, MAX_COUNT)
}

pub(crate) fn factor(_: &mut SchemaGenerator) -> Schema {
    integer(1, MAX_COUNT)
}

pub(crate) fn port(_: &mut SchemaGenerator) -> Schema {
    integer(1, 65_535)
}

pub(crate) fn status_code(_: &mut SchemaGenerator) -> Schema {
    let (least, most) = STATUS_CODES;
    integer(least, most)
}

pub(crate) fn drift(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "string", "pattern": "^[^/]+/[^/]+$" },
    })
}

impl JsonSchema for DeployDocument {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Deploy".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (mode, object) = (deploy_mode(generator), generator.subschema_for::<DeployObject>());
        json_schema!({ "anyOf": [mode, object] })
    }
}

impl JsonSchema for DependencyDocument {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dependency".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = app_name(generator);
        json_schema!({
            "description": "The name of an app, or an object with options.",
            "anyOf": [
                name,
                {
                    "type": "object",
                    "properties": {
                        "app": name,
                        "optional": {
                            "type": "boolean",
                            "default": false,
                            "description": "Ignored if that app is not in the platform.",
                        },
                    },
                    "required": ["app"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
