//! What starts runs without a person, as the file says it.

use tiphys_model::{Scope, TriggerAction, TriggerName};

use super::object::document;
use crate::decode::Decode;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
#[cfg(test)]
use crate::schema;
use crate::source::Spanned;
use crate::yaml::Node;

document! {
    #[schemars(rename = "Trigger")]
    TriggerDocument, "a trigger" {
        #[schemars(schema_with = "schema::trigger_name")]
        name: Spanned<TriggerName> = required("name"),
        #[schemars(with = "ScheduleDocument")]
        schedule: ScheduleDocument = required("schedule"),
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
