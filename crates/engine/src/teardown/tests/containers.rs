//! What happens to namespaces and CRDs that came with a platform.

use serde_json::Value;

use super::*;
use crate::graph::{Names, Uids};

const SHOP: &str = "/api/v1/namespaces/shop";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.x";
const THINGS: &str = "/apis/x/v1/namespaces/blog/things";

fn kind(group: &str, kind: &str, plural: &str, scope: &str) -> Value {
    json!({
        "resource": plural, "scope": scope, "singularResource": "", "verbs": ["get", "list", "delete"],
        "responseKind": { "group": group, "version": "v1", "kind": kind },
    })
}

fn group(name: &str, resources: &[Value]) -> Value {
    let version = json!({ "version": "v1", "resources": resources });
    json!({ "metadata": { "name": name }, "versions": [version] })
}

/// A platform that brought a namespace and a CRD, and what a deployment has noted of them.
pub(super) async fn with_containers() -> (Server, Teardown) {
    let (server, teardown) = deployed().await;
    let core = [
        kind("", "Namespace", "namespaces", "Cluster"),
        kind("", "Secret", "secrets", "Namespaced"),
    ];
    let crds = "apiextensions.k8s.io";
    let defined = kind(crds, "CustomResourceDefinition", "customresourcedefinitions", "Cluster");
    let groups =
        [group(crds, &[defined]), group("x", &[kind("x", "Thing", "things", "Namespaced")])];
    let list = |items: &[Value]| json!({ "kind": "APIGroupDiscoveryList", "items": items });
    server.put("/api", list(&[group("", &core)]));
    server.put("/apis", list(&groups));
    let definition = json!({
        "group": "x", "scope": "Namespaced", "versions": [],
        "names": { "plural": "things", "kind": "Thing" },
    });
    server.put(SHOP, json!({ "metadata": { "uid": "shop-1" } }));
    server.put(CRD, json!({ "metadata": { "uid": "things-1" }, "spec": definition }));
    let uid = |name: &str, uid: &str| [(name.to_owned(), uid.to_owned())].into();
    let mut graph = teardown.graph.clone().unwrap();
    graph.before = Some(Names::default());
    let crds = uid("things.x", "things-1");
    graph.came = Some(Uids { namespaces: uid("shop", "shop-1"), crds });
    teardown.store().write(&graph).await.unwrap();
    (server, Teardown { graph: Some(graph), ..teardown })
}

/// Made by a person.
pub(super) fn theirs() -> Value {
    let field = json!({ "manager": "kubectl-create", "time": "2026-01-01T00:00:00Z" });
    json!({ "metadata": { "managedFields": [field] } })
}

pub(super) async fn kept(teardown: Teardown) -> Vec<String> {
    let ended = teardown.run(&|_| {}).await.unwrap();
    assert_eq!(ended.verdict, Verdict::Succeeded);
    ended.kept.iter().map(Kept::to_string).collect()
}

/// Somebody makes an object when another one is written or deleted.
fn make_with(server: &Server, other: &str, object: &str) {
    let (other, object) = (other.to_owned(), object.to_owned());
    server.control(move |objects, path| {
        if path == other {
            objects.put(&object, theirs());
        }
    });
}

#[tokio::test(start_paused = true)]
async fn they_are_deleted_with_the_uid_that_was_noted() {
    let (server, teardown) = with_containers().await;
    assert_eq!(kept(teardown).await, Vec::<String>::new());
    let uids: Vec<Value> = server
        .asked()
        .iter()
        .filter(|asked| asked.method == Method::DELETE)
        .filter(|asked| [SHOP, CRD].iter().any(|path| asked.path.starts_with(path)))
        .map(|asked| asked.body["preconditions"]["uid"].clone())
        .collect();
    assert_eq!(uids, ["shop-1", "things-1"]);
}

#[tokio::test(start_paused = true)]
async fn those_that_somebody_has_made_anew_stay_with_all_that_is_in_them() {
    let (server, teardown) = with_containers().await;
    server.put(SHOP, json!({ "metadata": { "uid": "shop-2" } }));
    server.put(&format!("{SHOP}/secrets/unmarked"), json!({}));
    let before = teardown.preview().await.unwrap();
    assert_eq!(before.namespaces, Vec::<String>::new());
    assert_eq!(
        kept(teardown).await,
        [
            "Namespace/shop: somebody has made it anew: it is not the one that came with the \
             platform",
            "Secret/shop/unmarked: nothing says that it was made for the platform",
        ]
    );
    assert!(server.get(&format!("{SHOP}/secrets/unmarked")).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_others_make_in_a_namespace_after_the_preview_keeps_it() {
    let (server, teardown) = with_containers().await;
    assert_eq!(teardown.preview().await.unwrap().namespaces, ["shop"]);
    make_with(&server, &application("b"), &format!("{SHOP}/secrets/backup"));
    let kept = kept(teardown).await;
    let why = "Secret/shop/backup: `kubectl-create` has created it";
    assert_eq!(kept, ["Namespace/shop: it holds Secret/shop/backup", why]);
    assert!(server.get(SHOP).is_some());
    assert_eq!(server.get(CRD), None, "{:?}", server.writes());
}

#[tokio::test(start_paused = true)]
async fn what_others_make_of_a_kind_while_namespaces_go_keeps_its_crd() {
    let (server, teardown) = with_containers().await;
    assert_eq!(teardown.preview().await.unwrap().crds, [("things.x".to_owned(), 0)]);
    make_with(&server, SHOP, &format!("{THINGS}/one"));
    let kept = kept(teardown).await;
    let why = "Thing/blog/one: `kubectl-create` has created it";
    assert_eq!(kept, ["CustomResourceDefinition/things.x: it defines Thing/blog/one", why]);
    assert!(server.get(&format!("{THINGS}/one")).is_some());
}
