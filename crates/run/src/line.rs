//! Events as others read them: one line of JSON each, with names instead of positions.

use jiff::Timestamp;
use serde::Serialize;
use tiphys_model::plan::Digest;
use tiphys_model::{AppName, PlatformName, Scope};

use crate::event::{Evidence, FailState, How};

/// The version of this contract; it stands in the first line.
pub(crate) const VERSION: u8 = 1;

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        signal: &'static str,
    },
    /// Always last.
    RunFinished(RunFinished),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunStarted {
    pub run: String,
    pub action: &'static str,
    pub engine: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub platform: PlatformName,
    pub scope: Scope,
    pub plan: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFinished {
    pub verdict: &'static str,
    pub exit: u8,
    pub makespan_ms: u64,
    /// The longest chain of what the steps took: no concurrency could have been quicker.
    pub critical_path_ms: u64,
    pub counts: Counts,
}

/// How many steps ended how; `unfinished` is what an interrupt or the deadline left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub applied: usize,
    pub already_current: usize,
    pub removed: usize,
    pub failed: usize,
    pub errored: usize,
    pub timed_out: usize,
    pub skipped: usize,
    /// Done, but not Healthy when the run ended.
    pub unhealthy: usize,
    pub unfinished: usize,
}
