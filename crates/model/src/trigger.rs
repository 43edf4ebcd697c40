//! What starts runs without a person, besides new commits.

use std::fmt;

use crate::cron::Cron;
use crate::name::TriggerName;
use crate::scope::Scope;

/// One of `spec.triggers`. No part of a plan: a run is the same whatever starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub name: TriggerName,
    pub schedule: ScheduleTrigger,
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
