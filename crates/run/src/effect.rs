//! What a run wants done, and what comes back.

use std::fmt;
use std::sync::Arc;

use tiphys_model::{AppIx, OperationId};

use crate::event::Signal;
use crate::observation::{Observation, Revisions};
use crate::time::Stamp;

/// Counts the requests of a step whose answers must not be mistaken for each other: that of an
/// earlier one may arrive late, or twice.
pub type RequestNumber = u32;

/// What an engine has to do; all of it is answered by an [`Answer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Sync {
        app: AppIx,
        operation: OperationId,
        /// Empty: whatever the spec names.
        revisions: Revisions,
        number: RequestNumber,
    },
    /// A normal refresh, answered when it has completed.
    Refresh {
        app: AppIx,
        number: RequestNumber,
    },
    /// One look, in case the watch missed something.
    Read {
        app: AppIx,
        number: RequestNumber,
    },
    Terminate {
        app: AppIx,
    },
    /// Take the app off the hold's list and refresh it.
    HandOff {
        app: AppIx,
    },
    Delete {
        app: AppIx,
    },
}

impl Effect {
    #[must_use]
    pub fn app(&self) -> AppIx {
        match self {
            Effect::Sync { app, .. }
            | Effect::Refresh { app, .. }
            | Effect::Read { app, .. }
            | Effect::Terminate { app }
            | Effect::HandOff { app }
            | Effect::Delete { app } => *app,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Sync { operation, revisions, .. } if revisions.0.is_empty() => {
                write!(f, "sync (operation {operation})")
            }
            Effect::Sync { operation, revisions, .. } => {
                write!(f, "sync at {revisions} (operation {operation})")
            }
            Effect::Refresh { .. } => f.write_str("refresh"),
            Effect::Read { .. } => f.write_str("read"),
            Effect::Terminate { .. } => f.write_str("stop the operation"),
            Effect::HandOff { .. } => f.write_str("release from the hold"),
            Effect::Delete { .. } => f.write_str("delete"),
        }
    }
}

/// What comes back for an effect. An answer may come late, twice or never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Sync {
        number: RequestNumber,
        answer: SyncAnswer,
    },
    /// What was seen has been told before.
    Looked {
        number: RequestNumber,
    },
    Refreshed {
        number: RequestNumber,
    },
    RefreshFailed {
        number: RequestNumber,
    },
    HandedOff,
    /// The operation is being stopped, or had ended.
    Terminated,
    DeleteAccepted,
    DeleteRefused {
        message: Arc<str>,
    },
    DeleteUnanswered,
}

/// What came of a sync request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncAnswer {
    /// It was taken; the Application had this version afterwards.
    Accepted { version: u64 },
    /// Another operation is under way.
    Conflict,
    /// No, and asking again will not help.
    Refused { message: Arc<str> },
    /// Nobody knows whether it arrived.
    Unanswered { message: Arc<str> },
}

/// What is known of Argo CD's clock when a run begins. Without it, every app is refreshed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// When Argo CD's settings changed last: what it compared later it would compare alike now.
    pub settled: Option<Stamp>,
    /// What it compared later than this, it compared in this run.
    pub begun: Option<Stamp>,
}

/// What a driver is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Every Application has been looked at once; those that do not exist are `None`.
    Listed {
        seen: Vec<Option<Arc<Observation>>>,
        held: bool,
        clock: Clock,
    },
    /// A look at one of them; `None`: it is gone since that version.
    Observed {
        app: AppIx,
        version: u64,
        seen: Option<Arc<Observation>>,
    },
    /// What a closer look at one of them has found. It belongs to the newest look.
    Found {
        app: AppIx,
        lagging: Vec<Arc<str>>,
        unmet: Vec<Arc<str>>,
    },
    Answered {
        app: AppIx,
        answer: Answer,
    },
    /// The app may start as far as others are concerned. Only for a machine that asks them.
    Admitted {
        app: AppIx,
    },
    /// Time has passed.
    Tick,
    Interrupted(Signal),
    /// Another run holds the platform now.
    LeaseLost,
}

impl Input {
    /// The app that it is about, if it is about one.
    #[must_use]
    pub fn app(&self) -> Option<AppIx> {
        match self {
            Input::Observed { app, .. }
            | Input::Found { app, .. }
            | Input::Answered { app, .. }
            | Input::Admitted { app } => Some(*app),
            Input::Listed { .. } | Input::Tick | Input::Interrupted(_) | Input::LeaseLost => None,
        }
    }
}
