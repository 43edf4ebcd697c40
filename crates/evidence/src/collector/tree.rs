//! The tree of an app's resources, and the branch of it that is worst off.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use tiphys_model::Health;

use tiphys_cluster::ObjectName;

#[derive(Debug, Deserialize)]
pub(super) struct Tree {
    #[serde(default)]
    nodes: Option<Vec<Node>>,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Node {
    #[serde(flatten)]
    pub(super) object: ObjectName,
    /// Of its API.
    pub(super) version: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    parent_refs: Option<Vec<Parent>>,
    health: Option<NodeHealth>,
    networking_info: Option<Networking>,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(default)]
struct Parent {
    uid: String,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(default)]
struct NodeHealth {
    status: String,
    message: String,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(default)]
struct Networking {
    labels: Option<BTreeMap<String, String>>,
}

/// What Vault writes on its pod, as its service registration.
const VAULT_SEALED: &str = "vault-sealed";

impl Node {
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.object.kind, self.object.name)
    }

    /// Argo CD shows the labels of pods.
    fn label(&self, name: &str) -> Option<&str> {
        self.networking_info.as_ref()?.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// A claim that is there, and has no volume.
    fn is_pending_claim(&self) -> bool {
        self.object.kind == "PersistentVolumeClaim" && self.health() == Health::Progressing
    }

    /// What has no health check is as good as what is healthy.
    pub(super) fn health(&self) -> Health {
        let status = self.health.as_ref().map_or("", |health| &*health.status);
        if status.is_empty() { Health::Healthy } else { status.parse().unwrap_or(Health::Unknown) }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.name(), self.health())?;
        let message = self.health.as_ref().map_or("", |health| health.message.trim());
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        if self.is_pending_claim() {
            f.write_str(", waiting for a volume")?;
        }
        match self.label(VAULT_SEALED) {
            Some("true") => f.write_str(", and according to its label Vault is sealed"),
            Some(_) | None => Ok(()),
        }
    }
}

impl Tree {
    pub(super) fn members(&self) -> Vec<ObjectName> {
        self.nodes.iter().flatten().map(|node| node.object.clone()).collect()
    }

    pub(super) fn node(&self, uid: &str) -> Option<&Node> {
        self.nodes.iter().flatten().find(|node| node.uid == uid)
    }

    pub(super) fn pending_claims(&self) -> Vec<&Node> {
        self.nodes.iter().flatten().filter(|node| node.is_pending_claim()).collect()
    }

    /// From the worst resource of the app down to the worst of what it has made; empty if
    /// nothing is wrong.
    pub(super) fn worst(&self) -> Vec<&Node> {
        let nodes = self.nodes.as_deref().unwrap_or_default();
        let known: BTreeSet<&str> = nodes.iter().map(|node| &*node.uid).collect();
        let mut children: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        let mut tops = Vec::new();
        for node in nodes {
            let mut parents = node.parent_refs.iter().flatten().map(|parent| &*parent.uid);
            match parents.find(|uid| known.contains(uid)) {
                Some(parent) => children.entry(parent).or_default().push(node),
                None => tops.push(node),
            }
        }
        let mut chain: Vec<&Node> = Vec::new();
        let mut level = tops;
        while let Some(worst) = worst_of(&level) {
            // A controller and the pods under it: more than a few levels are a mistake.
            if chain.len() == DEPTH {
                break;
            }
            chain.push(worst);
            level = children.get(&*worst.uid).cloned().unwrap_or_default();
        }
        // A ReplicaSet has no health of its own while it is on its way, but its pods have.
        if let Some(last) = chain.last() {
            chain.extend(below(last, &children));
        }
        chain
    }
}

const DEPTH: usize = 6;

fn worst_of<'a>(nodes: &[&'a Node]) -> Option<&'a Node> {
    let unwell = nodes.iter().copied().filter(|node| node.health() != Health::Healthy);
    // The first of equals, in the order of names, so that the same trouble looks the same.
    unwell.min_by_key(|node| (std::cmp::Reverse(node.health()), node.name()))
}

/// The worst pod below a node whose own children say that they are well.
fn below<'a>(node: &Node, children: &BTreeMap<&str, Vec<&'a Node>>) -> Option<&'a Node> {
    let mut open: Vec<&Node> = children.get(&*node.uid).cloned().unwrap_or_default();
    let mut unwell = Vec::new();
    let mut looked = 0;
    while let Some(node) = open.pop() {
        looked += 1;
        if node.health() != Health::Healthy {
            unwell.push(node);
        }
        if looked < 1000 {
            open.extend(children.get(&*node.uid).into_iter().flatten());
        }
    }
    worst_of(&unwell)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(kind: &str, name: &str, parent: &str, health: &str) -> Value {
        json!({
            "kind": kind, "name": name, "namespace": "ns", "uid": format!("{kind}/{name}"),
            "parentRefs": if parent.is_empty() { json!(null) } else { json!([{ "uid": parent }]) },
            "health": if health.is_empty() { json!(null) } else {
                json!({ "status": health, "message": format!("{name} {health}") })
            },
        })
    }

    fn worst(nodes: &[Value]) -> Vec<String> {
        let tree: Tree = serde_json::from_value(json!({ "nodes": nodes })).unwrap();
        tree.worst().iter().map(|node| node.name()).collect()
    }

    #[test]
    fn the_worst_branch_is_followed_down_to_the_pod() {
        let nodes = [
            node("ConfigMap", "a", "", ""),
            node("Deployment", "web", "", "Degraded"),
            node("Deployment", "well", "", "Healthy"),
            node("Job", "slow", "", "Progressing"),
            node("ReplicaSet", "web-1", "Deployment/web", "Healthy"),
            node("ReplicaSet", "web-2", "Deployment/web", "Progressing"),
            node("Pod", "web-2-b", "ReplicaSet/web-2", "Healthy"),
            node("Pod", "web-2-a", "ReplicaSet/web-2", "Degraded"),
        ];
        assert_eq!(worst(&nodes), ["Deployment/web", "ReplicaSet/web-2", "Pod/web-2-a"]);
    }

    #[test]
    fn a_pod_is_found_below_one_that_says_nothing() {
        let nodes = [
            node("Deployment", "web", "", "Progressing"),
            node("ReplicaSet", "web-1", "Deployment/web", ""),
            node("Pod", "web-1-a", "ReplicaSet/web-1", "Progressing"),
        ];
        assert_eq!(worst(&nodes), ["Deployment/web", "Pod/web-1-a"]);
        assert_eq!(worst(&[node("ConfigMap", "a", "", "")]), Vec::<String>::new());
        let tree: Tree = serde_json::from_value(json!({ "nodes": null })).unwrap();
        assert!(tree.worst().is_empty());
    }

    #[test]
    fn a_resource_says_what_it_is() {
        let tree: Tree =
            serde_json::from_value(json!({ "nodes": [node("Pod", "a", "", "Degraded")] })).unwrap();
        assert_eq!(tree.worst()[0].to_string(), "Pod/a is Degraded: a Degraded");
        let claim: Node =
            serde_json::from_value(node("PersistentVolumeClaim", "data", "", "Progressing"))
                .unwrap();
        assert_eq!(
            claim.to_string(),
            "PersistentVolumeClaim/data is Progressing: data Progressing, waiting for a volume"
        );
        let mut vault = node("Pod", "vault-0", "", "Progressing");
        vault["networkingInfo"] = json!({ "labels": { "vault-sealed": "true" } });
        let vault: Node = serde_json::from_value(vault).unwrap();
        assert_eq!(
            vault.to_string(),
            "Pod/vault-0 is Progressing: vault-0 Progressing, and according to its label Vault is \
             sealed"
        );
    }
}
