//! What runs ask of the API server is what their accounts may do: every request is allowed, and
//! every right is used. Through Argo CD's API they need a few more, which only a real one shows.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::Method;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::json;
use tiphys_cluster::Place;
use tiphys_cluster::names::{Account, NAMESPACE};
use tiphys_cluster::scripted::Asked;
use tiphys_install::configure::{Grants, grants};
use tiphys_model::{Platform, Scope};
use tiphys_run::Verdict;
use tiphys_state::graph::{DeployedGraph, GraphStore, Names, Uids};

use crate::deploy::Deploy;
use crate::engine::Engine;
use crate::teardown::{Extent, Teardown, TeardownOptions};
use crate::testkit;
use crate::testkit::argocd::{self, application};
use tiphys_cluster::scripted::Server;

const ARGOCD: &str = "argocd";
/// Another namespace of Applications.
const TEAM: &str = "team";
/// What these runs do not come to: they have no ApplicationSet.
const UNUSED_BY_DEPLOY: [&str; 3] =
    ["get applicationsets", "patch applicationsets", "patch events"];
/// Nothing fails, so there is nothing to announce.
const UNUSED_BY_TEARDOWN: [&str; 2] = ["create events", "patch events"];

/// What one request needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    verb: &'static str,
    group: String,
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
}

/// As the API server sees a request; nothing for discovery, which everybody may do.
fn needs(asked: &Asked) -> Vec<Need> {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, rest) = match &parts[..] {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return Vec::new(),
    };
    let (namespace, resource, name) = match rest {
        [resource] => (None, resource, None),
        [resource, name] => (None, resource, Some(name)),
        ["namespaces", namespace, resource] => (Some(namespace), resource, None),
        ["namespaces", namespace, resource, name] => (Some(namespace), resource, Some(name)),
        _ => unreachable!("no run asks for {path}"),
    };
    let verbs: &[&str] = match (&asked.method, name) {
        (&Method::GET, Some(_)) => &["get"],
        (&Method::GET, None) if query.contains("watch=true") => &["watch"],
        (&Method::GET, None) => &["list"],
        (&Method::POST, _) => &["create"],
        (&Method::PUT, _) => &["update"],
        (&Method::DELETE, _) => &["delete"],
        // An apply creates what is not there.
        (&Method::PATCH, _) if query.contains("force=true") => &["patch", "create"],
        (&Method::PATCH, _) => &["patch"],
        (method, _) => unreachable!("no run sends {method}"),
    };
    let owned = |text: Option<&&str>| text.map(|text| (*text).to_owned());
    let need = |verb: &&'static str| Need {
        verb,
        group: group.to_owned(),
        resource: (*resource).to_owned(),
        namespace: owned(namespace),
        name: owned(name),
    };
    verbs.iter().map(need).collect()
}

fn allows(rule: &PolicyRule, need: &Need) -> bool {
    let has = |list: &[String], item: &str| list.iter().any(|one| one == item || one == "*");
    let names = rule.resource_names.as_deref();
    has(&rule.verbs, need.verb)
        && has(rule.api_groups.as_deref().unwrap_or_default(), &need.group)
        && has(rule.resources.as_deref().unwrap_or_default(), &need.resource)
        && names.is_none_or(|names| need.name.as_ref().is_some_and(|name| names.contains(name)))
}

/// What is asked for and not allowed, and what is allowed and not asked for.
fn compare(grants: &Grants, servers: &[Server]) -> (BTreeSet<Need>, BTreeSet<String>) {
    let asked = servers.iter().flat_map(Server::asked);
    let needs: BTreeSet<Need> = asked.flat_map(|asked| needs(&asked)).collect();
    // The ClusterRole may be left out: in Argo CD's namespace, and beside it, the Role is enough.
    let allowed = |need: &Need| {
        let rules = match need.namespace.as_deref() {
            Some(ARGOCD) => &grants.here,
            Some(NAMESPACE) => &grants.records,
            Some(TEAM) => &grants.beside,
            _ => &grants.everywhere,
        };
        rules.iter().any(|rule| allows(rule, need))
    };
    let lacking = needs.iter().filter(|need| !allowed(need)).cloned().collect();
    let Grants { here, beside, everywhere, .. } = grants;
    let of = |rules, place| std::iter::repeat(place).zip::<&Vec<PolicyRule>>(rules);
    let rules = of(here, Some(ARGOCD)).chain(of(beside, Some(TEAM))).chain(of(everywhere, None));
    let mut unused = BTreeSet::new();
    for (place, rule) in rules {
        for verb in &rule.verbs {
            let there = |need: &Need| place.is_none() || need.namespace.as_deref() == place;
            let uses = |need: &Need| need.verb == verb && there(need) && allows(rule, need);
            if !needs.iter().any(uses) {
                let resource = rule.resources.as_ref().map_or("", |resources| &resources[0]);
                let beside = if place == Some(TEAM) { " beside" } else { "" };
                unused.insert(format!("{verb} {resource}{beside}"));
            }
        }
    }
    (lacking, unused)
}

fn all(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_may_do_what_it_does_and_nothing_else() {
    assert_deployment(testkit::platform(), &["a", "b"], &UNUSED_BY_DEPLOY).await;
    let unused = [&UNUSED_BY_DEPLOY[..], &["patch events beside"]].concat();
    assert_deployment(testkit::platform_in(TEAM), &["a", "team/b"], &unused).await;
}

async fn assert_deployment(platform: Platform, creates: &'static [&'static str], unused: &[&str]) {
    let server = argocd::server(creates);
    let plan = tiphys_plan::plan(&platform, &Scope::Platform).unwrap();
    let grants = grants(&platform, Account::Deploy);
    let deploy = |unattended| Deploy {
        engine: Engine::Local,
        client: server.client(),
        place: Place::Inside,
        platform: Arc::new(platform.clone()),
        plan: Arc::new(plan.clone()),
        identity: "us".to_owned(),
        check: None,
        unattended,
    };
    // The second one finds a Lease and a graph.
    for unattended in [false, true] {
        assert_eq!(deploy(unattended).run(&|_| {}).await.unwrap(), Verdict::Succeeded);
    }
    assert_eq!(compare(&grants, &[server]), (BTreeSet::new(), all(unused)));
}

/// A platform with a namespace, a CRD and an ApplicationSet of its own.
async fn deployed(platform: &Platform, apps: [&str; 2]) -> (Server, Teardown) {
    let server = argocd::server(&[]);
    for (path, group, kind, plural) in [
        ("/api", "", "Namespace", "namespaces"),
        ("/apis", "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),
    ] {
        let resource = json!({
            "resource": plural, "scope": "Cluster", "verbs": ["get", "list", "delete"],
            "responseKind": { "group": group, "version": "v1", "kind": kind },
        });
        let versions = json!([{ "version": "v1", "resources": [resource] }]);
        let group = json!({ "metadata": { "name": group }, "versions": versions });
        server.put(path, json!({ "kind": "APIGroupDiscoveryList", "items": [group] }));
    }
    for name in apps {
        server.put(&application(name), argocd::unsynced("apps"));
    }
    server.put(
        "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/set",
        json!({
            "metadata": { "finalizers": ["resources-finalizer.argocd.argoproj.io"] },
            "spec": { "template": { "spec": { "project": "roots" } } },
        }),
    );
    server.put("/api/v1/namespaces/web", json!({ "metadata": { "uid": "web-1" } }));
    // Kubernetes has given it up once.
    let failed =
        json!({ "type": "Terminating", "status": "True", "reason": "InstanceDeletionFailed" });
    server.put(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.org",
        json!({
            "metadata": { "uid": "things-1" },
            "spec": {
                "group": "example.org", "names": { "kind": "Thing", "plural": "things" },
                "scope": "Namespaced", "versions": [],
            },
            "status": { "conditions": [failed] },
        }),
    );
    let plan = tiphys_plan::plan(platform, &Scope::Platform).unwrap();
    let mut graph = DeployedGraph::new(platform, Some(Names::default()));
    graph.plan(platform, &plan, None);
    graph.brought = Names { namespaces: all(&["web"]), crds: all(&["things.example.org"]) };
    let uid = |name: &str, uid: &str| [(name.to_owned(), uid.to_owned())].into();
    let crds = uid("things.example.org", "things-1");
    graph.came = Some(Uids { namespaces: uid("web", "web-1"), crds });
    let store = GraphStore::new(&server.client(), ARGOCD, &platform.name);
    store.write(&graph).await.unwrap();
    let teardown = Teardown {
        engine: Engine::Local,
        client: server.client(),
        platform: Arc::new(platform.clone()),
        graph: Some(graph),
        plan: Arc::new(plan),
        extent: Extent::Platform,
        identity: "us".to_owned(),
        // The rest is an administrator's: who may take Argo CD's rights away has them all.
        options: TeardownOptions {
            keep_primitives: true,
            retain_volumes: true,
            ..TeardownOptions::default()
        },
    };
    (server, teardown)
}

#[tokio::test(start_paused = true)]
async fn a_teardown_may_do_what_it_does_and_nothing_else() {
    assert_teardown(&testkit::platform(), ["a", "b"], &UNUSED_BY_TEARDOWN).await;
    let beside = ["create events beside", "patch events beside"];
    let unused = [UNUSED_BY_TEARDOWN, beside].concat();
    assert_teardown(&testkit::platform_in(TEAM), ["a", "team/b"], &unused).await;
}

async fn assert_teardown(platform: &Platform, apps: [&str; 2], unused: &[&str]) {
    let grants = grants(platform, Account::Teardown);
    let (server, teardown) = deployed(platform, apps).await;
    teardown.run(&|_| {}).await.unwrap();
    // A volume that stays keeps the graph and the Lease.
    let (with_volume, teardown) = deployed(platform, apps).await;
    let spec = json!({
        "claimRef": { "namespace": "web" }, "persistentVolumeReclaimPolicy": "Delete",
    });
    with_volume.put("/api/v1/persistentvolumes/v", json!({ "spec": spec }));
    teardown.run(&|_| {}).await.unwrap();
    let compared = compare(&grants, &[server, with_volume]);
    assert_eq!(compared, (BTreeSet::new(), all(unused)));
}
