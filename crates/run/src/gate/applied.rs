//! The gate of a step whose sync was sent by this run, or adopted by it.

use std::sync::Arc;

use tiphys_model::{Health, OperationId, SyncStatus};

use super::{Missing, Suspicion, comparison_trouble, hopeless, missing};
use crate::cause::Cause;
use crate::observation::{Initiator, LastOperation, Observation, OperationPhase, Revisions};
use crate::planted::planted;

/// What a step expects to see.
#[derive(Debug, Clone, Copy)]
pub struct Expectation<'a> {
    /// The operation that it sent or adopted.
    pub operation: &'a OperationId,
    pub revisions: &'a Revisions,
    /// The sync asked for them; otherwise it applied what there was at its time.
    pub pinned: bool,
    /// A refresh that was asked for after the end of the operation was seen has completed.
    pub refreshed: bool,
    pub tolerate_drift: &'a [String],
}

/// How far our operation is (question 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationProgress<'a> {
    /// Nothing of it can be seen.
    Unseen,
    Running,
    Succeeded(&'a LastOperation),
    Failed {
        message: Arc<str>,
    },
    /// Another operation stands where ours should be.
    Replaced {
        by: Initiator,
    },
}

impl OperationProgress<'_> {
    /// Whether our operation can be seen, however far it is.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        match self {
            OperationProgress::Running
            | OperationProgress::Succeeded(_)
            | OperationProgress::Failed { .. } => true,
            OperationProgress::Unseen | OperationProgress::Replaced { .. } => false,
        }
    }
}

/// Looks for our operation.
#[must_use]
pub fn operation<'a>(seen: &'a Observation, ours: &OperationId) -> OperationProgress<'a> {
    let is_ours = |id: &Option<OperationId>| id.as_ref() == Some(ours);
    if let Some(operation) = &seen.operation {
        return if is_ours(&operation.id) {
            OperationProgress::Running
        } else {
            OperationProgress::Replaced { by: operation.by.clone() }
        };
    }
    match &seen.last {
        None => OperationProgress::Unseen,
        Some(last) if !is_ours(&last.operation.id) => {
            OperationProgress::Replaced { by: last.operation.by.clone() }
        }
        Some(last) => match last.phase {
            OperationPhase::Running | OperationPhase::Terminating => OperationProgress::Running,
            OperationPhase::Succeeded => OperationProgress::Succeeded(last),
            OperationPhase::Failed | OperationPhase::Error => {
                OperationProgress::Failed { message: last.message.clone() }
            }
        },
    }
}

/// The verdict on a step whose operation has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    Done,
    NotYet(Missing),
    /// A failure if it stays so.
    Suspect(Suspicion, Missing),
    Failed(Cause),
    /// Another operation replaced ours after it had ended.
    Replaced {
        by: Initiator,
    },
    /// The source is at other revisions by now.
    Moved {
        to: Revisions,
    },
}

/// Asks the seven questions.
#[must_use]
pub fn applied(seen: &Observation, expected: Expectation<'_>) -> Applied {
    if let Some(cause) = hopeless(seen) {
        return Applied::Failed(cause);
    }
    let last = match operation(seen, expected.operation) {
        OperationProgress::Succeeded(last) => last,
        OperationProgress::Replaced { by } => return Applied::Replaced { by },
        OperationProgress::Failed { message } => {
            return Applied::Failed(Cause::OperationFailed { message });
        }
        // It had ended; so this look is older than another we had, or the state was reset.
        OperationProgress::Unseen | OperationProgress::Running => {
            return Applied::NotYet(Missing::Assessment);
        }
    };
    if expected.pinned && last.revisions != *expected.revisions {
        return Applied::Moved { to: last.revisions.clone() };
    }
    if !assessed_after(seen, last, expected.refreshed) {
        // A comparison that fails moves no stamp, so this may be all there ever is to see.
        return match comparison_trouble(seen) {
            Some(suspicion) => Applied::Suspect(suspicion, Missing::Assessment),
            None => Applied::NotYet(Missing::Assessment),
        };
    }
    let missing = missing(seen, expected.tolerate_drift);
    // What moves by itself may have moved on without a change for this app.
    let overtaken = expected.pinned || missing == Some(Missing::OutOfSync);
    if seen.compared_to_spec && seen.revisions != last.revisions && overtaken {
        return Applied::Moved { to: seen.revisions.clone() };
    }
    if let Some(suspicion) = comparison_trouble(seen) {
        return Applied::Suspect(suspicion, missing.unwrap_or(Missing::Comparison));
    }
    let Some(missing) = missing else { return Applied::Done };
    match missing {
        // Unknown is no verdict of Argo CD's, so that is left to the health timeout.
        Missing::OutOfSync if expected.refreshed && seen.sync == SyncStatus::OutOfSync => {
            let drifted = seen.untolerated(expected.tolerate_drift).cloned().collect();
            Applied::Suspect(Suspicion::OutOfSync { drifted }, missing)
        }
        Missing::Health(Health::Degraded) => {
            let suspicion = Suspicion::Degraded { message: seen.health_message.clone() };
            Applied::Suspect(suspicion, missing)
        }
        other => Applied::NotYet(other),
    }
}

/// Question 3. Both stamps are Argo CD's own and have whole seconds: within the same second
/// nothing is proven, so only a strictly later one counts by itself. A refresh of ours that was
/// asked for after the end makes up for an equal stamp, but not for an earlier one: a comparison
/// that had begun before the end can take our request along.
fn assessed_after(seen: &Observation, last: &LastOperation, refreshed: bool) -> bool {
    planted!(SkipAssessment => return true);
    planted!(EqualStampsCount => let refreshed = true);
    match (seen.reconciled_at, last.finished_at) {
        (Some(reconciled), Some(finished)) => {
            reconciled > finished || (reconciled == finished && refreshed)
        }
        (None, _) | (_, None) => false,
    }
}
