//! In which order a deployment asks for things, and what it leaves whatever the end.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tiphys_cluster::scripted::{Answer, Asked};
use tiphys_model::{Exit, Scope};

use super::*;
use crate::testkit;
use crate::testkit::argocd::{self, LEASE, PROJECT, holder, steps};
use tiphys_cluster::scripted::{self, Server};

fn deploy(server: &Server) -> Deploy {
    deploy_scope(server, &Scope::Platform)
}

fn deploy_scope(server: &Server, scope: &Scope) -> Deploy {
    deploy_platform(server, testkit::platform(), scope)
}

fn deploy_platform(server: &Server, platform: Platform, scope: &Scope) -> Deploy {
    let plan = tiphys_plan::plan(&platform, scope).unwrap();
    Deploy {
        engine: Engine::Local,
        client: server.client(),
        place: Place::Inside,
        platform: Arc::new(platform),
        plan: Arc::new(plan),
        identity: "us".to_owned(),
        check: None,
        unattended: false,
    }
}

async fn run(server: &Server) -> Result<Verdict, DeployError> {
    deploy(server).run(&|_| {}).await
}

/// What comes before the run.
const BEFORE: [&str; 6] = [
    "take the Lease",
    "refresh prod-root",
    r#"hold ["a","b"]"#,
    "refresh prod-root",
    "sync prod-root",
    "keep the graph",
];

#[tokio::test(start_paused = true)]
async fn lease_hold_root_graph_run_and_giving_back() {
    let server = argocd::server(&["a", "b"]);
    assert_eq!(run(&server).await.unwrap(), Verdict::Succeeded);
    let mut steps = steps(&server);
    // An app is let go while those that waited for it begin.
    steps[9..11].sort();
    let run = ["refresh a", "refresh b", "sync a", r#"hold ["b"]"#, "sync b", "hold nothing"];
    let after = ["keep the graph", "give up the Lease"];
    assert_eq!(steps, [&BEFORE[..], &run, &after].concat());
    assert_eq!(holder(&server), None);
}

async fn run_in_team(server: &Server) -> Result<Verdict, DeployError> {
    let deploy = deploy_platform(server, testkit::platform_in("team"), &Scope::Platform);
    deploy.run(&|_| {}).await
}

#[tokio::test(start_paused = true)]
async fn an_app_may_be_in_another_namespace() {
    let server = argocd::server(&["a", "team/b"]);
    assert_eq!(run_in_team(&server).await.unwrap(), Verdict::Succeeded);
    let synced = server.get(&argocd::application("team/b")).unwrap();
    assert_eq!(synced["status"]["health"]["status"], "Healthy");
    assert_eq!(server.get(&argocd::application("b")), None);
    assert!(server.get(PROJECT).unwrap()["spec"]["syncWindows"].is_null(), "all is let go");
}

#[tokio::test(start_paused = true)]
async fn a_namesake_in_another_namespace_is_refused_before_anything_is_changed() {
    let server = argocd::server(&["a", "b"]);
    for name in ["b", "team/b"] {
        server.put(&argocd::application(name), argocd::unsynced("apps"));
    }
    let error = run_in_team(&server).await.unwrap_err();
    assert_eq!(error.explain().exit, Exit::Configuration);
    assert!(error.explain().why.contains("`b` is in `argocd` and `team`"), "{error}");
    assert_eq!(steps(&server), ["take the Lease", "give up the Lease"]);

    // Others may call theirs as they like.
    server.put(&argocd::application("team/b"), argocd::unsynced("theirs"));
    assert_eq!(run_in_team(&server).await.unwrap(), Verdict::Succeeded);
    let theirs = server.get(&argocd::application("team/b")).unwrap();
    assert_eq!(theirs["status"]["health"]["status"], "Missing");
}

#[tokio::test(start_paused = true)]
async fn a_namesake_that_the_root_app_creates_is_refused_before_the_run() {
    let server = argocd::server(&["a", "b", "team/b"]);
    let error = run_in_team(&server).await.unwrap_err();
    assert_eq!(error.explain().exit, Exit::Configuration);
    assert!(!steps(&server).contains(&"sync a".to_owned()), "{:?}", steps(&server));
}

/// The root app creates it, and nobody has deployed what it depends on: Argo CD must not begin.
#[tokio::test(start_paused = true)]
async fn what_a_scope_leaves_out_stays_held_until_its_turn_comes() {
    let server = argocd::server(&["a", "b"]);
    let only_a: Scope = "app:a".parse().unwrap();
    let notes = RefCell::<Vec<String>>::default();
    let updates = |update| {
        if let RunUpdate::Note(note) = update {
            notes.borrow_mut().push(note);
        }
    };
    let ended = deploy_scope(&server, &only_a).run(&updates).await;
    assert_eq!(ended.unwrap(), Verdict::Succeeded);
    let held = server.get(PROJECT).unwrap()["spec"]["syncWindows"][0]["applications"].clone();
    assert_eq!(held, json!(["b"]));
    let note = notes.borrow().last().cloned().unwrap();
    assert!(note.starts_with("b stays held: outside the scope"), "{note}");
    run(&server).await.unwrap();
    assert!(server.get(PROJECT).unwrap()["spec"]["syncWindows"].is_null(), "all is let go");

    // Deployed, and as it was: the next run of a part lets it go again.
    deploy_scope(&server, &only_a).run(&|_| {}).await.unwrap();
    assert!(server.get(PROJECT).unwrap()["spec"]["syncWindows"].is_null(), "all is let go");
}

/// Whatever goes wrong before the run, nothing that comes after it is asked for, and the Lease is
/// given up.
#[tokio::test(start_paused = true)]
async fn what_goes_wrong_before_the_run_ends_it_there_and_gives_up_the_lease() {
    // What is refused, and how many steps have been asked for then.
    for (method, path, asked) in [
        (Method::GET, "configmaps/argocd-cm", 0),
        (Method::POST, "leases", 1),
        (Method::PATCH, "applications/prod-root", 2),
        (Method::GET, "applications?", 2),
        (Method::GET, "appprojects/apps", 1),
        (Method::PATCH, "appprojects/apps", 3),
        (Method::GET, "configmaps/tiphys-prod", 5),
        (Method::PATCH, "configmaps/tiphys-prod", 6),
    ] {
        for (answer, exit) in scripted::failures() {
            // An Argo CD that is away is waited for; `generators` tries that.
            if path.ends_with("prod-root") && exit != Exit::Credentials {
                continue;
            }
            let server = argocd::server(&["a", "b"]);
            let writes_hold = method == Method::PATCH && path.contains("appprojects");
            // Such a write is tried three times.
            for _ in 0..if writes_hold { 3 } else { 1 } {
                server.next(method.clone(), path, answer.clone());
            }
            let error = run(&server).await.unwrap_err();
            let given_up = usize::from(asked > 0 && method != Method::POST);
            let expected = [&BEFORE[..asked], &["give up the Lease"][..given_up]].concat();
            assert_eq!(error.explain().exit, exit, "{method} {path} {answer:?}: {error}");
            assert_eq!(steps(&server), expected, "{method} {path} {answer:?}");
            assert_eq!(holder(&server), None, "{method} {path} {answer:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_platform_file_of_another_revision_changes_nothing() {
    let server = argocd::server(&["a", "b"]);
    let holder = || "another file".to_owned();
    let check: Check = Box::new(move |_| Err(Box::new(LeaseError::Lost { holder: holder() })));
    let ended = Deploy { check: Some(check), ..deploy(&server) }.run(&|_| {}).await;
    assert!(ended.unwrap_err().to_string().contains("another file"));
    assert_eq!(steps(&server), ["take the Lease", "refresh prod-root", "give up the Lease"]);
}

#[tokio::test(start_paused = true)]
async fn an_app_that_nobody_creates_ends_it_before_the_graph_is_kept() {
    let server = argocd::server(&["a"]);
    let error = run(&server).await.unwrap_err();
    assert_eq!(error.explain().exit, Exit::NotFound);
    assert_eq!(error.explain().what, "no Application found for b");
    assert_eq!(steps(&server), [&BEFORE[..5], &["give up the Lease"]].concat());
}

#[tokio::test(start_paused = true)]
async fn what_was_done_before_a_run_is_killed_is_kept() {
    let server = argocd::server(&["a", "b"]);
    // `b` takes its time.
    server.next_where(
        |asked| asked.path.contains("applications/b") && !asked.body["operation"].is_null(),
        Answer::After(Duration::from_secs(60), Box::new(Answer::Cut)),
    );
    let killed = tokio::time::timeout(Duration::from_secs(12), run(&server)).await;
    assert!(killed.is_err(), "it goes on: {killed:?}");
    let store = GraphStore::new(&server.client(), "argocd", &testkit::platform().name);
    let graph = store.read().await.unwrap().unwrap();
    assert_eq!(graph.apps["a"].done, Some(BTreeSet::new()));
    assert_eq!(graph.apps["b"].done, None);
}

#[tokio::test(start_paused = true)]
async fn the_graph_that_cannot_be_kept_after_the_run_is_said() {
    let server = argocd::server(&["a", "b"]);
    for _ in 0..3 {
        let mut writes = 0;
        let after_the_first = move |asked: &Asked| {
            let writes_graph = asked.method == Method::PATCH && asked.path.contains("configmaps");
            writes += usize::from(writes_graph);
            writes_graph && writes > 1
        };
        server.next_where(after_the_first, Answer::refused(403, "no"));
    }
    let error = run(&server).await.unwrap_err();
    assert_eq!(error.explain().exit, Exit::Credentials);
    assert_eq!(holder(&server), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_given_up_is_said_unless_something_worse_is() {
    let given_up = |asked: &Asked| {
        asked.method == Method::PUT && asked.body["spec"]["holderIdentity"].is_null()
    };
    let server = argocd::server(&["a"]);
    server.next_where(given_up, Answer::refused(403, "no"));
    assert_eq!(run(&server).await.unwrap_err().explain().exit, Exit::NotFound, "b is not there");
    assert_eq!(holder(&server).as_deref(), Some("us"), "the next run waits until it runs out");
    let server = argocd::server(&["a", "b"]);
    server.next_where(given_up, Answer::refused(403, "no"));
    let error = run(&server).await.unwrap_err();
    assert!(error.explain().what.contains("cannot release"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn whoever_loses_the_lease_while_it_holds_the_apps_asks_for_nothing_more() {
    let server = argocd::server(&["a", "b"]);
    let slow = Answer::After(Duration::from_secs(60), Box::new(Answer::Cut));
    server.next(Method::PATCH, "appprojects/apps", slow);
    let take_over = async {
        tokio::time::sleep(Duration::from_secs(8)).await;
        server.put(LEASE, json!({ "spec": { "holderIdentity": "another" } }));
    };
    let (ended, ()) = tokio::join!(run(&server), take_over);
    let error = ended.unwrap_err();
    assert_eq!(error.explain().exit, Exit::Held);
    assert!(error.explain().why.contains("another"), "{error}");
    assert_eq!(steps(&server), [&BEFORE[..3], &["give up the Lease"]].concat());
    assert_eq!(holder(&server).as_deref(), Some("another"), "it is not taken from them");
}

/// Two apps, of which the second has a criterion.
fn with_a_criterion(server: &Server) -> Deploy {
    let platform = testkit::platform_with(
        "{ name: b, dependsOn: [a], health: [{ tcp: { service: b, port: 1 } }] }",
    );
    let plan = tiphys_plan::plan(&platform, &Scope::Platform).unwrap();
    Deploy { platform: Arc::new(platform), plan: Arc::new(plan), ..deploy(server) }
}

fn on_edge(name: &str) -> Value {
    let mut application = argocd::unsynced("apps");
    application["spec"]["destination"] = json!({ "name": "edge", "namespace": name });
    application
}

#[tokio::test(start_paused = true)]
async fn criteria_on_another_cluster_are_refused_before_anything_is_held() {
    let server = argocd::server(&["a", "b"]);
    server.put(&argocd::application("b"), on_edge("b"));
    let error = with_a_criterion(&server).run(&|_| {}).await.unwrap_err().explain();
    assert_eq!(error.exit, Exit::Configuration);
    assert_eq!(error.what, "cannot check the health criteria of b");
    assert!(error.why.ends_with("other clusters: `b` on edge"), "{}", error.why);
    assert_eq!(steps(&server), ["take the Lease", "refresh prod-root", "give up the Lease"]);
}

/// An Application that was not there before the root app was synced.
#[tokio::test(start_paused = true)]
async fn criteria_on_another_cluster_are_refused_before_any_app_is_synced() {
    let server = argocd::server(&["a"]);
    let create = async {
        while server.get(&argocd::application("a")).is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.put(&argocd::application("b"), on_edge("b"));
    };
    let deploy = with_a_criterion(&server);
    let (ended, ()) = tokio::join!(deploy.run(&|_| {}), create);
    assert_eq!(ended.unwrap_err().explain().what, "cannot check the health criteria of b");
    assert_eq!(steps(&server), [&BEFORE[..5], &["give up the Lease"]].concat());
}

#[tokio::test(start_paused = true)]
async fn without_a_person_only_what_is_deployed_is_deployed_again() {
    let server = argocd::server(&["a", "b"]);
    let told = async || {
        let notes = RefCell::<Vec<String>>::default();
        let updates = |update| match update {
            RunUpdate::Note(note) => notes.borrow_mut().push(note),
            update => assert!(!matches!(update, RunUpdate::Began { .. }), "no run begins"),
        };
        let ended = Deploy { unattended: true, ..deploy(&server) }.run(&updates).await;
        assert_eq!(ended.unwrap(), Verdict::Succeeded);
        assert_eq!(holder(&server), None, "the Lease is given up");
        notes.into_inner().pop().unwrap()
    };
    assert!(told().await.starts_with("nothing was done: the platform is not deployed"));
    assert!(!steps(&server).contains(&"sync a".to_owned()), "{:?}", steps(&server));

    run(&server).await.unwrap();
    let kept = "/api/v1/namespaces/tiphys/configmaps/tiphys.argocd.prod.deploy-loop";
    let labels = json!({ "tiphys.dev/platform": "prod", "tiphys.dev/argocd": "argocd" });
    let pause = r#"{"by":"alice","at":"2026-11-19T12:00:00Z"}"#;
    server.put(kept, json!({ "metadata": { "labels": labels }, "data": { "pause": pause } }));
    assert_eq!(told().await, "nothing was done: alice paused automatic deployments of prod");

    server.put(kept, json!({ "metadata": { "labels": labels } }));
    let again = Deploy { unattended: true, ..deploy(&server) }.run(&|_| {}).await;
    assert_eq!(again.unwrap(), Verdict::Succeeded);

    // Somebody has begun to take it down.
    let store = GraphStore::new(&server.client(), "argocd", &testkit::platform().name);
    let mut graph = store.read().await.unwrap().unwrap();
    graph.removing = true;
    store.write(&graph).await.unwrap();
    assert!(told().await.starts_with("nothing was done: the platform is not deployed"));
}

/// A run was killed when it held the apps, and one of them was being synced by Argo CD.
#[tokio::test(start_paused = true)]
async fn what_an_earlier_hold_has_frozen_is_freed() {
    let server = argocd::server(&["a", "b"]);
    assert_eq!(run(&server).await.unwrap(), Verdict::Succeeded);
    let hold = Hold::new(&server.client(), &testkit::platform().argocd, "killed");
    hold.hold_now("b").await.unwrap();
    argocd::freeze(&server, "b");
    let began = tokio::time::Instant::now();
    assert_eq!(run(&server).await.unwrap(), Verdict::Succeeded);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(hold.held().await.unwrap(), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn what_stays_frozen_ends_a_deployment_within_two_minutes_with_what_to_do() {
    let server = argocd::server(&["a", "b"]);
    run(&server).await.unwrap();
    Hold::new(&server.client(), &testkit::platform().argocd, "killed").hold_now("b").await.unwrap();
    argocd::freeze(&server, "b");
    // A controller that refreshes the root app and nothing else.
    server.control(|objects, path| {
        if path == argocd::application(argocd::ROOT) {
            let mut root = objects.get(path).unwrap();
            root["metadata"]["annotations"] = json!({});
            objects.put(path, root);
        }
    });
    let began = tokio::time::Instant::now();
    let error = run(&server).await.unwrap_err().explain();
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    assert!(error.why.contains("`b`") && error.next.is_some(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_others_do_not_let_through_is_told_before_anything_is_changed() {
    let server = argocd::server(&["a", "b"]);
    server.put(&argocd::application("b"), argocd::unsynced("apps"));
    let broken = json!({ "kind": "deny", "schedule": "daily", "applications": ["b"] });
    server.put(PROJECT, json!({ "spec": { "syncWindows": [broken] } }));
    let error = run(&server).await.unwrap_err();
    assert_eq!(error.explain().exit, Exit::Configuration);
    assert_eq!(steps(&server), ["take the Lease", "refresh prod-root", "give up the Lease"]);

    let deny = json!({
        "kind": "deny", "schedule": "* * * * *", "duration": "24h", "applications": ["b"],
    });
    server.put(PROJECT, json!({ "spec": { "syncWindows": [deny] } }));
    let warnings = RefCell::<Vec<String>>::default();
    let updates = |update| {
        if let RunUpdate::Warning(warning) = update {
            warnings.borrow_mut().push(warning);
        }
    };
    let run = deploy(&server).run(&updates);
    let waited = tokio::time::timeout(Duration::from_secs(600), run).await;
    assert!(waited.is_err(), "it waits for the window to end");
    let window = "the sync window `deny * * * * *` for 24h is open";
    let told = ["cannot sync `b` now", "`b` waits to be synced"];
    assert_eq!(*warnings.borrow(), told.map(|told| format!("{told}: {window}")));
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_removed_while_generators_are_synced_is_set_again() {
    let server = argocd::server(&["a", "b"]);
    let syncs_root = |asked: &Asked| {
        asked.path.contains("applications/prod-root") && !asked.body["operation"].is_null()
    };
    let late = Answer::After(Duration::from_secs(8), Box::new(Answer::refused(400, "no")));
    server.next_where(syncs_root, late);
    let removes = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        server.put(PROJECT, json!({ "spec": {} }));
    };
    let (ended, ()) = tokio::join!(run(&server), removes);
    ended.unwrap_err();
    let held = |step: &&String| *step == r#"hold ["a","b"]"#;
    assert_eq!(steps(&server).iter().filter(held).count(), 2, "{:?}", steps(&server));
}

const SHOP: &str = "/api/v1/namespaces/shop";

async fn graph(server: &Server) -> DeployedGraph {
    let store = GraphStore::new(&server.client(), "argocd", &testkit::platform().name);
    store.read().await.unwrap().unwrap()
}

/// `a` is meant for the namespace `shop`.
fn with_namespace() -> Server {
    let server = argocd::server(&[]);
    for name in ["a", "b"] {
        server.put(&argocd::application(name), argocd::unsynced("apps"));
    }
    move_to(&server, "a", "shop");
    server
}

fn move_to(server: &Server, app: &str, namespace: &str) {
    let path = argocd::application(app);
    let mut application = server.get(&path).unwrap();
    let destination = json!({ "name": "in-cluster", "namespace": namespace });
    application["spec"]["destination"] = destination;
    server.put(&path, application);
}

/// The deploy loop goes by it.
#[tokio::test(start_paused = true)]
async fn a_revision_is_deployed_once_a_run_of_the_whole_platform_has_succeeded() {
    let server = argocd::server(&["a", "b"]);
    let only_a: Scope = "app:a".parse().unwrap();
    deploy_scope(&server, &only_a).run(&|_| {}).await.unwrap();
    assert_eq!(graph(&server).await.deployed, None, "a part of it is not all");
    run(&server).await.unwrap();
    let deployed = graph(&server).await.deployed;
    assert!(deployed.is_some());
    deploy_scope(&server, &only_a).run(&|_| {}).await.unwrap();
    assert_eq!(graph(&server).await.deployed, deployed, "nothing has changed");
    let mut other = graph(&server).await;
    other.deployed = Some("another".to_owned());
    GraphStore::new(&server.client(), "argocd", &testkit::platform().name)
        .write(&other)
        .await
        .unwrap();
    deploy_scope(&server, &only_a).run(&|_| {}).await.unwrap();
    assert_eq!(graph(&server).await.deployed, None, "a part of it is at another revision now");
}

#[tokio::test(start_paused = true)]
async fn what_comes_with_an_app_is_kept_with_its_uid_when_the_app_is_done() {
    let server = with_namespace();
    assert_eq!(run(&server).await.unwrap(), Verdict::Succeeded);
    let came = graph(&server).await.came.unwrap().namespaces;
    let uid = server.get(SHOP).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    assert_eq!(came, [("shop".to_owned(), uid)].into());
    // Somebody makes it anew.
    server.put(SHOP, json!({}));
    assert_eq!(run(&server).await.unwrap(), Verdict::Succeeded);
    assert_eq!(graph(&server).await.came.unwrap().namespaces, came);
}

#[tokio::test(start_paused = true)]
async fn what_is_there_when_an_app_first_comes_to_it_is_not_the_apps() {
    let server = with_namespace();
    server.put(SHOP, json!({}));
    assert_eq!(run(&server).await.unwrap(), Verdict::Succeeded);
    // Since the first deployment, somebody has made a namespace that an app moves to.
    server.put(&SHOP.replace("shop", "theirs"), json!({}));
    move_to(&server, "b", "theirs");
    assert_eq!(run(&server).await.unwrap(), Verdict::Succeeded);
    let graph = graph(&server).await;
    assert_eq!(graph.came.unwrap().namespaces, [].into());
    assert_eq!(graph.before.unwrap().namespaces, ["shop".to_owned()].into());
    assert_eq!(graph.appeared.namespaces, ["theirs".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn what_came_and_cannot_be_looked_at_after_the_run_is_said() {
    for (code, said) in [(403, false), (500, true)] {
        let server = with_namespace();
        let mut lists = 0;
        let second = move |asked: &Asked| {
            lists += usize::from(asked.path.starts_with("/api/v1/namespaces?"));
            lists == 2
        };
        server.next_where(second, Answer::refused(code, "no"));
        assert_eq!(run(&server).await.is_err(), said, "{code}");
        let came = graph(&server).await.came.unwrap();
        assert!(came.namespaces.is_empty(), "{code}: {came:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_project_of_another_platform_is_left_alone() {
    let server = argocd::server(&["a", "b"]);
    let labels = json!({ "tiphys.dev/platform": "first" });
    server.put(PROJECT, json!({ "metadata": { "labels": labels }, "spec": {} }));
    let error = run(&server).await.unwrap_err().explain();
    assert_eq!(error.exit, Exit::Configuration);
    assert_eq!(error.what, "the AppProject `apps` belongs to another platform, not to `prod`");
    assert_eq!(steps(&server), ["take the Lease", "give up the Lease"]);
}
