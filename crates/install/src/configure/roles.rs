//! What runs inside the cluster may do in Kubernetes: what they ask for, and no more. A test of the
//! engine holds these rules against the requests of a deployment and of a teardown.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};
use tiphys_model::platform::{ArgoCdAccess, WorkflowMode};
use tiphys_model::{Criterion, Platform, SecretName, Trigger};

use super::changes;
use super::objects::cluster_metadata;
use crate::definitions::SETTINGS;
use tiphys_cluster::names::{self, Account, MANAGED_BY, Purpose};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The rights of one account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grants {
    /// In Argo CD's namespace.
    pub here: Vec<PolicyRule>,
    /// In each of the other namespaces where Applications may be; nothing if there are none.
    pub beside: Vec<PolicyRule>,
    /// In all namespaces, and beside them.
    pub everywhere: Vec<PolicyRule>,
    /// Where the records of runs are.
    pub records: Vec<PolicyRule>,
    /// In the account's own namespace.
    pub own: Vec<PolicyRule>,
    /// Where Sensors note what they hear.
    pub events: Vec<PolicyRule>,
}

/// What an account may do.
#[must_use]
pub fn grants(platform: &Platform, account: Account) -> Grants {
    let purpose = match account {
        Account::Deploy => Purpose::Deploy,
        Account::Teardown => Purpose::Teardown,
        Account::Validate => return looking(platform),
        Account::Submit => return submitting(platform),
        Account::Nodes => return keeping_nodes(platform),
        Account::Loop => return starting(platform),
        Account::Events => return hearing(platform),
    };
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
    let mut records = recording();
    if purpose == Purpose::Deploy {
        let kept = [names::stored_file, names::deploy_loop];
        let kept = kept.map(|name| name(&platform.argocd.namespace, &platform.name));
        records.push(only("", "configmaps", &[&kept[0], &kept[1]], &["get"]));
    }
    let mut own = in_workflow();
    if purpose == Purpose::Deploy && platform.workflows == WorkflowMode::Nodes {
        own.extend(with_nodes());
    }
    Grants { here, beside, everywhere, records, own, events: Vec::new() }
}

/// The workflow with a node for each app, and how the nodes stand.
fn with_nodes() -> Vec<PolicyRule> {
    let mut rules = reporting_nodes();
    rules.push(any("argoproj.io", "workflows", &["create", "get", "list", "watch", "patch"]));
    rules
}

/// Which nodes are open, and how they stand.
fn reporting_nodes() -> Vec<PolicyRule> {
    vec![
        any("argoproj.io", "workflowtasksets", &["list", "watch"]),
        any("argoproj.io", "workflowtasksets/status", &["patch"]),
    ]
}

/// What Argo Workflows asks of the account of its agent, and whether the run is still there.
fn keeping_nodes(platform: &Platform) -> Grants {
    let lease = only("coordination.k8s.io", "leases", &[&names::own(platform)], &["get"]);
    Grants { own: reporting_nodes(), here: vec![lease], ..Grants::default() }
}

/// The records of runs. Their names are not known before.
fn recording() -> Vec<PolicyRule> {
    vec![any("", "configmaps", &["create", "patch", "list", "delete"])]
}

/// A look at the platform changes nothing, and needs no token.
fn looking(platform: &Platform) -> Grants {
    let own = names::own(platform);
    let graph = names::graph(&platform.name);
    let graph: Vec<&str> = graph.all().collect();
    let projects: Vec<&str> = platform.argocd.projects.iter().map(String::as_str).collect();
    let applications = vec![any("argoproj.io", "applications", &["list"])];
    let mut here = applications.clone();
    here.extend([
        only("argoproj.io", "appprojects", &projects, &["get"]),
        only("coordination.k8s.io", "leases", &[&own], &["get"]),
        only("", "configmaps", &graph, &["get"]),
    ]);
    let alone = platform.argocd.application_namespaces.is_empty();
    let beside = if alone { Vec::new() } else { applications };
    Grants { here, beside, everywhere: criteria(platform), own: in_workflow(), ..Grants::default() }
}

/// What Argo Workflows asks of the account of a step, in its own container.
fn in_workflow() -> Vec<PolicyRule> {
    vec![any("argoproj.io", "workflowtaskresults", &["create", "patch"])]
}

/// Workflows, how they go on, an end for them, and the records of runs.
fn submitting(platform: &Platform) -> Grants {
    let mut own = vec![
        any("argoproj.io", "workflows", &["create", "get", "list", "watch", "patch"]),
        any("", "pods", &["get", "list"]),
        any("", "pods/log", &["get"]),
        any("", "configmaps", &["get", "list"]),
        // What starts when, for `status`.
        any("argoproj.io", "cronworkflows", &["list"]),
    ];
    let paused = names::deploy_loop(&platform.argocd.namespace, &platform.name);
    if names::deploys_unattended(platform) {
        own.push(only("", "configmaps", &[&paused], &["patch"]));
    }
    // Whether a run that has not said its end goes on.
    let lease = only("coordination.k8s.io", "leases", &[&names::own(platform)], &["get"]);
    // `argo submit --from` reads the template first.
    let templates = any("argoproj.io", "clusterworkflowtemplates", &["get"]);
    Grants { own, here: vec![lease], everywhere: vec![templates], ..Grants::default() }
}

/// What Git has and what is deployed; whether somebody is busy; and a workflow, if there is news.
fn starting(platform: &Platform) -> Grants {
    let (own, root) = (names::own(platform), names::root_application(platform));
    let graph = names::graph(&platform.name);
    let graph: Vec<&str> = graph.all().collect();
    let kept = names::deploy_loop(&platform.argocd.namespace, &platform.name);
    let here = vec![
        // A refresh and the outcome are annotations; a policy of the API server forbids every other change.
        only("argoproj.io", "applications", &[&root], &["get", "patch"]),
        only("", "configmaps", &graph, &["get"]),
        only("coordination.k8s.io", "leases", &[&own], &["get"]),
    ];
    let records = vec![
        any("argoproj.io", "workflows", &["create", "get", "list"]),
        // Which platforms there are, and why a run failed.
        any("", "configmaps", &["get", "list"]),
        only("", "configmaps", &[&kept], &["patch"]),
    ];
    let token = names::commit_status(&platform.argocd.namespace, &platform.name);
    let token = platform.deploy.commit_status.is_some().then_some(token);
    let own = token.map(|token| only("", "secrets", &[&token], &["get"])).into_iter().collect();
    // Which objects have changed. A list cannot be limited to names; the namespace has only such ConfigMaps.
    let validates = platform.triggers.iter().any(|trigger| trigger.resource().is_some());
    let notes = validates.then(|| any("", "configmaps", &["list"]));
    Grants { here, records, own, events: notes.into_iter().collect(), ..Grants::default() }
}

/// Has Argo CD look, watches objects, notes that it did or that they have changed, and tells when it could
/// not.
fn hearing(platform: &Platform) -> Grants {
    let root = names::root_application(platform);
    let heard = platform.triggers.iter().filter(|trigger| trigger.needs_events());
    let notes: Vec<String> =
        heard.map(|trigger| names::event_source(platform, &trigger.name)).collect();
    let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
    let pushes = platform.triggers.iter().any(|trigger| trigger.push().is_some());
    // The same policy as for the deploy loop.
    let refresh = pushes.then(|| only("argoproj.io", "applications", &[&root], &["get", "patch"]));
    let watched = platform.triggers.iter().filter_map(Trigger::resource);
    let watched = watched.map(|one| changes::kind(&one.api_version, &one.kind));
    let watched = watched.map(|kind| any(&kind.group, &kind.plural, &["list", "watch"]));
    Grants {
        here: refresh.into_iter().collect(),
        everywhere: watched.collect(),
        own: vec![
            only("", "configmaps", &notes, &["get", "patch"]),
            any("", "events", &["create"]),
        ],
        ..Grants::default()
    }
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

/// What was there before the platform, what a failing pod says, and the objects of health criteria.
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
    rules.extend(criteria(platform));
    rules
}

/// The objects that health criteria name. They are in the namespaces of apps, which the platform file
/// does not know.
fn criteria(platform: &Platform) -> Vec<PolicyRule> {
    let mut rules = Vec::new();
    for app in &platform.apps {
        for criterion in &app.health {
            let Criterion::Resource(wanted) = criterion else { continue };
            let kind = changes::kind(&wanted.api_version, &wanted.kind);
            let rule = only(&kind.group, &kind.plural, &[&wanted.name], &["get"]);
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

/// The namespaces of what runs in the cluster. They are nobody's alone. Nothing in them needs more than
/// the strictest Pod Security Standard allows.
pub(super) fn namespaces(platform: &Platform) -> impl Iterator<Item = Value> {
    let events = Account::Events.is_wanted(platform).then_some(names::EVENTS_NAMESPACE);
    [names::NAMESPACE, names::TEARDOWN_NAMESPACE].into_iter().chain(events).map(|name| {
        let labels = json!({
            MANAGED_BY.0: MANAGED_BY.1, "pod-security.kubernetes.io/enforce": "restricted",
        });
        let metadata = json!({ "name": name, "labels": labels });
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
    })
}

/// The accounts.
pub(super) fn accounts(platform: &Platform) -> Vec<Value> {
    let mut objects = Vec::new();
    for account in wanted(platform).filter(|account| account.is_the_platforms()) {
        let metadata = in_namespace(platform, account, account.namespace());
        objects.push(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }));
        if account == Account::Nodes {
            objects.push(agent_token(platform));
        }
    }
    objects
}

fn wanted(platform: &Platform) -> impl Iterator<Item = Account> {
    Account::ALL.into_iter().filter(|account| account.is_wanted(platform))
}

/// Argo Workflows mounts this Secret, by its name, into the pod of its agent. Kubernetes fills it.
fn agent_token(platform: &Platform) -> Value {
    let account = Account::Nodes;
    let mut metadata = in_namespace(platform, account, account.namespace());
    let name = account.name(platform);
    metadata["name"] = format!("{name}.service-account-token").into();
    metadata["annotations"] = json!({ "kubernetes.io/service-account.name": name });
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "kubernetes.io/service-account-token",
    })
}

/// Their rights. Roles in the namespaces that others may share have the names of what is in no
/// namespace, and so have all.
pub(super) fn roles(platform: &Platform) -> Vec<Value> {
    let mut objects = Vec::new();
    for account in wanted(platform) {
        for (namespace, rules) in places(platform, account) {
            let metadata = in_namespace(platform, account, &namespace);
            objects.push(role("Role", &metadata, &rules));
            objects.push(binding("Role", &metadata, platform, account));
        }
    }
    objects
}

/// Each namespace where an account has rights.
fn places(platform: &Platform, account: Account) -> Vec<(String, Vec<PolicyRule>)> {
    let Grants { here, beside, records, own, events, .. } = grants(platform, account);
    let argocd = &platform.argocd;
    let others = argocd.application_namespaces.iter().map(ToString::to_string);
    let mut places = vec![(argocd.namespace.clone(), here)];
    places.extend(others.map(|other| (other, beside.clone())));
    if account.namespace() == names::NAMESPACE {
        places.push((names::NAMESPACE.to_owned(), [own, records].concat()));
    } else {
        places.push((account.namespace().to_owned(), own));
        places.push((names::NAMESPACE.to_owned(), records));
    }
    places.push((names::EVENTS_NAMESPACE.to_owned(), events));
    places.retain(|(_, rules)| !rules.is_empty());
    places
}

/// Their rights everywhere.
pub(super) fn cluster_roles(platform: &Platform) -> Vec<Value> {
    let of = |account: Account| {
        let rules = grants(platform, account).everywhere;
        let metadata = cluster_metadata(platform, &account.name(platform));
        let objects = [
            role("ClusterRole", &metadata, &rules),
            binding("ClusterRole", &metadata, platform, account),
        ];
        objects.into_iter().filter(move |_| !rules.is_empty())
    };
    wanted(platform).flat_map(of).collect()
}

/// Where an account has rights only if the platform file says so: what is deployed does not tell.
fn now_and_then(platform: &Platform, account: Account) -> Vec<String> {
    match account {
        Account::Loop => {
            [names::SYSTEM_NAMESPACE, names::EVENTS_NAMESPACE].map(str::to_owned).into()
        }
        Account::Events => vec![platform.argocd.namespace.clone()],
        Account::Deploy
        | Account::Validate
        | Account::Teardown
        | Account::Submit
        | Account::Nodes => Vec::new(),
    }
}

/// What there may be of the accounts, all under their names: where, and of which version and kind. First
/// what gives rights.
pub(super) fn removed(
    platform: &Platform,
) -> Vec<(Option<String>, &'static str, &'static str, Account)> {
    const VERSION: &str = "rbac.authorization.k8s.io/v1";
    let mut all = Vec::new();
    for account in Account::ALL {
        all.extend(
            ["ClusterRoleBinding", "ClusterRole"].map(|kind| (None, VERSION, kind, account)),
        );
        let namespaces = places(platform, account).into_iter().map(|(namespace, _)| namespace);
        let namespaces: BTreeSet<String> =
            namespaces.chain(now_and_then(platform, account)).collect();
        for namespace in namespaces {
            let of = |kind| (Some(namespace.clone()), VERSION, kind, account);
            all.extend(["RoleBinding", "Role"].map(of));
        }
        if account.is_the_platforms() {
            let namespace = account.namespace().to_owned();
            all.push((Some(namespace), "v1", "ServiceAccount", account));
        }
    }
    all
}

fn in_namespace(platform: &Platform, account: Account, namespace: &str) -> Value {
    let mut metadata = cluster_metadata(platform, &account.name(platform));
    metadata["namespace"] = namespace.into();
    metadata
}

fn role(kind: &str, metadata: &Value, rules: &[PolicyRule]) -> Value {
    json!({ "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata, "rules": rules })
}

/// To the role of the same name.
fn binding(kind: &str, metadata: &Value, platform: &Platform, account: Account) -> Value {
    let role = json!({ "apiGroup": RBAC, "kind": kind, "name": metadata["name"] });
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": role,
        "subjects": [{
            "kind": "ServiceAccount",
            "name": account.service_account(platform),
            "namespace": account.namespace(),
        }],
    })
}
