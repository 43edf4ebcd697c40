//! How far a run is, in the file from which Argo Workflows takes it: `3/43`.

use std::fs;
use std::path::PathBuf;

use tiphys_run::{EventKind, EventLine};

/// Where Argo Workflows wants to read that, in a step's container.
pub(crate) const VARIABLE: &str = "ARGO_PROGRESS_FILE";

pub(crate) struct ProgressFile {
    path: PathBuf,
    steps: usize,
    ended: usize,
}

impl ProgressFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        ProgressFile { path, steps: 0, ended: 0 }
    }

    /// Nobody needs it, so nothing depends on whether it can be written.
    pub(crate) fn take(&mut self, line: &EventLine) {
        if let Some(text) = self.next(&line.kind)
            && let Err(error) = fs::write(&self.path, text)
        {
            tracing::debug!("cannot write {}: {error}", self.path.display());
        }
    }

    fn next(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::RunStarted(started) => (self.steps, self.ended) = (started.graph.len(), 0),
            EventKind::StepDone { .. }
            | EventKind::StepFailed { .. }
            | EventKind::StepSkipped { .. }
            | EventKind::StepRemoved { .. } => self.ended += 1,
            _ => return None,
        }
        // Argo Workflows takes nothing for a step of nothing.
        (self.steps > 0).then(|| format!("{}/{}\n", self.ended.min(self.steps), self.steps))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn steps_that_have_ended_are_counted() {
        let graph = |app: &str| json!({ "app": app, "stack": "s", "layer": 0, "dependsOn": [], "typicalSeconds": 1 });
        let started = json!({
            "kind": "run-started", "run": "r", "action": "deploy", "engine": "local",
            "platform": "p", "scope": "platform", "plan": format!("sha256:{}", "0".repeat(64)),
            "graph": [graph("a"), graph("b")],
        });
        let mut file = ProgressFile::new(PathBuf::new());
        let mut next = |kind: Value| file.next(&serde_json::from_value(kind).unwrap());
        assert_eq!(next(started).as_deref(), Some("0/2\n"));
        assert_eq!(next(json!({ "kind": "step-syncing", "app": "a", "attempt": 1 })), None);
        let done = json!({ "kind": "step-done", "app": "a", "how": "applied", "tookMs": 1 });
        assert_eq!(next(done).as_deref(), Some("1/2\n"));
    }
}
