//! Events as others read them: one line of JSON each, with names instead of positions.

mod finished;
mod read;
mod started;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tiphys_model::AppName;

use crate::event::{Evidence, FailState, How, Signal};

pub use finished::{Counts, RunFinished, UnhealthyApp};
pub use read::LogLine;
pub use started::{EngineName, GraphApp, RunStarted};

/// The version of this contract; it stands in the first line.
pub const VERSION: u8 = 1;

/// One line of a run's log. Lines are numbered without gaps, and none is ever left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<u8>,
    pub seq: u64,
    pub at: Timestamp,
    pub elapsed_ms: u64,
    #[serde(flatten)]
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// Always first.
    RunStarted(RunStarted),
    Held,
    HandedOff {
        app: AppName,
    },
    /// What the step waits for before it may start.
    StepWaiting {
        app: AppName,
        on: Vec<AppName>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    StepSyncing {
        app: AppName,
        attempt: u32,
    },
    StepConverging {
        app: AppName,
    },
    StepRetrying {
        app: AppName,
        cause: String,
        in_ms: u64,
    },
    StepDone {
        app: AppName,
        how: How,
        took_ms: u64,
    },
    StepFailed {
        app: AppName,
        state: FailState,
        cause: String,
        evidence: Evidence,
        hint: String,
    },
    /// From what it waited for to what failed.
    StepSkipped {
        app: AppName,
        because: Vec<AppName>,
        reason: String,
    },
    StepRemoving {
        app: AppName,
    },
    StepRemoved {
        app: AppName,
        took_ms: u64,
    },
    RevisionMoved {
        app: AppName,
        from: String,
        to: String,
    },
    Interrupted {
        signal: Signal,
    },
    /// Always last.
    RunFinished(RunFinished),
}
