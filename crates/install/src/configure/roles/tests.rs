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
    let Grants { here, everywhere, .. } = grants(&platform("prod"), Purpose::Deploy);
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
        let Grants { here, everywhere, .. } = grants(platform, purpose);
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
    let wide = |role: &&Value| role["kind"] == "ClusterRole" && role.to_string().contains("\"*\"");
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

#[test]
fn other_namespaces_of_applications_have_roles_of_their_own() {
    let mut platform = platform("prod");
    assert_eq!(beside(&platform), Vec::<Value>::new());
    assert_eq!(grants(&platform, Purpose::Teardown).beside, []);
    platform.argocd.access = ArgoCdAccess::Kubernetes;
    platform.argocd.application_namespaces =
        ["team", "web"].map(|name| NamespaceName::parse(name).unwrap()).into();
    let objects = beside(&platform);
    let shown = |object: &Value| {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        [&object["kind"], &metadata["namespace"], &metadata["name"]].map(text).join(" ")
    };
    let shown: Vec<String> = objects.iter().map(shown).collect();
    assert_eq!(
        shown,
        [
            "Role team tiphys.argocd.prod.deploy",
            "RoleBinding team tiphys.argocd.prod.deploy",
            "Role team tiphys.argocd.prod.teardown",
            "RoleBinding team tiphys.argocd.prod.teardown",
            "Role web tiphys.argocd.prod.deploy",
            "RoleBinding web tiphys.argocd.prod.deploy",
            "Role web tiphys.argocd.prod.teardown",
            "RoleBinding web tiphys.argocd.prod.teardown",
        ]
    );
    let verbs = |object: &Value| object["rules"][0]["verbs"].clone();
    assert_eq!(verbs(&objects[0]), json!(["get", "list", "watch", "patch"]));
    assert_eq!(verbs(&objects[2]), json!(["get", "list", "watch", "patch", "delete"]));
    let account = json!({
        "kind": "ServiceAccount", "name": "tiphys-prod", "namespace": "argocd",
    });
    assert_eq!(objects[1]["subjects"], json!([account]));
    assert_eq!(objects[1]["roleRef"]["name"], objects[0]["metadata"]["name"]);
}
