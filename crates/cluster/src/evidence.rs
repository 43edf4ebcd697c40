//! A closer look at an app that is not well: its worst resource, what Kubernetes and its pod say
//! about it, the fields that differ from the source, and what that most likely means.
//!
//! Nothing is written, and nothing here fails: what cannot be looked at is named instead.

mod drift;
mod likely;
mod narrate;
pub(crate) mod stuck;
mod tree;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::LogParams;
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::Value;
use tiphys_model::Platform;
use tiphys_run::Evidence;

use crate::argocd::{ArgoCd, CallError, PATIENCE};
use crate::credentials;
use crate::error::ClusterError;
use crate::kinds::ObjectName;
use crate::names::Purpose;
pub use narrate::narrate;
use tree::{Node, Tree};

/// How much of each is kept.
const EVENTS: usize = 5;
const LOG_LINES: usize = 10;
const FIELDS: usize = 10;
/// Longer lines are cut: they have to be read beside others.
const LINE: usize = 300;

/// Looks closer. Argo CD's API says what it needs `get` for; logs come from Kubernetes.
#[derive(Clone)]
pub struct Witness {
    client: Client,
    argocd: ArgoCd,
}

/// What a closer look has found besides evidence.
#[derive(Debug, Clone, Default)]
pub struct Found {
    pub evidence: Evidence,
    /// Resources whose controller has not seen their newest generation.
    pub lagging: Vec<String>,
    /// The resources themselves were read.
    pub looked_closer: bool,
}

impl Witness {
    #[must_use]
    pub fn new(client: Client, argocd: ArgoCd) -> Self {
        Witness { client, argocd }
    }

    /// With the token that deploys.
    pub async fn of(client: &Client, platform: &Platform) -> Result<Self, ClusterError> {
        let argocd = credentials::argocd(client, platform, Purpose::Deploy).await?;
        Ok(Witness::new(client.clone(), argocd))
    }

    /// Adds to what the Application itself shows.
    pub async fn gather(&self, app: &str, project: &str, evidence: Evidence) -> Found {
        let mut found = Found { evidence, ..Found::default() };
        let (tree, managed, results) = futures::join!(
            self.tree(app, project),
            self.managed_resources(app, project),
            self.sync_results(app, project),
        );
        match managed {
            Ok(resources) => {
                found.looked_closer = true;
                found.lagging = resources.iter().filter_map(drift::lagging).collect();
                found.evidence.resource = resources.iter().find_map(drift::held_back);
                let drifted = drift::differences(&resources, FIELDS);
                if !drifted.is_empty() {
                    found.evidence.drifted = drifted;
                }
            }
            Err(error) => found.evidence.unseen.push(format!("the resources: {error}")),
        }
        match tree {
            Ok(tree) => self.look_at_worst(app, project, &tree, &mut found.evidence).await,
            Err(error) => found.evidence.unseen.push(format!("what belongs to it: {error}")),
        }
        match results {
            // What the API server said to a resource is nearer to the cause than what followed.
            Ok(results) => found.evidence.events.extend(results),
            Err(error) => found.evidence.unseen.push(format!("what its sync said: {error}")),
        }
        found.evidence.likely = likely::likely(&found.evidence);
        found
    }

    /// What an app consists of, down to what its resources have made.
    pub(crate) async fn members(
        &self,
        app: &str,
        project: &str,
    ) -> Result<Vec<ObjectName>, CallError> {
        Ok(self.tree(app, project).await?.members())
    }

    /// The resources whose controller has not seen their newest generation, or what keeps us from
    /// knowing.
    pub(crate) async fn lagging(&self, app: &str, project: &str) -> Vec<Arc<str>> {
        let unread = |error: CallError| format!("its resources (they cannot be read: {error})");
        let resources = match self.managed_resources(app, project).await {
            Ok(resources) => resources,
            Err(error) => return vec![unread(error).into()],
        };
        let mut lagging = Vec::new();
        for resource in &resources {
            let Some(name) = drift::lagging(resource) else { continue };
            // What Argo CD shows here is as old as its last comparison, and a new status alone
            // does not make it compare.
            match self.still_lags(app, project, resource).await {
                Ok(true) => lagging.push(name.into()),
                Ok(false) => {}
                Err(error) => lagging.push(unread(error).into()),
            }
        }
        lagging
    }

    async fn still_lags(
        &self,
        app: &str,
        project: &str,
        resource: &drift::Managed,
    ) -> Result<bool, CallError> {
        #[derive(Deserialize)]
        struct Live {
            manifest: String,
        }
        let path = format!("applications/{app}/resource?project={project}&{}", resource.query());
        let live: Live = self.argocd.call(Method::GET, &path, None::<&()>, PATIENCE).await?;
        Ok(drift::lags(&serde_json::from_str(&live.manifest).unwrap_or_default()))
    }

    async fn tree(&self, app: &str, project: &str) -> Result<Tree, CallError> {
        let path = format!("applications/{app}/resource-tree?project={project}");
        self.argocd.call(Method::GET, &path, None::<&()>, PATIENCE).await
    }

    async fn managed_resources(
        &self,
        app: &str,
        project: &str,
    ) -> Result<Vec<drift::Managed>, CallError> {
        let path = format!("applications/{app}/managed-resources?project={project}");
        let list: drift::ManagedList =
            self.argocd.call(Method::GET, &path, None::<&()>, PATIENCE).await?;
        Ok(list.items.unwrap_or_default())
    }

    /// What the last operation has said about the resources that it could not apply.
    async fn sync_results(&self, app: &str, project: &str) -> Result<Vec<String>, CallError> {
        let path = format!("applications/{app}?project={project}");
        let application: Value =
            self.argocd.call(Method::GET, &path, None::<&()>, PATIENCE).await?;
        Ok(failed_results(&application))
    }

    async fn look_at_worst(&self, app: &str, project: &str, tree: &Tree, into: &mut Evidence) {
        let mut chain = tree.worst();
        let Some(worst) = chain.first() else { return };
        // The owner's message is often the consequence, and the deepest one's the cause.
        let deepest = chain.last().filter(|node| node.uid != worst.uid);
        let worst = deepest.map_or_else(|| worst.to_string(), |deep| format!("{worst}; {deep}"));
        // What waits to be deleted explains more than what it has led to.
        into.resource.get_or_insert(worst);
        // A pod only says that it waits for its claim; the claim says why.
        let pod = chain.iter().rev().find(|node| node.kind == "Pod").copied();
        chain.extend(tree.pending_claims());
        let mut events = Vec::new();
        for node in &chain {
            match self.events(app, project, node).await {
                Ok(told) => events.extend(told),
                Err(error) => {
                    into.unseen.push(format!("the events of {}: {error}", node.name()));
                    break;
                }
            }
        }
        into.events = newest(events);
        if let Some(pod) = pod {
            match self.logs(pod).await {
                Ok(lines) => into.logs = lines,
                Err(why) => into.unseen.push(format!("the log of {}: {why}", pod.name())),
            }
        }
    }

    /// What Kubernetes has said about a resource. Argo CD's API server reads it for us, so that
    /// no rights are needed in the namespaces of apps.
    async fn events(&self, app: &str, project: &str, node: &Node) -> Result<Vec<Told>, CallError> {
        let path = format!(
            "applications/{app}/events?project={project}\
             &resourceNamespace={}&resourceName={}&resourceUID={}",
            node.namespace, node.name, node.uid
        );
        let list: EventList = self.argocd.call(Method::GET, &path, None::<&()>, PATIENCE).await?;
        let events = list.items.unwrap_or_default().into_iter();
        Ok(events.filter(|event| event.kind == "Warning").map(|event| told(node, event)).collect())
    }

    async fn logs(&self, pod: &Node) -> Result<Vec<String>, String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let name = &pod.name;
        let reading = async {
            let container = troubled_container(&pods.get(name).await?);
            let params = LogParams {
                container,
                tail_lines: i64::try_from(LOG_LINES).ok(),
                ..LogParams::default()
            };
            let now = pods.logs(name, &params).await?;
            if !now.trim().is_empty() {
                return Ok(now);
            }
            // It has just been started again: what it said before counts.
            let before = LogParams { previous: true, ..params };
            Ok::<_, kube::Error>(pods.logs(name, &before).await.unwrap_or_default())
        };
        match tokio::time::timeout(LOG_PATIENCE, reading).await {
            Ok(Ok(text)) => Ok(text.lines().map(cut).collect()),
            Ok(Err(kube::Error::Api(status))) => Err(status.message.clone()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no answer".to_owned()),
        }
    }
}

/// `Kind/name: SyncFailed MESSAGE` for each resource, or hook, that was not applied.
fn failed_results(application: &Value) -> Vec<String> {
    let results = application.pointer("/status/operationState/syncResult/resources");
    let results = results.and_then(Value::as_array).into_iter().flatten();
    let text = |result: &Value, field: &str| result[field].as_str().unwrap_or_default().to_owned();
    let failed = results.filter_map(|result| {
        let failed =
            |field: &str| ["SyncFailed", "Failed", "Error"].contains(&&*text(result, field));
        let word = ["status", "hookPhase"].into_iter().find(|field| failed(field))?;
        let (kind, name) = (text(result, "kind"), text(result, "name"));
        let line = format!("{kind}/{name}: {} {}", text(result, word), text(result, "message"));
        Some(cut(&line))
    });
    failed.take(EVENTS).collect()
}

/// The container that is not ready: of several, the log of one has to be asked for by name.
fn troubled_container(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let is_over = |status: &&ContainerStatus| {
        let state = status.state.as_ref().and_then(|state| state.terminated.as_ref());
        state.is_some_and(|terminated| terminated.exit_code == 0)
    };
    let first = status.init_container_statuses.iter().flatten().filter(|c| !is_over(c));
    let all = first.filter(|c| !c.ready).chain(status.container_statuses.iter().flatten());
    let all: Vec<&ContainerStatus> = all.collect();
    let troubled = all.iter().find(|container| !container.ready).or(all.first());
    troubled.map(|container| container.name.clone())
}

const LOG_PATIENCE: Duration = Duration::from_secs(5);

/// An event, and when it last happened.
struct Told {
    at: String,
    text: String,
    /// What it has in common with others that say the same of other objects.
    gist: String,
}

/// The newest last, and of those that say the same only the newest.
fn newest(mut events: Vec<Told>) -> Vec<String> {
    events.sort_by(|a, b| b.at.cmp(&a.at));
    let mut known = BTreeSet::new();
    events.retain(|told| known.insert(told.gist.clone()));
    events.truncate(EVENTS);
    events.into_iter().rev().map(|told| told.text).collect()
}

#[derive(Deserialize)]
struct EventList {
    items: Option<Vec<EventObject>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EventObject {
    #[serde(rename = "type")]
    kind: String,
    reason: String,
    message: String,
    count: Option<u32>,
    last_timestamp: Option<String>,
    event_time: Option<String>,
}

fn told(node: &Node, event: EventObject) -> Told {
    let times = match event.count.unwrap_or_default() {
        0 | 1 => String::new(),
        count => format!(" ({count} times)"),
    };
    let message = event.message.trim();
    let message = message.strip_prefix("(combined from similar events): ").unwrap_or(message);
    let text = format!("{}: {} {message}", node.name(), event.reason);
    // A pod that cannot be made has another name each time.
    let gist = text.split('"').step_by(2).collect();
    let at = event.last_timestamp.or(event.event_time).unwrap_or_default();
    Told { at, text: cut(&format!("{text}{times}")), gist }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(status: &Value) -> Option<String> {
        troubled_container(&serde_json::from_value(json!({ "status": status })).unwrap())
    }

    #[test]
    fn the_log_is_that_of_the_container_that_is_not_ready() {
        let one = |name: &str, ready: bool| {
            json!({
                "name": name, "ready": ready, "image": "", "imageID": "", "restartCount": 0,
                "state": if ready { json!({}) } else { json!({ "waiting": {} }) },
            })
        };
        let mut done = one("migrate", false);
        done["state"] = json!({ "terminated": { "exitCode": 0 } });
        let mains = json!([one("proxy", true), one("app", false)]);
        assert_eq!(container(&json!({ "containerStatuses": mains })).as_deref(), Some("app"));
        let after = json!({ "initContainerStatuses": [done], "containerStatuses": mains });
        assert_eq!(container(&after).as_deref(), Some("app"));
        let during = json!({
            "initContainerStatuses": [one("migrate", false)], "containerStatuses": mains,
        });
        assert_eq!(container(&during).as_deref(), Some("migrate"));
        let well = json!({ "containerStatuses": [one("app", true)] });
        assert_eq!(container(&well).as_deref(), Some("app"));
        assert_eq!(container(&json!({})), None);
    }

    #[test]
    fn what_could_not_be_applied_is_named() {
        let result = |name: &str, status: &str, phase: &str| {
            json!({
                "kind": "Job", "name": name, "status": status, "hookPhase": phase, "message": "m",
            })
        };
        let results = [
            result("a", "Synced", "Running"),
            result("b", "SyncFailed", ""),
            result("c", "", "Failed"),
        ];
        let state = json!({ "syncResult": { "resources": results } });
        let application = json!({ "status": { "operationState": state } });
        assert_eq!(failed_results(&application), ["Job/b: SyncFailed m", "Job/c: Failed m"]);
        assert_eq!(failed_results(&json!({})), Vec::<String>::new());
    }

    #[test]
    fn events_are_short_and_counted() {
        let node: Node = serde_json::from_value(json!({ "kind": "Pod", "name": "a" })).unwrap();
        let event = EventObject {
            reason: "BackOff".to_owned(),
            message: "x".repeat(400),
            count: Some(7),
            ..EventObject::default()
        };
        let told = told(&node, event).text;
        assert!(told.starts_with("Pod/a: BackOff xxx") && told.ends_with('…'), "{told}");
        assert_eq!(told.chars().count(), LINE + 1);
    }

    #[test]
    fn of_events_that_say_the_same_the_newest_is_told() {
        let node: Node =
            serde_json::from_value(json!({ "kind": "ReplicaSet", "name": "a" })).unwrap();
        let event = |at: &str, message: &str| {
            let event = EventObject {
                reason: "FailedCreate".to_owned(),
                message: message.to_owned(),
                last_timestamp: Some(at.to_owned()),
                ..EventObject::default()
            };
            told(&node, event)
        };
        let events = vec![
            event("2", "(combined from similar events): pods \"a-2\" is forbidden"),
            event("3", "another"),
            event("1", "pods \"a-1\" is forbidden"),
        ];
        assert_eq!(
            newest(events),
            [
                "ReplicaSet/a: FailedCreate pods \"a-2\" is forbidden",
                "ReplicaSet/a: FailedCreate another"
            ]
        );
    }
}
