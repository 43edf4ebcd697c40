//! What starts runs without a person, as the file says it.

use tiphys_model::{PushProvider, Scope, TriggerAction, TriggerName};

use super::object::document;
use crate::decode::{Decode, Fields};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
#[cfg(test)]
use crate::schema;
use crate::source::Spanned;
use crate::yaml::Node;

/// A name, and exactly one of `schedule` and `push`.
#[derive(Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Trigger", deny_unknown_fields))]
#[cfg_attr(test, schemars(extend("required" = ["name"], "oneOf" = [
    { "required": ["schedule"] }, { "required": ["push"] },
])))]
pub(crate) struct TriggerDocument {
    #[cfg_attr(test, schemars(schema_with = "schema::trigger_name"))]
    pub(crate) name: Spanned<TriggerName>,
    /// A run at certain times.
    #[cfg_attr(test, schemars(with = "ScheduleDocument"))]
    pub(crate) schedule: Option<ScheduleDocument>,
    /// A Git server calls a webhook of Argo Events after each push, so that a deployment starts at once.
    #[cfg_attr(test, schemars(with = "PushDocument"))]
    pub(crate) push: Option<Spanned<PushDocument>>,
}

impl Decode for TriggerDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a trigger", problems)?;
        let label = match ["schedule", "push"].map(|name| fields.has(name)) {
            [false, false] => Some("neither is given"),
            [true, true] => Some("both are given"),
            [true, false] | [false, true] => None,
        };
        if let Some(label) = label {
            let title = "a trigger must have either `schedule` or `push`";
            problems.push(Diagnostic::new(title, node.span(), label));
        }
        let name = fields.required("name", problems);
        let schedule = fields.optional("schedule", problems);
        let push = fields.optional("push", problems);
        fields.finish(problems);
        Some(TriggerDocument { name: name?, schedule, push })
    }
}

document! {
    #[schemars(rename = "Push")]
    PushDocument, "a push trigger" {
        /// How the caller shows that it may call: `github` signs, `generic` sends a bearer token.
        #[schemars(schema_with = "schema::push_provider")]
        provider: PushProvider = required("provider"),
    }
}

document! {
    #[schemars(rename = "Schedule")]
    ScheduleDocument, "a schedule" {
        /// When the run starts: a cron schedule of five fields.
        #[schemars(schema_with = "schema::cron")]
        cron: Spanned<String> = required("cron"),
        /// The IANA name of the schedule's time zone; UTC unless given.
        #[schemars(schema_with = "schema::text")]
        time_zone: Option<Spanned<String>> = optional("timeZone"),
        /// What the run does.
        #[schemars(schema_with = "schema::trigger_action")]
        action: TriggerAction = required("action"),
        /// `platform`, `stack:NAME` or `app:NAME`, several separated by commas; `platform` unless given.
        #[schemars(schema_with = "schema::scope")]
        scope: Option<ScopeDocument> = optional("scope"),
    }
}

/// A scope, as `--scope` takes it.
#[derive(Debug)]
pub(crate) struct ScopeDocument(pub(crate) Scope);

impl Decode for ScopeDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        match text.parse() {
            Ok(scope) => Some(ScopeDocument(scope)),
            Err(error) => {
                let title = format!("{} is not a scope", quoted(&text));
                problems.push(Diagnostic::new(title, node.span(), format!("{error}")));
                None
            }
        }
    }
}
