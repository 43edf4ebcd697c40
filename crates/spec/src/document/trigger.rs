//! What starts runs without a person, as the file says it.

use tiphys_model::{Label, PushProvider, Scope, TriggerAction, TriggerName};

use super::object::document;
use crate::decode::{Decode, Fields};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
#[cfg(test)]
use crate::schema;
use crate::source::Spanned;
use crate::yaml::Node;

/// A name, and exactly one of `schedule`, `push` and `resource`.
#[derive(Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Trigger", deny_unknown_fields))]
#[cfg_attr(test, schemars(extend("required" = ["name"], "oneOf" = [
    { "required": ["schedule"] }, { "required": ["push"] }, { "required": ["resource"] },
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
    /// A change of certain objects has the platform validated.
    #[cfg_attr(test, schemars(with = "ChangedResourceDocument"))]
    pub(crate) resource: Option<ChangedResourceDocument>,
}

const KINDS: [&str; 3] = ["schedule", "push", "resource"];

impl Decode for TriggerDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a trigger", problems)?;
        let given = KINDS.into_iter().filter(|name| fields.has(name)).count();
        if given != 1 {
            let title = "a trigger must have exactly one of `schedule`, `push` and `resource`";
            let label = if given == 0 { "none is given" } else { "more than one is given" };
            problems.push(Diagnostic::new(title, node.span(), label));
        }
        let name = fields.required("name", problems);
        let schedule = fields.optional("schedule", problems);
        let push = fields.optional("push", problems);
        let resource = fields.optional("resource", problems);
        fields.finish(problems);
        Some(TriggerDocument { name: name?, schedule, push, resource })
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

document! {
    #[schemars(rename = "ChangedResource")]
    ChangedResourceDocument, "a resource trigger" {
        #[schemars(schema_with = "schema::text")]
        api_version: String = required("apiVersion"),
        #[schemars(schema_with = "schema::text")]
        kind: Spanned<String> = required("kind"),
        /// Objects with this label count: `KEY=VALUE`.
        #[schemars(schema_with = "schema::object_label")]
        label: LabelDocument = required("label"),
        /// What is validated: `platform`, `stack:NAME` or `app:NAME`, several separated by commas;
        /// `platform` unless given.
        #[schemars(schema_with = "schema::scope")]
        scope: Option<ScopeDocument> = optional("scope"),
    }
}

/// `KEY=VALUE`.
#[derive(Debug)]
pub(crate) struct LabelDocument(pub(crate) Label);

impl Decode for LabelDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        let label = Label::parse(&text);
        if label.is_none() {
            let title = format!("{} is not a label", quoted(&text));
            problems.push(
                Diagnostic::new(title, node.span(), "must be `KEY=VALUE`")
                    .hint("write it as `kubectl get -l` takes it, such as `team=platform`"),
            );
        }
        label.map(LabelDocument)
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
