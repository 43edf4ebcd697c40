//! What runs inside the cluster may do in Kubernetes: what they ask for, and no more. A test of the
//! engine holds these rules against the requests of a deployment and of a teardown.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tiphys_model::platform::ArgoCdAccess;
use tiphys_model::{Criterion, Platform, SecretName};

use super::objects::{cluster_metadata, metadata};
use crate::definitions::SETTINGS;
use tiphys_cluster::names::{self, Purpose};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The rights of one account.
#[derive(Debug, Clone, PartialEq)]
pub struct Grants {
    /// In Argo CD's namespace.
    pub here: Vec<PolicyRule>,
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
    let everywhere = match purpose {
        Purpose::Deploy => seeing(platform, through_api),
        Purpose::Teardown => taking_apart(),
    };
    Grants { here, everywhere }
}

/// Applications are written through Argo CD, unless the platform file names the other way.
fn in_argocd(platform: &Platform, purpose: Purpose) -> Vec<PolicyRule> {
    let own = names::own(platform);
    let graph = names::graph(&platform.name);
    let graph: Vec<&str> = graph.all().collect();
    let projects: Vec<&str> = platform.argocd.all_projects().collect();
    let applications: &[&str] = match (platform.argocd.access, purpose) {
        (ArgoCdAccess::Api, _) => &["get", "list", "watch"],
        (ArgoCdAccess::Kubernetes, Purpose::Deploy) => &["get", "list", "watch", "patch"],
        (ArgoCdAccess::Kubernetes, Purpose::Teardown) => {
            &["get", "list", "watch", "patch", "delete"]
        }
    };
    let (sets, lease, graphs): (&[&str], &[&str], &[&str]) = match purpose {
        Purpose::Deploy => (&["get", "patch"], &["get", "update"], &["get", "create", "patch"]),
        Purpose::Teardown => (
            &["get", "list", "patch", "delete"],
            &["get", "update", "delete"],
            &["get", "create", "patch", "delete"],
        ),
    };
    vec![
        any("argoproj.io", "applications", applications),
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
        any("events.k8s.io", "events", &["create", "patch"]),
    ]
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tiphys_model::api_server::ServerAddress;

    use super::*;
    use crate::configure::objects::tests::platform;

    fn is_wide(rule: &PolicyRule) -> bool {
        let lists = [&rule.api_groups, &rule.resources].into_iter().flatten();
        lists.chain([&rule.verbs]).any(|list| list.iter().any(|item| item == "*"))
    }

    #[test]
    fn who_deploys_writes_only_what_is_named_and_reads_one_secret() {
        let Grants { here, everywhere } = grants(&platform("prod"), Purpose::Deploy);
        for rule in here.iter().chain(&everywhere) {
            let verb = |wanted: &&str| rule.verbs.iter().any(|verb| verb == wanted);
            let is = |wanted: &str| rule.resources.iter().flatten().any(|kind| kind == wanted);
            let changes = ["patch", "update", "delete"].iter().any(&verb);
            let named = rule.resource_names.is_some();
            // A policy narrows down what is changed of ApplicationSets.
            assert!(!changes || named || is("events") || is("applicationsets"), "{rule:?}");
            assert!(!is("secrets") || (named && rule.verbs == ["get"]), "{rule:?}");
            assert!(!is_wide(rule) && !verb(&"delete"), "{rule:?}");
        }
        for rule in everywhere {
            assert!(rule.verbs == ["get"] || rule.verbs == ["list"], "{rule:?}");
        }
    }

    #[test]
    fn each_account_reads_its_own_token_and_none_where_there_is_no_api() {
        let mut platform = platform("prod");
        let secrets = |platform: &Platform, purpose: Purpose| -> Vec<String> {
            let rules = grants(platform, purpose).here.into_iter();
            let rules = rules.filter(|rule| rule.resources == Some(vec!["secrets".to_owned()]));
            rules.flat_map(|rule| rule.resource_names.unwrap_or_default()).collect()
        };
        assert_eq!(secrets(&platform, Purpose::Deploy), ["tiphys-prod-deploy"]);
        assert_eq!(secrets(&platform, Purpose::Teardown), ["tiphys-prod-teardown"]);
        platform.argocd.server.token_secret = Some(SecretName::parse("handed-out").unwrap());
        assert_eq!(secrets(&platform, Purpose::Deploy), ["tiphys-prod-deploy", "handed-out"]);
        assert_eq!(secrets(&platform, Purpose::Teardown), ["tiphys-prod-teardown"]);
        platform.argocd.access = ArgoCdAccess::Kubernetes;
        assert_eq!(secrets(&platform, Purpose::Deploy), Vec::<String>::new());
    }

    #[test]
    fn a_server_at_an_address_takes_no_port_forward() {
        let mut platform = platform("prod");
        let forwards = |platform: &Platform| {
            let here = grants(platform, Purpose::Deploy).here;
            here.iter().any(|rule| rule.resources == Some(vec!["pods/portforward".to_owned()]))
        };
        assert!(forwards(&platform));
        let host = "argocd.example.org".to_owned();
        platform.argocd.server.address = Some(ServerAddress { host, port: 443 });
        assert!(!forwards(&platform));
    }

    #[test]
    fn the_way_through_the_api_takes_these_rights_more_and_writes_no_applications() {
        let through_api = platform("prod");
        let mut through_fields = platform("prod");
        through_fields.argocd.access = ArgoCdAccess::Kubernetes;
        let all = |platform: &Platform, purpose: Purpose| -> BTreeSet<String> {
            let Grants { here, everywhere } = grants(platform, purpose);
            let here = here.into_iter().map(|rule| ("", rule));
            let rules = here.chain(everywhere.into_iter().map(|rule| (" everywhere", rule)));
            let rights = rules.flat_map(|(place, rule)| {
                let resource = rule.resources.unwrap_or_default().concat();
                rule.verbs.into_iter().map(move |verb| format!("{verb} {resource}{place}"))
            });
            rights.collect()
        };
        let more = |purpose: Purpose| {
            let (api, fields) = (all(&through_api, purpose), all(&through_fields, purpose));
            let [more, fewer] = [&api - &fields, &fields - &api];
            [more, fewer].map(|rights| Vec::from_iter(rights).join(", "))
        };
        let way = "create pods/portforward, get pods/portforward, get secrets, list pods";
        assert_eq!(
            more(Purpose::Deploy),
            [
                "create pods/portforward, get pods everywhere, get pods/log everywhere, \
                 get pods/portforward, get secrets, list pods",
                "patch applications",
            ]
        );
        assert_eq!(more(Purpose::Teardown), [way, "delete applications, patch applications"]);
    }

    #[test]
    fn only_the_account_that_tears_down_reads_everything() {
        let bound: Vec<Value> = cluster_roles(&platform("prod"));
        let wide =
            |role: &&Value| role["kind"] == "ClusterRole" && role.to_string().contains("\"*\"");
        let wide: Vec<&Value> = bound.iter().filter(wide).collect();
        assert_eq!(wide.len(), 1);
        let name = &wide[0]["metadata"]["name"];
        assert_eq!(name, "tiphys.argocd.prod.teardown");
        let bindings = bound.iter().filter(|object| object["roleRef"]["name"] == *name);
        let subjects: Vec<&Value> = bindings.map(|binding| &binding["subjects"]).collect();
        let account = json!([
            { "kind": "ServiceAccount", "name": "tiphys-prod.teardown", "namespace": "argocd" },
        ]);
        assert_eq!(subjects, [&account]);
    }

    #[test]
    fn the_objects_of_health_criteria_are_read_by_name() {
        let mut platform = platform("prod");
        let source = tiphys_model::criterion::ResourceCriterion {
            api_version: "ceph.rook.io/v1".to_owned(),
            kind: "CephCluster".to_owned(),
            name: "rook".to_owned(),
            namespace: None,
            expression: "true".to_owned(),
        };
        let mut app = crate::configure::objects::tests::app("ceph");
        app.health = vec![Criterion::Resource(source.clone()), Criterion::Resource(source)];
        platform.apps.push(app);
        let rules = grants(&platform, Purpose::Deploy).everywhere;
        let expected = only("ceph.rook.io", "cephclusters", &["rook"], &["get"]);
        assert_eq!(rules.iter().filter(|rule| **rule == expected).count(), 1, "{rules:?}");
    }

    #[test]
    fn each_role_is_bound_to_the_account_of_its_purpose() {
        let platform = platform("prod");
        let objects = [accounts(&platform), cluster_roles(&platform)].concat();
        let named = |kind: &str| -> Vec<&Value> {
            let of_kind = objects.iter().filter(|object| object["kind"] == kind);
            of_kind.map(|object| &object["metadata"]["name"]).collect()
        };
        assert_eq!(named("ServiceAccount"), ["tiphys-prod", "tiphys-prod.teardown"]);
        assert_eq!(named("Role"), named("ServiceAccount"));
        assert_eq!(named("RoleBinding"), named("Role"));
        assert_eq!(
            named("ClusterRoleBinding"),
            ["tiphys.argocd.prod.deploy", "tiphys.argocd.prod.teardown"]
        );
        assert_eq!(named("ClusterRole"), named("ClusterRoleBinding"));
    }
}
