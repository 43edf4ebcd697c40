use std::collections::BTreeSet;

use tiphys_model::api_server::ServerAddress;
use tiphys_model::{CommitStatus, DeployMode, DeployPolicy, NamespaceName, StatusProvider};

use super::*;
use crate::configure::objects::tests::platform;

fn is_wide(rule: &PolicyRule) -> bool {
    let lists = [&rule.api_groups, &rule.resources].into_iter().flatten();
    lists.chain([&rule.verbs]).any(|list| list.iter().any(|item| item == "*"))
}

#[test]
fn who_deploys_writes_only_what_is_named_and_reads_one_secret() {
    let Grants { here, everywhere, .. } = grants(&platform("prod"), Account::Deploy);
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
    let secrets = |platform: &Platform, account: Account| -> Vec<String> {
        let rules = grants(platform, account).here.into_iter();
        let rules = rules.filter(|rule| rule.resources == Some(vec!["secrets".to_owned()]));
        rules.flat_map(|rule| rule.resource_names.unwrap_or_default()).collect()
    };
    assert_eq!(secrets(&platform, Account::Deploy), ["tiphys-prod-deploy"]);
    assert_eq!(secrets(&platform, Account::Teardown), ["tiphys-prod-teardown"]);
    platform.argocd.server.token_secret = Some(SecretName::parse("handed-out").unwrap());
    assert_eq!(secrets(&platform, Account::Deploy), ["tiphys-prod-deploy", "handed-out"]);
    assert_eq!(secrets(&platform, Account::Teardown), ["tiphys-prod-teardown"]);
    platform.argocd.access = ArgoCdAccess::Kubernetes;
    assert_eq!(secrets(&platform, Account::Deploy), Vec::<String>::new());
}

#[test]
fn a_server_at_an_address_takes_no_port_forward() {
    let mut platform = platform("prod");
    let forwards = |platform: &Platform| {
        let here = grants(platform, Account::Deploy).here;
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
    let all = |platform: &Platform, account: Account| -> BTreeSet<String> {
        let Grants { here, everywhere, .. } = grants(platform, account);
        let here = here.into_iter().map(|rule| ("", rule));
        let rules = here.chain(everywhere.into_iter().map(|rule| (" everywhere", rule)));
        let rights = rules.flat_map(|(place, rule)| {
            let resource = rule.resources.unwrap_or_default().concat();
            rule.verbs.into_iter().map(move |verb| format!("{verb} {resource}{place}"))
        });
        rights.collect()
    };
    let more = |account: Account| {
        let (api, fields) = (all(&through_api, account), all(&through_fields, account));
        let [more, fewer] = [&api - &fields, &fields - &api];
        [more, fewer].map(|rights| Vec::from_iter(rights).join(", "))
    };
    let way = "create pods/portforward, get pods/portforward, get secrets, list pods";
    assert_eq!(
        more(Account::Deploy),
        [
            "create pods/portforward, get pods everywhere, get pods/log everywhere, \
             get pods/portforward, get secrets, list pods",
            "patch applications",
        ]
    );
    assert_eq!(more(Account::Teardown), [way, "delete applications, patch applications"]);
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
        {
            "kind": "ServiceAccount", "name": "tiphys.argocd.prod.teardown",
            "namespace": "tiphys-teardown",
        },
    ]);
    assert_eq!(subjects, [&account]);
}

/// With the same one twice.
fn app_with_criterion() -> tiphys_model::App {
    let source = tiphys_model::criterion::ResourceCriterion {
        api_version: "ceph.rook.io/v1".to_owned(),
        kind: "CephCluster".to_owned(),
        name: "rook".to_owned(),
        namespace: None,
        expression: "true".to_owned(),
    };
    let mut app = crate::configure::objects::tests::app("ceph");
    app.health = vec![Criterion::Resource(source.clone()), Criterion::Resource(source)];
    app
}

#[test]
fn the_objects_of_health_criteria_are_read_by_name() {
    let mut platform = platform("prod");
    platform.apps.push(app_with_criterion());
    let expected = only("ceph.rook.io", "cephclusters", &["rook"], &["get"]);
    for account in [Account::Deploy, Account::Validate] {
        let rules = grants(&platform, account).everywhere;
        assert_eq!(rules.iter().filter(|rule| **rule == expected).count(), 1, "{rules:?}");
    }
}

/// Kind, namespace and name of each.
fn shown(objects: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let shown = |object: &Value| {
        let metadata = &object["metadata"];
        [&object["kind"], &metadata["namespace"], &metadata["name"]].map(text).join(" ")
    };
    objects.iter().map(shown).collect()
}

#[test]
fn who_deploys_and_who_tears_down_are_in_different_namespaces() {
    let platform = platform("prod");
    assert_eq!(
        shown(&accounts(&platform)),
        [
            "ServiceAccount tiphys tiphys.argocd.prod.deploy",
            "ServiceAccount tiphys tiphys.argocd.prod.validate",
            "ServiceAccount tiphys-teardown tiphys.argocd.prod.teardown",
            "ServiceAccount tiphys tiphys.argocd.prod.submit",
        ]
    );
    let own = |account: Account| {
        let places = places(&platform, account).into_iter();
        places.map(|(namespace, _)| namespace).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        Account::ALL.map(own),
        [
            "argocd tiphys",
            "argocd tiphys",
            "argocd tiphys-teardown tiphys",
            "argocd tiphys",
            "argocd tiphys",
            "argocd tiphys",
            "tiphys-events",
        ]
    );
}

#[test]
fn who_hears_of_pushes_changes_only_what_is_named() {
    let pushed = crate::configure::push::tests::pushed();
    assert!(
        shown(&accounts(&pushed))
            .contains(&"ServiceAccount tiphys-events tiphys.argocd.prod.events".to_owned())
    );
    let Grants { here, beside, everywhere, records, own, events } =
        grants(&pushed, Account::Events);
    assert_eq!(here, [only("argoproj.io", "applications", &["prod-root"], &["get", "patch"])]);
    assert!([beside, everywhere, records, events].concat().is_empty());
    let changes = |rule: &PolicyRule| rule.verbs.iter().any(|verb| verb != "get");
    let unnamed = own.iter().filter(|rule| changes(rule) && rule.resource_names.is_none());
    let created: Vec<_> = unnamed.map(|rule| (rule.resources.clone(), &rule.verbs[..])).collect();
    assert_eq!(created, [(Some(vec!["events".to_owned()]), &["create".to_owned()][..])]);
}

#[test]
fn what_is_deployed_does_not_tell_of_triggers_and_their_rights_go_all_the_same() {
    let mut changed = changes::tests::changed();
    changed.triggers.extend(crate::configure::push::tests::pushed().triggers);
    changed.deploy = DeployPolicy {
        commit_status: Some(CommitStatus {
            provider: StatusProvider::GitHub,
            api: String::new(),
            repository: String::new(),
            context: String::new(),
            link: None,
        }),
        ..DeployPolicy::default()
    };
    let made: BTreeSet<(Option<String>, String)> = roles(&changed)
        .into_iter()
        .filter(|object| object["kind"] == "Role")
        .map(|role| {
            let text = |field: &str| role["metadata"][field].as_str().unwrap().to_owned();
            (Some(text("namespace")), text("name"))
        })
        .collect();
    let gone: BTreeSet<(Option<String>, String)> = removed(&platform("prod"))
        .into_iter()
        .filter(|(_, _, kind, _)| *kind == "Role")
        .map(|(namespace, _, _, account)| (namespace, account.name(&platform("prod"))))
        .collect();
    let left: Vec<_> = made.difference(&gone).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn who_watches_objects_lists_them_and_changes_no_root_app() {
    let changed = changes::tests::changed();
    let Grants { here, everywhere, own, .. } = grants(&changed, Account::Events);
    assert_eq!(here, []);
    assert_eq!(everywhere, [any("cert-manager.io", "certificates", &["list", "watch"])]);
    assert_eq!(own[0].verbs, ["get", "patch"]);
    let of_loop = |platform: &Platform| grants(platform, Account::Loop).events;
    assert_eq!(of_loop(&changed), [any("", "configmaps", &["list"])]);
    assert_eq!(of_loop(&crate::configure::push::tests::pushed()), []);
}

#[test]
fn the_deploy_loop_has_no_account_of_the_platforms_and_changes_only_what_is_named() {
    let manual = platform("prod");
    let deploy = DeployPolicy { mode: DeployMode::Automatic, ..DeployPolicy::default() };
    let automatic = Platform { deploy, ..manual.clone() };
    assert_eq!(shown(&accounts(&automatic)), shown(&accounts(&manual)));
    let of_loop = |platform: &Platform| {
        let named = |object: &&String| object.ends_with("tiphys.argocd.prod.loop");
        shown(&roles(platform)).iter().filter(named).cloned().collect::<Vec<_>>()
    };
    assert!(of_loop(&manual).is_empty());
    assert_eq!(
        of_loop(&automatic),
        [
            "Role argocd tiphys.argocd.prod.loop",
            "RoleBinding argocd tiphys.argocd.prod.loop",
            "Role tiphys tiphys.argocd.prod.loop",
            "RoleBinding tiphys tiphys.argocd.prod.loop",
        ]
    );
    for binding in roles(&automatic).iter().filter(|object| object["kind"] == "RoleBinding") {
        if binding["metadata"]["name"] == "tiphys.argocd.prod.loop" {
            let subject = json!({
                "kind": "ServiceAccount", "name": "tiphys-serve", "namespace": "tiphys-system",
            });
            assert_eq!(binding["subjects"], json!([subject]));
        }
    }
    let Grants { here, records, everywhere, own, .. } = grants(&automatic, Account::Loop);
    assert!(everywhere.is_empty() && own.is_empty());
    for rule in here.iter().chain(&records) {
        let patches = rule.verbs.iter().any(|verb| verb == "patch");
        assert!(!patches || rule.resource_names.is_some(), "{rule:?}");
        assert!(!is_wide(rule) && !rule.resources.iter().flatten().any(|kind| kind == "secrets"));
    }
}

#[test]
fn a_platform_with_nodes_has_an_account_for_their_agent_and_may_submit_them() {
    let single = platform("prod");
    let nodes = Platform { workflows: WorkflowMode::Nodes, ..single.clone() };
    let added: Vec<String> = shown(&accounts(&nodes)).split_off(shown(&accounts(&single)).len());
    assert_eq!(
        added,
        [
            "ServiceAccount tiphys tiphys.argocd.prod.nodes",
            "Secret tiphys tiphys.argocd.prod.nodes.service-account-token",
        ]
    );
    let may_submit = |platform: &Platform, account| {
        let rules = grants(platform, account).own;
        let workflows = |rule: &PolicyRule| rule.resources == Some(vec!["workflows".to_owned()]);
        rules.iter().any(workflows)
    };
    assert!(may_submit(&nodes, Account::Deploy));
    assert!(!may_submit(&single, Account::Deploy));
    assert!(!may_submit(&nodes, Account::Nodes), "the agent only says how nodes stand");
}

#[test]
fn each_role_is_bound_to_the_account_of_its_name() {
    let platform = platform("prod");
    let objects = [roles(&platform), cluster_roles(&platform)].concat();
    for [role, binding] in objects.as_chunks().0 {
        let (kind, name) = (&role["kind"], &role["metadata"]["name"]);
        assert_eq!(binding["kind"], format!("{}Binding", kind.as_str().unwrap()));
        assert_eq!(binding["metadata"], role["metadata"]);
        assert_eq!((&binding["roleRef"]["kind"], &binding["roleRef"]["name"]), (kind, name));
        assert_eq!(&binding["subjects"][0]["name"], name);
    }
    assert_eq!(
        shown(&cluster_roles(&platform)),
        [
            "ClusterRole - tiphys.argocd.prod.deploy",
            "ClusterRoleBinding - tiphys.argocd.prod.deploy",
            "ClusterRole - tiphys.argocd.prod.teardown",
            "ClusterRoleBinding - tiphys.argocd.prod.teardown",
            "ClusterRole - tiphys.argocd.prod.submit",
            "ClusterRoleBinding - tiphys.argocd.prod.submit",
        ],
        "without criteria, a look needs nothing everywhere"
    );
}

#[test]
fn all_that_is_made_of_the_accounts_is_removed() {
    let mut platform = platform("prod");
    platform.argocd.application_namespaces = vec![NamespaceName::parse("team").unwrap()];
    platform.apps.push(app_with_criterion());
    let made = [&accounts(&platform)[..], &roles(&platform), &cluster_roles(&platform)].concat();
    let made: BTreeSet<String> = shown(&made).into_iter().collect();
    let removed = removed(&platform).into_iter().map(|(namespace, _, kind, account)| {
        let namespace = namespace.unwrap_or_else(|| "-".to_owned());
        format!("{kind} {namespace} {}", account.name(&platform))
    });
    let removed: BTreeSet<String> = removed.collect();
    assert_eq!(&made - &removed, BTreeSet::new());
}

#[test]
fn who_looks_changes_nothing_and_reads_no_secrets() {
    let mut platform = platform("prod");
    platform.apps.push(app_with_criterion());
    let Grants { here, beside, everywhere, records, .. } = grants(&platform, Account::Validate);
    for rule in [here, beside, everywhere, records].concat() {
        assert!(rule.verbs == ["get"] || rule.verbs == ["list"], "{rule:?}");
        assert!(!rule.resources.iter().flatten().any(|kind| kind == "secrets"), "{rule:?}");
        assert!(!is_wide(&rule), "{rule:?}");
    }
}

#[test]
fn who_submits_has_rights_among_deployments_only() {
    let Grants { here, beside, everywhere, records, own, events } =
        grants(&platform("prod"), Account::Submit);
    for rule in [here, beside, everywhere, records, events].concat() {
        assert_eq!(rule.verbs, ["get"], "{rule:?}");
    }
    for rule in own {
        assert!(!rule.resources.iter().flatten().any(|kind| kind == "secrets"), "{rule:?}");
    }
    assert_eq!(Account::Submit.namespace(), names::NAMESPACE);
}

#[test]
fn other_namespaces_of_applications_have_roles_of_their_own() {
    let mut platform = platform("prod");
    assert_eq!(grants(&platform, Account::Teardown).beside, []);
    platform.argocd.access = ArgoCdAccess::Kubernetes;
    platform.argocd.application_namespaces =
        ["team", "web"].map(|name| NamespaceName::parse(name).unwrap()).into();
    let beside = |account: Account| {
        let places = places(&platform, account).into_iter();
        let beside = places.filter(|(namespace, _)| ["team", "web"].contains(&&**namespace));
        beside.map(|(_, rules)| rules[0].verbs.join(",")).collect::<Vec<_>>()
    };
    assert_eq!(beside(Account::Deploy), ["get,list,watch,patch"; 2]);
    assert_eq!(beside(Account::Validate), ["list"; 2]);
    assert_eq!(beside(Account::Teardown), ["get,list,watch,patch,delete"; 2]);
    assert_eq!(beside(Account::Submit), Vec::<String>::new());
}
