//! The head of a record: which run it was, and how it is going.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tiphys_model::plan::Digest;
use tiphys_model::{PlatformName, Scope};
use tiphys_run::{Action, EngineName, RunFinished, RunStarted};

/// As others read it, too: `tiphys runs -o json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunHead {
    pub run: String,
    pub platform: PlatformName,
    /// The namespace of Argo CD.
    pub argocd: String,
    pub action: Action,
    pub engine: EngineName,
    pub scope: Scope,
    pub plan: Digest,
    /// Who holds the Lease.
    pub by: String,
    pub started: Timestamp,
    /// How many segments have been written.
    pub segments: usize,
    /// How it ended; nothing of an end that nobody could write down.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub finished: Option<RunFinished>,
}

impl RunHead {
    pub(super) fn new(began: &RunStarted, started: Timestamp, argocd: &str, by: &str) -> Self {
        RunHead {
            run: began.run.clone(),
            platform: began.platform.clone(),
            argocd: argocd.to_owned(),
            action: began.action,
            engine: began.engine,
            scope: began.scope.clone(),
            plan: began.plan.clone(),
            by: by.to_owned(),
            started,
            segments: 0,
            finished: None,
        }
    }

    /// Evidence is in the lines: a head stays small.
    pub(super) fn finish(&mut self, finished: &RunFinished) {
        self.finished = Some(RunFinished { unhealthy: Vec::new(), ..finished.clone() });
    }

    /// The ConfigMap. Names of platforms and namespaces have no dots, so no other record has this one.
    /// Where a Lease was made anew, runs are numbered from the beginning again: the time tells them
    /// apart, and sorts them.
    pub(super) fn name(&self) -> String {
        let started = self.started.strftime("%Y%m%d-%H%M%S%.3f").to_string().replace('.', "-");
        format!("{}.{}.{started}.{}", self.argocd, self.platform, self.run)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_head_is_read_back_as_it_was_written() {
        let mut written = json!({
            "run": "abc-7", "platform": "prod", "argocd": "argocd", "action": "deploy",
            "engine": "local", "scope": "platform",
            "plan": format!("sha256:{}", "0".repeat(64)), "by": "somebody",
            "started": "2026-11-18T12:00:00.25Z", "segments": 2,
        });
        let read: RunHead = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        assert_eq!(read.name(), "argocd.prod.20261118-120000-250.abc-7");
        let counts = serde_json::to_value(tiphys_run::Counts::default()).unwrap();
        let end = json!({
            "verdict": "failed", "exit": 1, "makespanMs": 5, "criticalPathMs": 4, "counts": counts,
        });
        written.as_object_mut().unwrap().extend(end.as_object().unwrap().clone());
        let read: RunHead = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(read.finished.as_ref().unwrap().exit().code(), 1);
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
    }
}
