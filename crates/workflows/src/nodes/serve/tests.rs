use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::{Value, json};
use tiphys_cluster::scripted::{self, Answer, Asked};
use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::nodes::NodePhase;
use crate::nodes::compile::Owner;
use crate::nodes::compile::tests::{plan, pod};

/// An Argo Workflows that opens the nodes of a chain, one after the other.
#[derive(Default)]
struct Argo {
    chain: Vec<&'static str>,
    workflows: u32,
    /// Of the newest workflow.
    results: BTreeMap<String, Value>,
    broken: bool,
    /// All of them end like that.
    doomed: bool,
    /// What somebody has asked for.
    shutdown: Option<&'static str>,
    log: Vec<String>,
}

impl Argo {
    fn name(&self) -> String {
        format!("wf-{}", self.workflows)
    }

    /// A node is open until it has a result, if those before it have succeeded.
    fn open(&self) -> Option<&'static str> {
        self.chain.iter().copied().find(|app| !self.results.contains_key(*app))
    }

    fn has_ended(&self) -> bool {
        self.broken || self.doomed || self.open().is_none()
    }

    fn task_set(&self) -> Value {
        let node = |app| (format!("node-{app}"), json!({ "plugin": { "tiphys": { "app": app } } }));
        let tasks: BTreeMap<String, Value> = self.open().map(node).into_iter().collect();
        self.object("WorkflowTaskSet", &json!({ "spec": { "tasks": tasks } }))
    }

    fn workflow(&self) -> Value {
        let spec = json!({ "spec": { "shutdown": self.shutdown } });
        let mut workflow = self.object("Workflow", &spec);
        workflow["metadata"]["labels"] = json!({ COMPLETED: self.has_ended().to_string() });
        workflow["status"] = json!({ "message": "agent pod failed" });
        workflow
    }

    fn object(&self, kind: &str, rest: &Value) -> Value {
        let mut object = rest.clone();
        object["apiVersion"] = "argoproj.io/v1alpha1".into();
        object["kind"] = kind.into();
        object["metadata"] = json!({ "name": self.name(), "resourceVersion": "1" });
        object
    }

    fn answer(&mut self, asked: &Asked) -> Answer {
        let sets = asked.path.contains("workflowtasksets");
        let object = if sets { self.task_set() } else { self.workflow() };
        let later = |answer| Answer::After(Duration::from_secs(1), Box::new(answer));
        let list = |items: &[Value]| {
            Answer::Object(json!({ "metadata": { "resourceVersion": "1" }, "items": items }))
        };
        if asked.method == Method::POST {
            self.workflows += 1;
            (self.results, self.broken) = (BTreeMap::new(), false);
            self.log.push(format!("submitted {}", self.name()));
            return Answer::Object(self.workflow());
        }
        if asked.method == Method::PATCH && sets {
            for (node, report) in asked.body["status"]["nodes"].as_object().unwrap() {
                let (phase, message) = (&report["phase"], &report["message"]);
                self.log.push(format!("{node} {phase}: {message}").replace('"', ""));
                if phase != "Pending" {
                    let app = node.trim_start_matches("node-").to_owned();
                    self.results.insert(app, report.clone());
                }
            }
            return Answer::Object(self.task_set());
        }
        if asked.method == Method::PATCH {
            self.log.push(format!("stopped {}", self.name()));
            self.broken = true;
            return Answer::Object(self.workflow());
        }
        if asked.path.contains("watch=true") {
            return later(Answer::Object(json!({ "type": "MODIFIED", "object": object })));
        }
        match asked.path.contains("labelSelector") {
            true => list(&[]),
            false if asked.path.contains("fieldSelector") => list(&[object]),
            false => Answer::Object(object),
        }
    }
}

/// What the run does about news from its nodes.
enum Act {
    Report(Vec<(String, NodeReport)>),
    /// The same, and then it is over.
    End(Vec<(String, NodeReport)>),
    Wait,
}

/// Serves a chain of two; `act` hears what comes from the nodes, and plays the run and the trouble.
async fn served(
    mut act: impl FnMut(&FromNodes, &mut Argo) -> Act,
) -> (Result<(), NodesError>, Vec<String>) {
    let plan = plan("        - {name: a}\n        - {name: b, dependsOn: [a]}\n");
    let argo = Arc::new(Mutex::new(Argo { chain: vec!["a", "b"], ..Argo::default() }));
    let answering = argo.clone();
    let client = scripted::client(move |asked| answering.lock().unwrap().answer(asked));
    let owner = Owner { name: "outer".to_owned(), uid: "1".to_owned() };
    let run = NodesRun {
        plan: &plan,
        run: "0123456789ab-1",
        epoch: 1,
        argocd: "argocd",
        account: "nodes",
        owner: &owner,
        pod: &pod(),
    };
    let (send, reports) = unbounded_channel();
    let send = RefCell::new(Some(send));
    let act = RefCell::new(&mut act);
    let tell = |news: FromNodes| {
        let mut argo = argo.lock().unwrap();
        argo.log.push(format!("told {news:?}"));
        let (said, ends) = match (act.borrow_mut())(&news, &mut argo) {
            Act::Report(said) => (said, false),
            Act::End(said) => (said, true),
            Act::Wait => (Vec::new(), false),
        };
        let mut send = send.borrow_mut();
        for one in said {
            send.as_ref().unwrap().send(one).unwrap();
        }
        if ends {
            *send = None;
        }
    };
    let ended = serve_nodes(&client, &run, reports, &tell).await;
    let log = argo.lock().unwrap().log.clone();
    (ended, log)
}

fn done(app: &str) -> (String, NodeReport) {
    let message = "applied".to_owned();
    (app.to_owned(), NodeReport { phase: NodePhase::Succeeded, message })
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_breaks_is_replaced_and_told_what_is_done() {
    let (ended, log) = served(|news, argo| match news {
        FromNodes::Admitted(app) if app == "a" => Act::Report(vec![done("a")]),
        // The pod of the agent fails while `b` is being deployed.
        FromNodes::Admitted(_) => {
            argo.broken = true;
            Act::Wait
        }
        FromNodes::Warning(_) => Act::End(vec![done("b")]),
        FromNodes::Stopped => panic!("nobody has stopped it"),
    })
    .await;
    ended.unwrap();
    let warning = "the workflow wf-1 ended before the run: agent pod failed; submitting another";
    assert_eq!(
        log,
        [
            "submitted wf-1",
            "told Admitted(\"a\")",
            "node-a Succeeded: applied",
            "told Admitted(\"b\")",
            &format!("told Warning({warning:?})"),
            "submitted wf-2",
            "node-a Succeeded: applied",
            "node-b Succeeded: applied",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_the_workflow_stops_the_run() {
    let (ended, log) = served(|news, argo| match news {
        FromNodes::Admitted(_) => {
            (argo.broken, argo.shutdown) = (true, Some("Stop"));
            Act::Wait
        }
        FromNodes::Stopped => Act::End(Vec::new()),
        FromNodes::Warning(text) => panic!("{text}"),
    })
    .await;
    ended.unwrap();
    assert_eq!(log, ["submitted wf-1", "told Admitted(\"a\")", "told Stopped"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_leaves_early_stops_its_workflow() {
    let (ended, log) = served(|_, _| Act::End(Vec::new())).await;
    ended.unwrap();
    assert_eq!(log, ["submitted wf-1", "told Admitted(\"a\")", "stopped wf-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_never_gets_anywhere_is_given_up() {
    let (ended, log) = served(|_, argo| {
        argo.doomed = true;
        Act::Wait
    })
    .await;
    let error = ended.unwrap_err();
    assert!(matches!(error, NodesError::EndsAgainAndAgain { .. }), "{error}");
    let submitted = log.iter().filter(|line| line.starts_with("submitted")).count();
    assert_eq!(submitted, 5, "{log:#?}");
}
