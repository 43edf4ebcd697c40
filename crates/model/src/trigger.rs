//! What starts runs without a person.

use std::fmt;

use crate::cron::Cron;
use crate::name::TriggerName;
use crate::scope::Scope;

/// One of `spec.triggers`. No part of a plan: a run is the same whatever starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub name: TriggerName,
    pub kind: TriggerKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerKind {
    Schedule(ScheduleTrigger),
    Push(PushTrigger),
    Resource(ResourceTrigger),
}

impl Trigger {
    #[must_use]
    pub fn schedule(&self) -> Option<&ScheduleTrigger> {
        match &self.kind {
            TriggerKind::Schedule(schedule) => Some(schedule),
            TriggerKind::Push(_) | TriggerKind::Resource(_) => None,
        }
    }

    #[must_use]
    pub fn push(&self) -> Option<&PushTrigger> {
        match &self.kind {
            TriggerKind::Push(push) => Some(push),
            TriggerKind::Schedule(_) | TriggerKind::Resource(_) => None,
        }
    }

    #[must_use]
    pub fn resource(&self) -> Option<&ResourceTrigger> {
        match &self.kind {
            TriggerKind::Resource(resource) => Some(resource),
            TriggerKind::Schedule(_) | TriggerKind::Push(_) => None,
        }
    }

    /// Whether Argo Events tells of it.
    #[must_use]
    pub fn needs_events(&self) -> bool {
        match self.kind {
            TriggerKind::Push(_) | TriggerKind::Resource(_) => true,
            TriggerKind::Schedule(_) => false,
        }
    }
}

/// The platform is validated when objects change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceTrigger {
    pub api_version: String,
    pub kind: String,
    pub label: Label,
    /// What is validated.
    pub scope: Scope,
}

/// A label that objects must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub key: String,
    pub value: String,
}

impl Label {
    /// `KEY=VALUE`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        const LONGEST: usize = 63;
        let (key, value) = text.split_once('=')?;
        let (prefix, name) = match key.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, key),
        };
        let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let is_word = |text: &str, more: &[u8]| {
            let (first, last) = (text.bytes().next(), text.bytes().last());
            let all = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte));
            text.len() <= LONGEST && edge(first) && edge(last) && all
        };
        let is_prefix = |prefix: &str| {
            is_word(prefix, b"-.") && !prefix.bytes().any(|byte| byte.is_ascii_uppercase())
        };
        let fits = is_word(name, b"-_.") && is_word(value, b"-_.") && prefix.is_none_or(is_prefix);
        fits.then(|| Label { key: key.to_owned(), value: value.to_owned() })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// A Git server calls after each push, so that nobody waits for a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushTrigger {
    pub provider: PushProvider,
}

/// How the caller shows that it may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushProvider {
    /// Calls are signed, as GitHub does.
    GitHub,
    /// Calls have a token, as any program can have.
    Generic,
}

impl PushProvider {
    pub const ALL: [PushProvider; 2] = [PushProvider::GitHub, PushProvider::Generic];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PushProvider::GitHub => "github",
            PushProvider::Generic => "generic",
        }
    }
}

/// A run at certain times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleTrigger {
    pub at: Cron,
    pub action: TriggerAction,
    pub scope: Scope,
}

/// What may be done without a person. A teardown is not among it: that needs somebody's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerAction {
    Deploy,
    Validate,
}

impl TriggerAction {
    pub const ALL: [TriggerAction; 2] = [TriggerAction::Deploy, TriggerAction::Validate];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TriggerAction::Deploy => "deploy",
            TriggerAction::Validate => "validate",
        }
    }
}

impl fmt::Display for TriggerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_what_kubernetes_takes_for_one() {
        for text in ["team=a", "app.kubernetes.io/part-of=My_app.1", "A=0"] {
            assert_eq!(Label::parse(text).unwrap().to_string(), text);
        }
        let long = format!("a={}", "x".repeat(64));
        for text in
            ["team", "=a", "team=", "a b=c", "-a=b", "a=b-", "a/b/c=d", "/a=b", "A/b=c", &long]
        {
            assert_eq!(Label::parse(text), None, "{text}");
        }
    }
}
