//! Whether a step has to sync at all.

use tiphys_model::operation::PlanTag;
use tiphys_model::{AppName, OperationId};

use super::{Missing, Suspicion, comparison_trouble, hopeless, missing};
use crate::cause::Cause;
use crate::observation::{Initiator, LastOperation, Observation, OperationPhase, Revisions};
use crate::planted::planted;

/// How a step begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Nothing to do.
    AlreadyCurrent,
    Sync {
        revisions: Revisions,
    },
    /// An operation of this plan is under way, or has been applied and health is awaited: an
    /// earlier run of the same plan sent it. It is taken over, never repeated.
    Adopt {
        operation: OperationId,
        revisions: Revisions,
        ended: bool,
    },
    /// Somebody else's operation is under way.
    Foreign {
        by: Initiator,
    },
    /// Nothing can be decided before another refresh.
    NotYet,
    /// A failure if it stays so.
    Suspect(Suspicion),
    Failed(Cause),
}

/// Decides how a step begins, from a look that was taken after a refresh of this run.
#[must_use]
pub fn start(seen: &Observation, plan: PlanTag, app: &AppName, tolerated: &[String]) -> Start {
    if let Some(cause) = hopeless(seen) {
        return Start::Failed(cause);
    }
    let of_this_plan = |id: &Option<OperationId>| {
        planted!(NeverAdopt => return None);
        id.clone().filter(|id| id.plan == plan && id.app == *app)
    };
    if let Some(operation) = &seen.operation {
        let stopping = |last: &LastOperation| last.phase == OperationPhase::Terminating;
        return match of_this_plan(&operation.id) {
            // One that is being stopped comes to nothing: it is awaited, like anybody else's.
            Some(operation) if !seen.last.as_ref().is_some_and(stopping) => {
                Start::Adopt { operation, revisions: seen.revisions.clone(), ended: false }
            }
            Some(_) | None => Start::Foreign { by: operation.by.clone() },
        };
    }
    if let Some(suspicion) = comparison_trouble(seen) {
        return Start::Suspect(suspicion);
    }
    let missing = missing(seen, tolerated);
    let succeeded = |last: &&LastOperation| {
        planted!(OnlyOurOperationsCount => if last.operation.id.is_none() { return false });
        last.phase == OperationPhase::Succeeded
    };
    let sync = || Start::Sync { revisions: seen.revisions.clone() };
    planted!(AlwaysSync => if missing.is_none() { return sync() });
    planted!(OnlyThisRunCounts => if missing.is_none() && seen.last.is_some() { return sync() });
    match missing {
        Some(Missing::Comparison) => Start::NotYet,
        // An operation ended after the last comparison: health may be stale.
        None if seen.last.as_ref().is_some_and(|last| ended_since(seen, last)) => Start::NotYet,
        None if seen.last.as_ref().is_none_or(|last| succeeded(&last)) => Start::AlreadyCurrent,
        None | Some(Missing::OutOfSync) => sync(),
        Some(
            Missing::Assessment
            | Missing::Health(_)
            | Missing::Generation { .. }
            | Missing::Criterion { .. },
        ) => {
            let ours = seen
                .last
                .as_ref()
                .filter(succeeded)
                .filter(|last| last.revisions == seen.revisions);
            match ours.and_then(|last| of_this_plan(&last.operation.id)) {
                Some(operation) => {
                    Start::Adopt { operation, revisions: seen.revisions.clone(), ended: true }
                }
                None => sync(),
            }
        }
    }
}

/// Whether an operation has ended since the last comparison, or within the same second.
fn ended_since(seen: &Observation, last: &LastOperation) -> bool {
    matches!((seen.reconciled_at, last.finished_at), (Some(at), Some(end)) if at <= end)
}
