//! What the end of a workflow with nodes means for its run.

use serde_json::Value;

/// How often in a row a workflow may end early without an app that got done in between.
const MOST_BEGINNINGS: u32 = 5;

/// What is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// Every app is over, so it had to end.
    Well,
    /// A person has stopped it.
    Stopped,
    /// What Argo Workflows does not recover from: its pod has failed, or the workflow was deleted.
    BeginAgain { message: String },
    /// It would not help.
    GiveUp { message: String },
}

/// Counts the beginnings that came to nothing.
#[derive(Debug, Default)]
pub(super) struct Beginnings {
    fruitless: u32,
    over: usize,
}

impl Beginnings {
    /// `workflow` is nothing if it was deleted; `over` of `all` apps are over.
    pub(super) fn judge(&mut self, workflow: Option<&Value>, over: usize, all: usize) -> Ended {
        if over == all {
            return Ended::Well;
        }
        if workflow.is_some_and(|workflow| !workflow["spec"]["shutdown"].is_null()) {
            return Ended::Stopped;
        }
        let message = match workflow {
            Some(workflow) => message(&workflow["status"]),
            None => "it was deleted".to_owned(),
        };
        self.fruitless = if over > self.over { 1 } else { self.fruitless + 1 };
        self.over = over;
        if self.fruitless >= MOST_BEGINNINGS {
            Ended::GiveUp { message }
        } else {
            Ended::BeginAgain { message }
        }
    }
}

/// What a node says about it says more than the workflow, which only counts.
fn message(status: &Value) -> String {
    let nodes = status["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    let failed = nodes.filter(|node| node["type"] == "Plugin" && node["phase"] == "Error");
    let said = failed.filter_map(|node| node["message"].as_str()).find(|said| !said.is_empty());
    let said = said.or(status["message"].as_str()).unwrap_or("it did not say why");
    said.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evicted() -> Value {
        let node = |phase, message| json!({ "type": "Plugin", "phase": phase, "message": message });
        let status = json!({
            "phase": "Error",
            "message": "child 'x' errored",
            "nodes": {
                "1": node("Succeeded", "applied"),
                "2": node("Error", "agent pod failed with reason: evicted"),
            },
        });
        json!({ "spec": {}, "status": status })
    }

    #[test]
    fn a_pod_that_failed_is_no_reason_to_give_up_unless_it_happens_all_the_time() {
        let mut beginnings = Beginnings::default();
        let message = "agent pod failed with reason: evicted".to_owned();
        let again = Ended::BeginAgain { message: message.clone() };
        for over in [1, 1, 1, 1, 2, 2, 2, 2] {
            assert_eq!(beginnings.judge(Some(&evicted()), over, 3), again);
        }
        assert_eq!(beginnings.judge(Some(&evicted()), 2, 3), Ended::GiveUp { message });
        assert_eq!(beginnings.judge(Some(&evicted()), 3, 3), Ended::Well);
    }

    #[test]
    fn who_stops_the_workflow_stops_the_run() {
        let stopped = json!({ "spec": { "shutdown": "Stop" }, "status": {} });
        assert_eq!(Beginnings::default().judge(Some(&stopped), 0, 1), Ended::Stopped);
        let deleted = Ended::BeginAgain { message: "it was deleted".to_owned() };
        assert_eq!(Beginnings::default().judge(None, 0, 1), deleted);
    }
}
