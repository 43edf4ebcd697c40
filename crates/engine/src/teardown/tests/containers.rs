//! What happens to namespaces and CRDs that came with a platform.

use serde_json::Value;
use tiphys_model::platform::GroupKind;
use tiphys_state::graph::{Names, Uids};

use super::*;

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

/// The run before was killed when its apps were gone and its namespaces were not.
#[tokio::test(start_paused = true)]
async fn a_teardown_that_resumes_without_apps_waits_for_them() {
    let (server, mut teardown) = with_containers().await;
    let mut graph = teardown.graph.take().unwrap();
    for app in ["a", "b"] {
        graph.removed(app);
        server.change(|objects| objects.remove(&application(app)));
    }
    teardown.store().write(&graph).await.unwrap();
    let platform = graph.platform(&teardown.platform.name, "argocd").unwrap();
    let plan = Arc::new(tiphys_plan::plan(&platform, &Scope::Platform).unwrap());
    let (platform, graph) = (Arc::new(platform), Some(graph));
    let teardown = Teardown { platform, graph, plan, ..teardown };
    let terminating =
        Answer::Object(json!({ "kind": "Namespace", "metadata": { "name": "shop" } }));
    let deletes = |asked: &Asked| asked.method == Method::DELETE && asked.path.starts_with(SHOP);
    server.next_where(deletes, terminating);
    let finalised = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        server.change(|objects| objects.remove(SHOP));
    };
    let (ended, ()) = tokio::join!(run(teardown), finalised);
    assert_eq!(ended.unwrap(), Verdict::Succeeded);
    assert_eq!(server.get(CRD), None, "and what comes after them goes too");
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
            "Namespace/shop: it was deleted and created again: it is not the one that came with \
             the platform",
            "Secret/shop/unmarked: nothing shows that it belongs to the platform",
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

fn including(teardown: Teardown, named: &[&str]) -> Teardown {
    let including = named.iter().map(|named| named.parse().unwrap()).collect();
    let options = TeardownOptions { including, ..teardown.options.clone() };
    Teardown { options, ..teardown }
}

/// In the platform's namespace a Secret of somebody else, and elsewhere an object of its kind.
async fn with_others() -> (Server, Teardown) {
    let (server, teardown) = with_containers().await;
    server.put(&format!("{SHOP}/secrets/backup"), theirs());
    server.put(&format!("{THINGS}/one"), theirs());
    (server, teardown)
}

/// What is somebody else's is shown as taken along, and then gone with what it is in.
async fn assert_all_taken_along(server: &Server, teardown: Teardown) {
    let shown = teardown.preview().await.unwrap();
    let taken: Vec<String> = shown.taken.iter().map(|(object, _)| object.to_string()).collect();
    assert_eq!(taken, ["Secret/shop/backup", "Thing/blog/one"]);
    assert_eq!((shown.namespaces, shown.kept), (vec!["shop".to_owned()], vec![]));
    assert_eq!(kept(teardown).await, Vec::<String>::new());
    assert_eq!((server.get(SHOP), server.get(CRD)), (None, None));
}

#[tokio::test(start_paused = true)]
async fn what_is_named_is_taken_along() {
    let (server, teardown) = with_others().await;
    let teardown = including(teardown, &["shop", "things.x"]);
    assert_all_taken_along(&server, teardown).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_named_goes_by_itself_where_the_rest_stays() {
    let (server, teardown) = with_others().await;
    let mut sealing = theirs();
    sealing["metadata"]["labels"] = json!({ "sealedsecrets.bitnami.com/sealed-secrets-key": "" });
    server.put(&format!("{SHOP}/secrets/sealing"), sealing);
    let kept = kept(including(teardown, &["Secret"])).await;
    let stays = ["Namespace/shop", "Secret/shop/sealing", "CustomResourceDefinition/things.x"];
    let stays = [&stays[..], &["Thing/blog/one"]].concat();
    let names: Vec<&str> = kept.iter().filter_map(|kept| kept.split(':').next()).collect();
    assert_eq!(names, stays);
    assert_eq!(server.get(&format!("{SHOP}/secrets/backup")), None);
    assert!(server.get(&format!("{SHOP}/secrets/sealing")).is_some());
}

/// What the platform file says is disposable, as the deployed graph has kept it.
fn disposing(teardown: Teardown, kinds: &[(&str, &str)]) -> Teardown {
    let kind = |(group, kind): &(&str, &str)| {
        let [group, kind] = [*group, *kind].map(str::to_owned);
        GroupKind { group, kind }
    };
    let mut platform = (*teardown.platform).clone();
    platform.teardown.disposable = kinds.iter().map(kind).collect();
    Teardown { platform: Arc::new(platform), ..teardown }
}

#[tokio::test(start_paused = true)]
async fn what_is_disposable_is_taken_along_and_need_not_be_there() {
    let (server, teardown) = with_others().await;
    let teardown = disposing(teardown, &[("", "Secret"), ("x", "Thing"), ("", "ConfigMap")]);
    assert_all_taken_along(&server, teardown).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_kept_stays_although_its_kind_is_disposable() {
    let (server, teardown) = with_containers().await;
    server.put(&format!("{SHOP}/secrets/backup"), theirs());
    let mut data = theirs();
    let option = json!({ "argocd.argoproj.io/sync-options": "Delete=false" });
    data["metadata"]["annotations"] = option;
    server.put(&format!("{SHOP}/secrets/data"), data);
    let why = "Secret/shop/data: it has the sync option `Delete=false`";
    let kept = kept(disposing(teardown, &[("", "Secret")])).await;
    assert_eq!(kept, ["Namespace/shop: it holds Secret/shop/data", why]);
    assert_eq!(server.get(&format!("{SHOP}/secrets/backup")), None);
    assert!(server.get(&format!("{SHOP}/secrets/data")).is_some());
}

#[tokio::test(start_paused = true)]
async fn one_that_was_made_anew_goes_if_it_is_named() {
    let (server, teardown) = with_containers().await;
    server.put(SHOP, json!({ "metadata": { "uid": "shop-2" } }));
    assert_eq!(kept(including(teardown, &["shop"])).await, Vec::<String>::new());
    assert_eq!(server.get(SHOP), None);
}

#[tokio::test(start_paused = true)]
async fn a_name_of_which_nothing_stays_is_refused_with_what_could_be_meant() {
    let (_server, teardown) = with_others().await;
    let error = including(teardown, &["Secret", "sho"]).preview().await.unwrap_err().explain();
    assert_eq!(error.exit, Exit::Usage);
    assert!(error.what.contains("--including-others sho"), "{}", error.what);
    let next = "use a kind or namespace such as: shop, Secret, Thing.x";
    assert_eq!(error.next.as_deref(), Some(next));
    let (_server, teardown) = with_containers().await;
    let error = including(teardown, &["shop"]).preview().await.unwrap_err().explain();
    assert_eq!(error.exit, Exit::Usage, "it goes anyway");
}

#[tokio::test(start_paused = true)]
async fn what_an_app_keeps_stays_when_the_app_has_gone() {
    let (server, teardown) = with_containers().await;
    let mut app = argocd::unsynced("apps");
    app["spec"]["syncPolicy"] = json!({ "syncOptions": ["Delete=false"] });
    let resource = json!({ "kind": "Secret", "namespace": "shop", "name": "data" });
    app["status"]["resources"] = json!([resource]);
    server.put(&application("a"), app);
    let tracked = json!({ "argocd.argoproj.io/tracking-id": "a:/Secret:shop/data" });
    server.put(&format!("{SHOP}/secrets/data"), json!({ "metadata": { "annotations": tracked } }));
    let why = "Secret/shop/data: its app has the sync option `Delete=false`";
    let expected = ["Namespace/shop: it holds Secret/shop/data", why];
    let shown = teardown.preview().await.unwrap().kept;
    assert_eq!(shown.iter().map(Kept::to_string).collect::<Vec<_>>(), expected);
    assert_eq!(kept(teardown).await, expected);
    assert_eq!(server.get(&application("a")), None);
    assert!(server.get(&format!("{SHOP}/secrets/data")).is_some());
    let cascading = |asked: &Asked| asked.body.to_string().contains("resources-finalizer");
    let of_app = server.asked().into_iter().filter(|asked| asked.path.contains(&application("a")));
    assert!(!of_app.clone().any(|asked| cascading(&asked)), "Argo CD must not take them along");
}
