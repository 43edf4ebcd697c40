//! One app within a run.

use std::sync::Arc;

use tiphys_model::{AppIx, OperationId, Role};

use crate::effect::{Effect, RequestNumber};
use crate::event::{Because, BlockedBy, FailState, How, SparedBy};
use crate::gate::Suspicion;
use crate::observation::{LastOperation, Revisions};
use crate::planted::planted;
use crate::time::Time;

/// What a run knows of one of its apps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub phase: Phase,
    /// How many of its prerequisites are not satisfied now.
    pub(super) unmet: usize,
    /// Nobody but the run has a say in when it starts, or they have agreed.
    pub(super) admitted: bool,
    /// Stands in the start queue.
    pub(super) queued: bool,
    pub(super) refresh: Refresh,
    pub(super) trouble: Option<Trouble>,
    /// Since when something that the run cannot change keeps it from syncing.
    pub(super) held_up: Option<(Time, BlockedBy)>,
    /// How many numbered requests have been made for it.
    pub(super) requests: RequestNumber,
    /// When it was last asked for a look.
    pub(super) looked: Time,
    /// It is over, but has not been handed off, or its operation has not been terminated.
    pub(super) errand_since: Option<Time>,
    /// How many of its attempts were overtaken by their source.
    pub(super) moves: u32,
    /// When it first synced or was first removed.
    pub(super) started: Option<Time>,
    /// The entry of this step among the machine's timers.
    pub(super) timer: Option<Time>,
}

/// Where a step is. Each phase has its own data, and only that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Syncing(Syncing),
    Converging(Converging),
    /// Between two attempts.
    Retrying {
        failed_attempts: u32,
        until: Time,
    },
    Done {
        how: How,
        ailing_since: Option<Time>,
    },
    Failed(FailState),
    Skipped(Because),
    /// Deletion was asked for.
    Removing {
        since: Time,
    },
    Removed {
        ailing_since: Option<Time>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syncing {
    /// The attempts of this run, this one included.
    pub attempt: u32,
    pub since: Time,
    pub operation: OperationId,
    pub revisions: Revisions,
    pub pinned: bool,
    /// The last operation before this one.
    pub(super) before: Option<LastOperation>,
    /// The newest request for it.
    pub(super) request: RequestNumber,
    /// The version of the Application in which the operation stood first.
    pub(super) accepted: Option<u64>,
    pub(super) unanswered: Option<Unanswered>,
}

/// Nobody knows whether the sync request arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unanswered {
    pub(super) message: Arc<str>,
    pub(super) resend_at: Time,
    /// The look that was asked for because of it.
    pub(super) look: RequestNumber,
    /// It has come back, and did not show the operation.
    pub(super) looked: bool,
}

impl Syncing {
    pub(super) fn effect(&self, app: AppIx) -> Effect {
        Effect::Sync {
            app,
            operation: self.operation.clone(),
            revisions: if self.pinned { self.revisions.clone() } else { Revisions::default() },
            number: self.request,
        }
    }
}

impl Unanswered {
    /// When the request is to be sent again; not before a look has shown that it was lost.
    pub(super) fn resend_due(&self) -> Option<Time> {
        planted!(ResendWithoutLooking => return Some(self.resend_at));
        self.looked.then_some(self.resend_at)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converging {
    pub attempt: u32,
    pub since: Time,
    pub operation: OperationId,
    pub revisions: Revisions,
    pub pinned: bool,
    /// A refresh that was asked for in this phase has completed.
    pub(super) refreshed: bool,
}

/// Refreshes of one app.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Refresh {
    pub(super) in_flight: Option<Asked>,
    pub(super) last_asked: Option<Time>,
    /// One of this run has completed, and what is known is not too old to decide.
    pub(super) fresh: bool,
    /// Another one is wanted as soon as it is due.
    pub(super) wanted: bool,
    /// None was asked for: something else may do.
    pub(super) spared: Option<Spared>,
    /// That of this app may do for others.
    pub(super) witness: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spared {
    pub(super) by: SparedBy,
    pub(super) since: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) at: Time,
    /// The first request that has not been answered, and the newest: when an answer takes its
    /// time the question is asked again, and the answer to either will do.
    pub(super) first: RequestNumber,
    pub(super) number: RequestNumber,
}

impl Refresh {
    /// Whether the answer to this request is still wanted: not one that comes twice, and not
    /// one to a request from before the operation had ended.
    pub(super) fn awaits(&self, number: RequestNumber) -> bool {
        self.in_flight.is_some_and(|asked| number >= asked.first)
    }
}

/// Something wrong that may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) suspicion: Suspicion,
    pub(super) since: Time,
    /// Refreshes that have completed since.
    pub(super) refreshes: u32,
}

impl Step {
    pub(super) fn new(unmet: usize) -> Self {
        Step {
            phase: Phase::Waiting,
            unmet,
            admitted: true,
            queued: false,
            refresh: Refresh::default(),
            trouble: None,
            held_up: None,
            requests: 0,
            looked: Time::START,
            moves: 0,
            errand_since: None,
            started: None,
            timer: None,
        }
    }

    /// Whether it is over, one way or the other.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self.phase {
            Phase::Done { .. } | Phase::Failed(_) | Phase::Skipped(_) | Phase::Removed { .. } => {
                true
            }
            Phase::Waiting
            | Phase::Syncing(_)
            | Phase::Converging(_)
            | Phase::Retrying { .. }
            | Phase::Removing { .. } => false,
        }
    }

    /// Whether it takes room: it has started and is not over.
    #[must_use]
    pub fn is_in_progress(&self) -> bool {
        planted!(PausesTakeNoRoom => if let Phase::Retrying { .. } = self.phase { return false });
        match self.phase {
            Phase::Syncing(_)
            | Phase::Converging(_)
            | Phase::Retrying { .. }
            | Phase::Removing { .. } => true,
            Phase::Waiting
            | Phase::Done { .. }
            | Phase::Failed(_)
            | Phase::Skipped(_)
            | Phase::Removed { .. } => false,
        }
    }

    /// Whether what waits for it may start: it is Done (or gone), and still is. One outside the
    /// scope was found so before anything started; if it lies between two apps of the scope, the
    /// second waits through it for the first.
    pub(super) fn is_satisfied(&self, role: Role) -> bool {
        planted!(FailedCountsAsDone => if let Phase::Failed(_) = self.phase { return true });
        planted!(AilingCountsAsDone => if self.ailing_since().is_some() { return true });
        planted!(SyncedCountsAsDone => if let Phase::Converging(_) = self.phase { return true });
        planted!(GoingCountsAsGone => if let Phase::Removing { .. } = self.phase { return true });
        let over = matches!(
            self.phase,
            Phase::Done { ailing_since: None, .. } | Phase::Removed { ailing_since: None }
        );
        over && (role == Role::Act || self.unmet == 0)
    }

    pub(super) fn ailing_since(&self) -> Option<Time> {
        match self.phase {
            Phase::Done { ailing_since, .. } | Phase::Removed { ailing_since } => ailing_since,
            _ => None,
        }
    }
}
