//! The last line: how the run ended.

use serde::{Deserialize, Serialize};
use tiphys_model::{AppName, Exit};

use crate::event::{Evidence, Verdict};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct RunFinished {
    pub verdict: Verdict,
    pub makespan_ms: u64,
    /// The longest chain of what the steps took: no concurrency could have been quicker.
    pub critical_path_ms: u64,
    pub counts: Counts,
    /// The apps that `counts.unhealthy` counts.
    pub unhealthy: Vec<UnhealthyApp>,
}

/// An app that was done and is not as it was when the run ended; told like one that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnhealthyApp {
    pub app: AppName,
    pub cause: String,
    pub evidence: Evidence,
    pub hint: String,
}

impl RunFinished {
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.verdict.exit()
    }
}

/// How many steps ended how; `unfinished` is what an interrupt or the deadline left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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

/// As it stands in the line. Word and exit code together are the verdict: which signal
/// interrupted the run, only the code tells.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    verdict: String,
    exit: u8,
    makespan_ms: u64,
    critical_path_ms: u64,
    counts: Counts,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unhealthy: Vec<UnhealthyApp>,
}

impl From<RunFinished> for Written {
    fn from(finished: RunFinished) -> Self {
        let RunFinished { verdict, makespan_ms, critical_path_ms, counts, unhealthy } = finished;
        Written {
            verdict: verdict.as_str().to_owned(),
            exit: verdict.exit().code(),
            makespan_ms,
            critical_path_ms,
            counts,
            unhealthy,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the verdict {verdict:?} does not match the exit code {exit}")]
struct NotAVerdict {
    verdict: String,
    exit: u8,
}

impl TryFrom<Written> for RunFinished {
    type Error = NotAVerdict;

    fn try_from(written: Written) -> Result<Self, NotAVerdict> {
        let Written { verdict, exit, makespan_ms, critical_path_ms, counts, unhealthy } = written;
        let matches = |known: &Verdict| known.as_str() == verdict && known.exit().code() == exit;
        match Verdict::ALL.into_iter().find(matches) {
            Some(verdict) => {
                Ok(RunFinished { verdict, makespan_ms, critical_path_ms, counts, unhealthy })
            }
            None => Err(NotAVerdict { verdict, exit }),
        }
    }
}
