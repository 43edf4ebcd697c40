//! A closer look at an app that is not well: its worst resource, what Kubernetes and its pod say
//! about it, the fields that differ from the source, and what that most likely means.
//!
//! Nothing is written, and nothing here fails: what cannot be looked at is named instead.

mod attach;
mod behind;
mod drift;
mod events;
mod likely;
mod log;
mod tree;

use std::sync::Arc;

use http::Method;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use tiphys_model::Platform;
use tiphys_run::Evidence;

pub use attach::attach_evidence;
use events::{EventList, ReportedEvent};
use tiphys_argocd::credentials::{self, CredentialsError};
use tiphys_argocd::rest::{CallError, REQUEST_TIMEOUT, RestClient};
use tiphys_argocd::{AppAddress, ArgoCdClient, Destination};
use tiphys_cluster::ObjectName;
use tiphys_cluster::excerpt::{EVENTS, cut};
use tiphys_cluster::names::Purpose;
use tree::{Node, Tree};

const FIELDS: usize = 10;

/// Looks closer. Argo CD's API says what it needs `get` for; logs come from Kubernetes, and those
/// of other clusters through Argo CD.
#[derive(Clone)]
pub struct EvidenceCollector {
    client: Client,
    argocd: RestClient,
}

/// What a closer look has found besides evidence.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    pub evidence: Evidence,
    /// Resources whose controller has not seen their newest generation.
    pub lagging: Vec<String>,
    /// The resources themselves were read.
    pub resources_read: bool,
}

impl EvidenceCollector {
    #[must_use]
    pub fn new(client: Client, argocd: RestClient) -> Self {
        EvidenceCollector { client, argocd }
    }

    /// Nobody can look closer without the REST API, which has the tree of an app's resources.
    #[must_use]
    pub fn with(client: &Client, argocd: &ArgoCdClient) -> Option<Self> {
        match argocd {
            ArgoCdClient::Rest(api) => Some(EvidenceCollector::new(client.clone(), api.clone())),
            ArgoCdClient::Fields(_) => None,
        }
    }

    /// With the token that deploys.
    pub async fn of(client: &Client, platform: &Platform) -> Result<Self, CredentialsError> {
        let argocd = credentials::argocd(client, platform, Purpose::Deploy).await?;
        Ok(EvidenceCollector::new(client.clone(), argocd))
    }

    /// Adds to what the Application itself shows.
    pub async fn gather(&self, app: &AppAddress, evidence: Evidence) -> Collected {
        let mut found = Collected { evidence, ..Collected::default() };
        let application = match self.application(app).await {
            Ok(application) => application,
            Err(error) => {
                found.evidence.unseen.push(format!("its Application: {error}"));
                return found;
            }
        };
        if is_compared(&application) {
            let at = Destination::from(&application["spec"]["destination"]);
            self.look_at_resources(app, &at, &mut found).await;
        } else {
            let unseen = "its resources: Argo CD has not compared them yet".to_owned();
            found.evidence.unseen.push(unseen);
        }
        // What the API server said to a resource is nearer to the cause than what followed.
        found.evidence.events.extend(failed_results(&application));
        found.evidence.likely = likely::likely(&found.evidence);
        found
    }

    async fn look_at_resources(&self, app: &AppAddress, at: &Destination, found: &mut Collected) {
        let (tree, managed) = futures::join!(self.tree(app), self.managed_resources(app));
        match managed {
            Ok(resources) => {
                found.resources_read = true;
                found.lagging = resources.iter().filter_map(drift::lagging).collect();
                found.evidence.resource = resources.iter().find_map(drift::held_back);
                let drifted = drift::differences(&resources, FIELDS);
                if !drifted.is_empty() {
                    found.evidence.drifted = drifted;
                }
            }
            Err(error) => found.evidence.unseen.push(format!("its resources: {error}")),
        }
        match tree {
            Ok(tree) => self.look_at_worst(app, at, &tree, &mut found.evidence).await,
            Err(error) => found.evidence.unseen.push(format!("its resource tree: {error}")),
        }
    }

    /// What an app consists of, down to what its resources have made.
    pub async fn members(&self, app: &AppAddress) -> Result<Vec<ObjectName>, CallError> {
        Ok(self.tree(app).await?.members())
    }

    /// The resources whose controller has not seen their newest generation.
    pub async fn lagging(&self, app: &AppAddress) -> Result<Vec<Arc<str>>, CallError> {
        let mut lagging = Vec::new();
        for resource in &self.managed_resources(app).await? {
            let Some(name) = drift::lagging(resource) else { continue };
            // What Argo CD shows here is as old as its last comparison, and a new status alone
            // does not make it compare.
            let live = self.live(app, &resource.object, &resource.version()).await?;
            if drift::lags(&live) {
                lagging.push(name.into());
            }
        }
        Ok(lagging)
    }

    /// A resource as it is in the cluster now.
    async fn live(
        &self,
        app: &AppAddress,
        object: &ObjectName,
        version: &str,
    ) -> Result<Value, CallError> {
        #[derive(Deserialize)]
        struct Live {
            manifest: String,
        }
        let ObjectName { group, kind, namespace, name } = object;
        let path = format!(
            "{}&namespace={namespace}&resourceName={name}&version={version}&group={group}&kind={kind}",
            self.argocd.path(app, "/resource")
        );
        let live: Live = self.argocd.call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT).await?;
        Ok(serde_json::from_str(&live.manifest).unwrap_or_default())
    }

    async fn tree(&self, app: &AppAddress) -> Result<Tree, CallError> {
        let path = self.argocd.path(app, "/resource-tree");
        self.argocd.call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT).await
    }

    async fn managed_resources(&self, app: &AppAddress) -> Result<Vec<drift::Managed>, CallError> {
        let path = self.argocd.path(app, "/managed-resources");
        let list: drift::ManagedList =
            self.argocd.call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT).await?;
        Ok(list.items.unwrap_or_default())
    }

    async fn application(&self, app: &AppAddress) -> Result<Value, CallError> {
        let path = self.argocd.path(app, "");
        self.argocd.call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT).await
    }

    async fn look_at_worst(
        &self,
        app: &AppAddress,
        at: &Destination,
        tree: &Tree,
        into: &mut Evidence,
    ) {
        let mut chain = tree.worst();
        let Some(worst) = chain.first() else { return };
        // The owner's message is often the consequence, and the deepest one's the cause.
        let deepest = chain.last().filter(|node| node.uid != worst.uid);
        let worst = deepest.map_or_else(|| worst.to_string(), |deep| format!("{worst}; {deep}"));
        // What waits to be deleted explains more than what it has led to.
        into.resource.get_or_insert(worst);
        // A pod only says that it waits for its claim; the claim says why.
        let pod = chain.iter().rev().find(|node| node.object.kind == "Pod").copied();
        chain.extend(tree.pending_claims());
        let mut events = Vec::new();
        for node in &chain {
            match self.events(app, node).await {
                Ok(told) => events.extend(told),
                Err(error) => {
                    into.unseen.push(format!("the events of {}: {error}", node.name()));
                    break;
                }
            }
        }
        into.events = events::newest(events);
        into.events.extend(self.what_is_old(app, &chain).await);
        if let Some(pod) = pod {
            let log = match &at.other_cluster {
                None => log::of(&self.client, pod).await,
                // A pod of the same name here is another one.
                Some(cluster) => log::through_argocd(self, app, pod)
                    .await
                    .map_err(|error| log::unseen(cluster, &error)),
            };
            match log {
                Ok(lines) => into.logs = lines,
                Err(why) => into.unseen.push(format!("the log of {}: {why}", pod.name())),
            }
        }
    }

    /// What Kubernetes has said about a resource. Argo CD's API server reads it for us, so that
    /// no rights are needed in the namespaces of apps.
    async fn events(&self, app: &AppAddress, node: &Node) -> Result<Vec<ReportedEvent>, CallError> {
        let path = format!(
            "{}&resourceNamespace={}&resourceName={}&resourceUID={}",
            self.argocd.path(app, "/events"),
            node.object.namespace,
            node.object.name,
            node.uid
        );
        let list: EventList =
            self.argocd.call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT).await?;
        Ok(list.warnings(node))
    }
}

/// Whether Argo CD can answer for an app's resources from what it knows. Asked before its first
/// comparison, its API server asks for one: a look would write.
fn is_compared(application: &Value) -> bool {
    application.pointer("/status/reconciledAt").is_some_and(Value::is_string)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_app_that_was_never_compared_is_not_asked_about() {
        assert!(!is_compared(&json!({ "status": { "health": {} } })));
        assert!(is_compared(&json!({ "status": { "reconciledAt": "2026-11-15T21:23:04Z" } })));
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
}
