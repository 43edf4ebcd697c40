//! What runs may do, and no more: in Argo CD, and in Kubernetes.

use serde_json::{Map, Value, json};
use tiphys_model::Platform;
use tiphys_model::platform::ArgoCdAccess;

use super::objects::metadata;
use crate::definitions::SETTINGS;
use tiphys_argocd::rest::RENDER_NAME;
use tiphys_cluster::names::{self, Purpose};

/// What an account may do with the Applications of the platform. A refresh is a `get`, and to
/// terminate an operation is a `sync`; before an app is deleted, its operation is ended.
fn actions(purpose: Purpose) -> &'static [&'static str] {
    match purpose {
        Purpose::Deploy => &["get", "sync"],
        Purpose::Teardown => &["get", "sync", "delete"],
    }
}

/// A key of `argocd-rbac-cm`. Argo CD reads all that are called `policy.*.csv`, so nobody else's
/// policy is touched.
pub(super) fn policy(platform: &Platform) -> Map<String, Value> {
    let argocd = &platform.argocd;
    let mut lines = Vec::new();
    for purpose in Purpose::ALL {
        let role = purpose.role(platform);
        for project in [&argocd.project, &argocd.root_project] {
            for action in actions(purpose) {
                lines.push(format!("p, {role}, applications, {action}, {project}/*, allow\n"));
            }
            if purpose == Purpose::Deploy {
                // To render ApplicationSets, and no more: no set can have this name.
                let render = format!("{project}/{RENDER_NAME}");
                lines.push(format!("p, {role}, applicationsets, create, {render}, allow\n"));
            }
        }
        lines.push(format!("g, {}, {role}\n", purpose.account()));
    }
    Map::from_iter([(format!("policy.{}.csv", names::own(platform)), lines.concat().into())])
}

/// The account of a run that works inside the cluster.
pub(super) fn in_kubernetes(platform: &Platform) -> [Value; 3] {
    let name = names::own(platform);
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(platform, &name),
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(platform, &name),
        "rules": rules(platform),
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(platform, &name),
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{
            "kind": "ServiceAccount", "name": name, "namespace": platform.argocd.namespace,
        }],
    });
    [account, role, binding]
}

/// Seeing is done here, acting through Argo CD: no right to write Applications, unless that is
/// the way that the platform file names. `create` cannot be narrowed down by name, because the name
/// is not known before the object is. Argo CD's API has no refresh of ApplicationSets.
fn rules(platform: &Platform) -> Value {
    let name = names::own(platform);
    let graph = names::graph(&platform.name);
    let graph: Vec<&str> = graph.all().collect();
    let anywhere = |group: &str, resource: &str, verbs: &[&str]| json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs });
    let only = |group: &str, resource: &str, names: &[&str], verbs: &[&str]| {
        json!({
            "apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": verbs,
        })
    };
    let applications: &[&str] = match platform.argocd.access {
        ArgoCdAccess::Api => &["get", "list", "watch"],
        ArgoCdAccess::Kubernetes => &["get", "list", "watch", "patch"],
    };
    json!([
        anywhere("argoproj.io", "applications", applications),
        // Their controller is asked by an annotation. Which sets there are, Git says, in its own time.
        anywhere("argoproj.io", "applicationsets", &["get", "patch"]),
        // The hold.
        only("argoproj.io", "appprojects", &[&platform.argocd.project], &["get", "patch"]),
        anywhere("coordination.k8s.io", "leases", &["create"]),
        only("coordination.k8s.io", "leases", &[&name], &["get", "patch", "update"]),
        // The deployed graph.
        anywhere("", "configmaps", &["create"]),
        only("", "configmaps", &graph, &["get", "patch", "update"]),
        // Whether Argo CD judges health as was planned.
        only("", "configmaps", &[SETTINGS], &["get"]),
        anywhere("events.k8s.io", "events", &["create", "patch"]),
        only("", "secrets", &[&Purpose::Deploy.secret(platform)], &["get"]),
        // The way to Argo CD's API. Over a WebSocket, the API server asks for `get`, and newer
        // ones for `create` too.
        anywhere("", "pods", &["list"]),
        anywhere("", "pods/portforward", &["create", "get"]),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configure::objects::tests::platform;

    #[test]
    fn who_deploys_cannot_delete() {
        let policy = policy(&platform("prod"));
        let expected = "\
p, role:tiphys-prod-deploy, applications, get, apps/*, allow
p, role:tiphys-prod-deploy, applications, sync, apps/*, allow
p, role:tiphys-prod-deploy, applicationsets, create, apps/tiphys_render, allow
p, role:tiphys-prod-deploy, applications, get, roots/*, allow
p, role:tiphys-prod-deploy, applications, sync, roots/*, allow
p, role:tiphys-prod-deploy, applicationsets, create, roots/tiphys_render, allow
g, tiphys, role:tiphys-prod-deploy
p, role:tiphys-prod-teardown, applications, get, apps/*, allow
p, role:tiphys-prod-teardown, applications, sync, apps/*, allow
p, role:tiphys-prod-teardown, applications, delete, apps/*, allow
p, role:tiphys-prod-teardown, applications, get, roots/*, allow
p, role:tiphys-prod-teardown, applications, sync, roots/*, allow
p, role:tiphys-prod-teardown, applications, delete, roots/*, allow
g, tiphys-teardown, role:tiphys-prod-teardown
";
        assert_eq!(policy["policy.tiphys-prod.csv"], expected);
        assert_eq!(policy.len(), 1);
    }

    #[test]
    fn a_run_writes_only_what_is_named() {
        let rules = rules(&platform("prod"));
        for rule in rules.as_array().unwrap() {
            let verbs: Vec<&str> =
                rule["verbs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let resource = rule["resources"][0].as_str().unwrap();
            let changes = verbs.iter().any(|verb| ["patch", "update", "delete"].contains(verb));
            let named = rule.get("resourceNames").is_some();
            let unnamed = ["events", "applicationsets"].contains(&resource);
            assert!(!changes || named || unnamed, "{rule}");
            assert!(resource != "applicationsets" || verbs == ["get", "patch"], "{rule}");
            assert!(resource != "secrets" || (named && verbs == ["get"]), "{rule}");
            assert!(!verbs.contains(&"*"), "{rule}");
        }
    }

    #[test]
    fn the_role_is_bound_to_the_account_of_the_same_name() {
        let [account, role, binding] = in_kubernetes(&platform("prod"));
        assert_eq!(account["metadata"]["name"], "tiphys-prod");
        assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
        assert_eq!(binding["subjects"][0]["name"], "tiphys-prod");
    }
}
