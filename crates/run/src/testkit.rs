//! Applications as tests of this crate and of those that judge them show them: a case states only
//! what it is about, on top of one of these.

use tiphys_model::{Health, SyncStatus};

use crate::observation::{LastOperation, Observation, Operation, OperationPhase, Revisions};
use crate::time::Stamp;

/// When the operation of [`synced`] ended, on Argo CD's clock.
pub const FINISHED: i64 = 100;

#[must_use]
pub fn revisions(revision: &str) -> Revisions {
    Revisions([revision.into()].into())
}

/// An Application that nobody has synced yet.
#[must_use]
pub fn fresh() -> Observation {
    Observation::unsynced(1, revisions("r1"), Stamp(0))
}

/// An Application that is as its source says, and well, although nobody has synced it.
#[must_use]
pub fn current() -> Observation {
    Observation { sync: SyncStatus::Synced, health: Health::Healthy, ..fresh() }
}

/// An Application that the operation has synced; it was assessed after that, and is well.
#[must_use]
pub fn synced(operation: Operation) -> Observation {
    let last = LastOperation {
        operation,
        phase: OperationPhase::Succeeded,
        finished_at: Some(Stamp(FINISHED)),
        revisions: revisions("r1"),
        message: "successfully synced".into(),
    };
    Observation { last: Some(last), reconciled_at: Some(Stamp(FINISHED + 1)), ..current() }
}
