//! What happens in a run. The state of a run is the fold of its events, and nothing else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tiphys_model::{AppIx, Exit, Health, OperationId};

use crate::cause::Cause;
use crate::gate::Suspicion;
use crate::observation::{
    Condition, ConditionKind, Initiator, LastOperation, Observation, OperationPhase, Revisions,
};
use crate::time::Time;

/// One change of a run's state. Each kind says what its consumers may rely on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Every Application has been looked at once; steps may start from here on.
    Begun,
    /// Automated sync is denied for the platform's apps.
    Held,
    Waiting {
        app: AppIx,
        on: WaitingOn,
    },
    RefreshAsked {
        app: AppIx,
    },
    /// No refresh is asked for, because something else may show as much.
    RefreshSpared {
        app: AppIx,
        by: SparedBy,
    },
    /// It has shown as much: what is known of the app counts as if it had been refreshed.
    Vouched {
        app: AppIx,
    },
    /// What is known is too old to decide anything; a refresh follows as soon as one is due.
    RefreshWanted {
        app: AppIx,
    },
    Refreshed {
        app: AppIx,
    },
    /// Whoever else has a say in when the step may start has agreed. It starts when its turn comes.
    Admitted {
        app: AppIx,
    },
    /// Something that the run cannot change keeps the step from syncing.
    Blocked {
        app: AppIx,
        why: BlockedBy,
    },
    /// It does so no longer.
    Unblocked {
        app: AppIx,
    },
    /// A new attempt; from the first one on the step counts as started.
    Syncing {
        app: AppIx,
        attempt: Attempt,
    },
    /// Argo CD took the sync request: what it shows after this version is its answer.
    Accepted {
        app: AppIx,
        version: u64,
    },
    /// Whether the sync request arrived is unknown; it is sent again unless it turns up.
    Unanswered {
        app: AppIx,
        message: Arc<str>,
    },
    /// The look that was asked for because of it has come back.
    ReadReturned {
        app: AppIx,
    },
    Resent {
        app: AppIx,
    },
    /// The request was not taken because another operation is under way: no attempt was made,
    /// and the same one begins at `until`.
    Postponed {
        app: AppIx,
        until: Time,
    },
    /// The operation succeeded; from here on the gate is awaited.
    Converging {
        app: AppIx,
    },
    RevisionMoved {
        app: AppIx,
        from: Revisions,
        to: Revisions,
    },
    /// The attempt failed; the next one begins at `until`.
    Retrying {
        app: AppIx,
        cause: Cause,
        until: Time,
    },
    Suspected {
        app: AppIx,
        suspicion: Suspicion,
    },
    Cleared {
        app: AppIx,
    },
    Done {
        app: AppIx,
        how: How,
    },
    /// It was Done and is not as it was: unhealthy, or, in a teardown, there again.
    Ailing {
        app: AppIx,
        health: Option<Health>,
    },
    Recovered {
        app: AppIx,
    },
    Failed {
        app: AppIx,
        state: FailState,
        cause: Cause,
        evidence: Evidence,
    },
    Skipped {
        app: AppIx,
        because: Because,
    },
    Removing {
        app: AppIx,
    },
    Removed {
        app: AppIx,
    },
    HandOffAsked {
        app: AppIx,
    },
    /// The app is Argo CD's again.
    HandedOff {
        app: AppIx,
    },
    /// The operation ran out of time and is to be stopped.
    TerminateAsked {
        app: AppIx,
    },
    Terminated {
        app: AppIx,
    },
    /// A look was asked for, in case the watch has gone silent.
    ReadAsked {
        app: AppIx,
    },
    Interrupted {
        signal: Signal,
    },
    /// Nothing follows.
    Finished {
        verdict: Verdict,
        unhealthy: Vec<Unhealthy>,
    },
}

impl Event {
    /// The app whose step an event changes.
    #[must_use]
    pub fn app(&self) -> Option<AppIx> {
        match self {
            Event::Begun | Event::Held | Event::Interrupted { .. } | Event::Finished { .. } => None,
            Event::Waiting { app, .. }
            | Event::RefreshAsked { app }
            | Event::RefreshSpared { app, .. }
            | Event::Vouched { app }
            | Event::RefreshWanted { app }
            | Event::Refreshed { app }
            | Event::Admitted { app }
            | Event::Blocked { app, .. }
            | Event::Unblocked { app }
            | Event::Syncing { app, .. }
            | Event::Accepted { app, .. }
            | Event::Unanswered { app, .. }
            | Event::Resent { app }
            | Event::ReadReturned { app }
            | Event::Postponed { app, .. }
            | Event::Converging { app }
            | Event::RevisionMoved { app, .. }
            | Event::Retrying { app, .. }
            | Event::Suspected { app, .. }
            | Event::Cleared { app }
            | Event::Done { app, .. }
            | Event::Ailing { app, .. }
            | Event::Recovered { app }
            | Event::Failed { app, .. }
            | Event::Skipped { app, .. }
            | Event::Removing { app }
            | Event::Removed { app }
            | Event::HandOffAsked { app }
            | Event::HandedOff { app }
            | Event::TerminateAsked { app }
            | Event::Terminated { app }
            | Event::ReadAsked { app } => Some(*app),
        }
    }
}

/// What may make a refresh superfluous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparedBy {
    /// The refresh of another app on the same cluster.
    Witness(AppIx),
    /// The comparison that Argo CD makes by itself, since the app's spec is new.
    Comparison,
}

/// What a step waits for before it may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingOn {
    /// Its dependencies (in a teardown: its dependants), as from the beginning.
    Prerequisites,
    /// One that was Done and turned unhealthy.
    Unhealthy(AppIx),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockedBy {
    /// Somebody else's operation.
    Operation { by: Initiator },
    /// Argo CD has not compared it with its current spec.
    NotCompared,
}

/// An attempt to sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub operation: OperationId,
    pub revisions: Revisions,
    /// The request asks for them.
    pub pinned: bool,
    /// The last operation as it was before: if it changes without showing ours, ours was
    /// replaced.
    pub before: Option<LastOperation>,
    /// Found under way at this version instead of being sent.
    pub adopted: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    Applied,
    AlreadyCurrent,
}

/// How a step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailState {
    /// It was asked and said no.
    Failed,
    /// It could not be asked.
    Errored,
    TimedOut,
}

impl How {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            How::Applied => "applied",
            How::AlreadyCurrent => "already-current",
        }
    }
}

impl FailState {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FailState::Failed => "failed",
            FailState::Errored => "errored",
            FailState::TimedOut => "timed-out",
        }
    }
}

/// Why a step was not attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// That one failed or was skipped.
    App(AppIx),
    /// That one was Done, turned unhealthy and stayed so.
    Unhealthy(AppIx),
    /// That one lies outside the scope and is not Healthy.
    Outside(AppIx),
    /// The run's deadline passed.
    Deadline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    #[serde(rename = "SIGINT")]
    Interrupt,
    #[serde(rename = "SIGTERM")]
    Terminate,
}

impl Signal {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Succeeded,
    Failed,
    Deadline,
    Interrupted(Signal),
    /// Another run holds the platform.
    LeaseLost,
}

impl Verdict {
    pub const ALL: [Verdict; 6] = [
        Verdict::Succeeded,
        Verdict::Failed,
        Verdict::Deadline,
        Verdict::Interrupted(Signal::Interrupt),
        Verdict::Interrupted(Signal::Terminate),
        Verdict::LeaseLost,
    ];

    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            Verdict::Succeeded => Exit::Done,
            Verdict::Failed => Exit::Failed,
            Verdict::Deadline => Exit::Deadline,
            Verdict::Interrupted(Signal::Interrupt) => Exit::Interrupted,
            Verdict::Interrupted(Signal::Terminate) => Exit::Terminated,
            Verdict::LeaseLost => Exit::Held,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Succeeded => "succeeded",
            Verdict::Failed => "failed",
            Verdict::Deadline => "deadline",
            Verdict::Interrupted(_) => "interrupted",
            Verdict::LeaseLost => "lease-lost",
        }
    }
}

/// An app that was Done, or removed, and is not so any more when the run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unhealthy {
    pub app: AppIx,
    pub cause: Cause,
    pub evidence: Evidence,
}

/// What was seen when a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// Resources that are not as the source says, with their fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<String>,
    /// The resource that is worst off, and what it says. This and the rest is for an engine to
    /// add that can look closer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// What Kubernetes has said about it, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The last lines that its pod has written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
    /// What it most likely is, and what to do then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely: Option<String>,
    /// What could not be looked at, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

impl Evidence {
    #[must_use]
    pub fn from_observation(seen: &Observation) -> Self {
        // That an operation succeeded explains nothing.
        let failed = |last: &&LastOperation| last.phase != OperationPhase::Succeeded;
        let operation_message = || {
            let last = seen.last.as_ref().filter(failed)?;
            (!last.message.is_empty()).then(|| last.message.clone())
        };
        // Argo CD does not rewrite SyncError while automated sync is held.
        let telling = |condition: &&Condition| condition.kind != ConditionKind::Sync;
        let condition = || seen.conditions.iter().find(telling).map(|c| c.message.clone());
        let drifted = |d: &crate::observation::Drifted| {
            if d.fields.is_empty() {
                d.resource.to_string()
            } else {
                format!("{}: {}", d.resource, d.fields.join(", "))
            }
        };
        Evidence {
            health: Some(seen.health),
            message: seen
                .health_message
                .clone()
                .or_else(operation_message)
                .or_else(condition)
                .or_else(|| seen.unmet.first().cloned()),
            drifted: seen.drifted.iter().map(drifted).collect(),
            ..Evidence::default()
        }
    }
}
