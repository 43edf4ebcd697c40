//! What runs inside the cluster may do in Kubernetes: what they ask for, and no more. A test of the
//! engine holds these rules against the requests of a deployment and of a teardown.

#[cfg(test)]
mod tests;

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tiphys_model::platform::ArgoCdAccess;
use tiphys_model::{Criterion, NamespaceName, Platform, SecretName};

use super::objects::{cluster_metadata, metadata};
use crate::definitions::SETTINGS;
use tiphys_cluster::names::{self, Purpose};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The rights of one account.
#[derive(Debug, Clone, PartialEq)]
pub struct Grants {
    /// In Argo CD's namespace.
    pub here: Vec<PolicyRule>,
    /// In each of the other namespaces where Applications may be; nothing if there are none.
    pub beside: Vec<PolicyRule>,
    /// In all namespaces, and beside them.
    pub everywhere: Vec<PolicyRule>,
}

/// What the account for this purpose may do.
#[must_use]
pub fn grants(platform: &Platform, purpose: Purpose) -> Grants {
    let through_api = platform.argocd.access == ArgoCdAccess::Api;
    let mut here = in_argocd(platform, purpose);
    if through_api {
        here.extend(way_to_argocd(platform, purpose));
    }
    let alone = platform.argocd.application_namespaces.is_empty();
    let beside = if alone { Vec::new() } else { with_applications(platform, purpose) };
    let everywhere = match purpose {
        Purpose::Deploy => seeing(platform, through_api),
        Purpose::Teardown => taking_apart(),
    };
    Grants { here, beside, everywhere }
}

/// Wherever Applications are. They are written through Argo CD, unless the platform file names the
/// other way.
fn with_applications(platform: &Platform, purpose: Purpose) -> Vec<PolicyRule> {
    let applications: &[&str] = match (platform.argocd.access, purpose) {
        (ArgoCdAccess::Api, _) => &["get", "list", "watch"],
        (ArgoCdAccess::Kubernetes, Purpose::Deploy) => &["get", "list", "watch", "patch"],
        (ArgoCdAccess::Kubernetes, Purpose::Teardown) => {
            &["get", "list", "watch", "patch", "delete"]
        }
    };
    vec![
        any("argoproj.io", "applications", applications),
        // They are about Applications.
        any("events.k8s.io", "events", &["create", "patch"]),
    ]
}

fn in_argocd(platform: &Platform, purpose: Purpose) -> Vec<PolicyRule> {
    let own = names::own(platform);
    let graph = names::graph(&platform.name);
    let graph: Vec<&str> = graph.all().collect();
    let projects: Vec<&str> = platform.argocd.all_projects().collect();
    let (sets, lease, graphs): (&[&str], &[&str], &[&str]) = match purpose {
        Purpose::Deploy => (&["get", "patch"], &["get", "update"], &["get", "create", "patch"]),
        Purpose::Teardown => (
            &["get", "list", "patch", "delete"],
            &["get", "update", "delete"],
            &["get", "create", "patch", "delete"],
        ),
    };
    let mut rules = with_applications(platform, purpose);
    rules.extend([
        any("argoproj.io", "applicationsets", sets),
        // The hold.
        only("argoproj.io", "appprojects", &projects, &["get", "patch"]),
        // The name of what is posted is not known when the right is checked. What is applied has
        // its name in the path, so ConfigMaps can be created under these names alone.
        any("coordination.k8s.io", "leases", &["create"]),
        only("coordination.k8s.io", "leases", &[&own], lease),
        only("", "configmaps", &graph, graphs),
        // Whether Argo CD judges health as was planned, and what it calls itself.
        only("", "configmaps", &[SETTINGS], &["get"]),
    ]);
    rules
}

/// The token, what `configure` has found out about the API server, and the port-forward to it.
fn way_to_argocd(platform: &Platform, purpose: Purpose) -> Vec<PolicyRule> {
    let own = purpose.secret(platform);
    let given = purpose.given_token_secret(platform).map(SecretName::as_str);
    let secrets: Vec<&str> = [&*own].into_iter().chain(given).collect();
    let mut rules = vec![only("", "secrets", &secrets, &["get"])];
    if platform.argocd.server.address.is_none() {
        rules.push(any("", "pods", &["list"]));
        // Over a WebSocket, the API server asks for `get`, and newer ones for `create` too.
        rules.push(any("", "pods/portforward", &["create", "get"]));
    }
    rules
}

/// What was there before the platform, what a failing pod says, and the objects that health criteria
/// name. Those are in the namespaces of apps, which the platform file does not know.
fn seeing(platform: &Platform, through_api: bool) -> Vec<PolicyRule> {
    let mut rules = vec![
        any("", "namespaces", &["list"]),
        any("apiextensions.k8s.io", "customresourcedefinitions", &["list"]),
    ];
    // Which pod fails is known from Argo CD's API.
    if through_api {
        rules.push(any("", "pods", &["get"]));
        rules.push(any("", "pods/log", &["get"]));
    }
    for app in &platform.apps {
        for criterion in &app.health {
            let Criterion::Resource(wanted) = criterion else { continue };
            let (group, version) = match wanted.api_version.rsplit_once('/') {
                Some((group, version)) => (group, version),
                None => ("", wanted.api_version.as_str()),
            };
            // The kind may come with the platform, so nobody can be asked for its plural yet.
            let kind = GroupVersionKind::gvk(group, version, &wanted.kind);
            let plural = ApiResource::from_gvk(&kind).plural;
            let rule = only(group, &plural, &[&wanted.name], &["get"]);
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    rules
}

/// Whose something is, is known when all is read; and which kinds a platform brings, when it is there.
fn taking_apart() -> Vec<PolicyRule> {
    vec![
        any("*", "*", &["get", "list"]),
        any("*", "*", &["delete"]),
        // `--retain-volumes`.
        any("", "persistentvolumes", &["patch"]),
        // A CRD whose deletion Kubernetes has given up is touched, so that it is tried again.
        any("apiextensions.k8s.io", "customresourcedefinitions", &["patch"]),
    ]
}

fn any(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    }
}

fn only(group: &str, resource: &str, names: &[&str], verbs: &[&str]) -> PolicyRule {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    PolicyRule { resource_names: Some(names), ..any(group, resource, verbs) }
}

/// The accounts, and their rights in Argo CD's namespace.
pub(super) fn accounts(platform: &Platform) -> Vec<Value> {
    let of = |purpose: Purpose| {
        let name = purpose.service_account(platform);
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(platform, &name),
        });
        let role = role("Role", &metadata(platform, &name), &grants(platform, purpose).here);
        let binding = binding("Role", &metadata(platform, &name), platform, purpose);
        [account, role, binding]
    };
    Purpose::ALL.into_iter().flat_map(of).collect()
}

/// Their rights in the other namespaces of Applications. Two Argo CDs may share such a namespace, so
/// the names are those of what is in no namespace.
pub(super) fn beside(platform: &Platform) -> Vec<Value> {
    let others = &platform.argocd.application_namespaces;
    let of = |(namespace, purpose): (&NamespaceName, Purpose)| {
        let mut metadata = cluster_metadata(platform, &names::cluster_role(platform, purpose));
        metadata["namespace"] = namespace.as_str().into();
        let role = role("Role", &metadata, &grants(platform, purpose).beside);
        [role, binding("Role", &metadata, platform, purpose)]
    };
    let each = others.iter().flat_map(|other| Purpose::ALL.map(|purpose| (other, purpose)));
    each.flat_map(of).collect()
}

/// Their rights elsewhere.
pub(super) fn cluster_roles(platform: &Platform) -> Vec<Value> {
    let of = |purpose: Purpose| {
        let metadata = cluster_metadata(platform, &names::cluster_role(platform, purpose));
        let role = role("ClusterRole", &metadata, &grants(platform, purpose).everywhere);
        [role, binding("ClusterRole", &metadata, platform, purpose)]
    };
    Purpose::ALL.into_iter().flat_map(of).collect()
}

fn role(kind: &str, metadata: &Value, rules: &[PolicyRule]) -> Value {
    json!({ "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata, "rules": rules })
}

/// To the role of the same name.
fn binding(kind: &str, metadata: &Value, platform: &Platform, purpose: Purpose) -> Value {
    let role = json!({ "apiGroup": RBAC, "kind": kind, "name": metadata["name"] });
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": role,
        "subjects": [{
            "kind": "ServiceAccount",
            "name": purpose.service_account(platform),
            "namespace": platform.argocd.namespace,
        }],
    })
}
