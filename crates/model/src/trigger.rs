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
}

impl Trigger {
    #[must_use]
    pub fn schedule(&self) -> Option<&ScheduleTrigger> {
        match &self.kind {
            TriggerKind::Schedule(schedule) => Some(schedule),
            TriggerKind::Push(_) => None,
        }
    }

    #[must_use]
    pub fn push(&self) -> Option<&PushTrigger> {
        match &self.kind {
            TriggerKind::Push(push) => Some(push),
            TriggerKind::Schedule(_) => None,
        }
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
