//! In which order a teardown asks for things, and what it leaves whatever the end.

mod containers;

use std::time::Duration;

use http::Method;
use serde_json::json;
use tiphys_cluster::ObjectName;
use tiphys_cluster::scripted::{Answer, Asked};
use tiphys_model::{Exit, Explain, Scope};

use super::*;
use crate::testkit;
use crate::testkit::argocd::{self, LEASE, PROJECT, ROOT, application, holder, steps};
use tiphys_cluster::scripted::{self, Meant, Server};

/// A platform with both apps, and what a deployment has kept of it.
async fn deployed() -> (Server, Teardown) {
    let server = argocd::server(&[]);
    for path in ["/api", "/apis"] {
        server.put(path, json!({ "kind": "APIGroupDiscoveryList", "items": [] }));
    }
    for name in ["a", "b"] {
        server.put(&application(name), argocd::unsynced("apps"));
    }
    let platform = testkit::platform();
    let plan = tiphys_plan::plan(&platform, &Scope::Platform).unwrap();
    let mut graph = DeployedGraph::new(&platform, None);
    graph.plan(&platform, &plan, None);
    let store = GraphStore::new(&server.client(), "argocd", &platform.name);
    store.write(&graph).await.unwrap();
    let teardown = Teardown {
        engine: Engine::Local,
        client: server.client(),
        platform: Arc::new(platform),
        graph: Some(graph),
        plan: Arc::new(plan),
        extent: Extent::Platform,
        identity: "us".to_owned(),
        options: TeardownOptions { keep_primitives: true, ..TeardownOptions::default() },
    };
    (server, teardown)
}

async fn run(teardown: Teardown) -> Result<Verdict, TeardownError> {
    teardown.run(&|_| {}).await.map(|torn_down| torn_down.verdict)
}

/// What it was asked, without what stood at the beginning.
fn asked(server: &Server) -> Vec<String> {
    steps(server).split_off(1)
}

/// What comes before the first app goes.
const BEFORE: [&str; 4] =
    ["take the Lease", "keep the graph", r#"hold ["a","b"]"#, "delete prod-root"];
/// In the reverse of the order in which they are deployed.
const APPS: [&str; 3] = ["delete b", "delete a", "keep the graph"];
const AFTER: [&str; 3] = ["hold nothing", "forget the graph", "remove the Lease"];

#[tokio::test(start_paused = true)]
async fn lease_graph_hold_generators_apps_and_at_last_the_graph_and_the_lease() {
    let (server, teardown) = deployed().await;
    assert_eq!(run(teardown).await.unwrap(), Verdict::Succeeded);
    assert_eq!(asked(&server), [&BEFORE[..], &APPS, &AFTER].concat());
    assert_eq!(server.get(LEASE), None);
}

#[tokio::test(start_paused = true)]
async fn apps_go_from_other_namespaces_unless_a_name_is_there_twice() {
    for (there, expected) in [
        (&["a", "team/b"][..], Ok(Verdict::Succeeded)),
        (&["a", "b", "team/b"], Err(Exit::Configuration)),
    ] {
        let (server, mut teardown) = deployed().await;
        teardown.platform = Arc::new(testkit::platform_in("team"));
        server.change(|objects| objects.remove(&application("b")));
        for name in there {
            server.put(&application(name), argocd::unsynced("apps"));
        }
        let ended = run(teardown).await.map_err(|error| error.explain().exit);
        assert_eq!(ended, expected, "{there:?}");
        let left: Vec<&&str> =
            there.iter().filter(|name| server.get(&application(name)).is_some()).collect();
        assert_eq!(left.len(), if ended.is_ok() { 0 } else { 3 }, "{left:?}");
    }
}

/// Whatever goes wrong before the first app goes, nothing that comes after it is asked for, and
/// the Lease is given up.
#[tokio::test(start_paused = true)]
async fn what_goes_wrong_before_the_first_app_goes_ends_it_there_and_gives_up_the_lease() {
    // What is refused, and how many steps have been asked for then.
    for (method, path, steps) in [
        (Method::POST, "leases", 1),
        (Method::GET, "configmaps/tiphys-prod", 1),
        (Method::GET, "applications?", 1),
        (Method::GET, "applicationsets", 1),
        (Method::PATCH, "configmaps/tiphys-prod", 2),
        (Method::GET, "appprojects/apps", 1),
        (Method::PATCH, "appprojects/apps", 3),
        (Method::DELETE, ROOT, 4),
    ] {
        for (answer, exit) in scripted::failures() {
            let (server, teardown) = deployed().await;
            let writes_hold = method == Method::PATCH && path.contains("appprojects");
            // Such a write is tried three times.
            for _ in 0..if writes_hold { 3 } else { 1 } {
                server.next(method.clone(), path, answer.clone());
            }
            let error = run(teardown).await.unwrap_err();
            let taken = usize::from(method != Method::POST);
            let expected = [&BEFORE[..steps], &["give up the Lease"][..taken]].concat();
            assert_eq!(error.explain().exit, exit, "{method} {path} {answer:?}: {error}");
            assert_eq!(asked(&server), expected, "{method} {path} {answer:?}");
            assert_eq!(holder(&server), None, "{method} {path} {answer:?}");
        }
    }
}

/// A copy of a platform file, with another name in it.
#[tokio::test(start_paused = true)]
async fn a_project_of_another_platform_is_left_alone() {
    let (server, teardown) = deployed().await;
    let labels = json!({ "tiphys.dev/platform": "first" });
    server.put(PROJECT, json!({ "metadata": { "labels": labels }, "spec": {} }));
    assert_eq!(teardown.preview().await.unwrap_err().explain().exit, Exit::Configuration);
    let error = run(teardown).await.unwrap_err().explain();
    assert_eq!(error.exit, Exit::Configuration);
    assert!(error.why.ends_with("is `first`"), "{error}");
    assert_eq!(asked(&server), ["take the Lease", "give up the Lease"]);
}

/// As an API server answers that does not know the kind.
#[tokio::test(start_paused = true)]
async fn without_argo_cd_nothing_is_left_to_claim() {
    let (server, teardown) = deployed().await;
    server.next(Method::GET, "appprojects/apps", Answer::refused(404, "404 page not found"));
    assert_eq!(teardown.preview().await.unwrap().apps, ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn what_argo_cd_deletes_only_when_it_is_approved_is_shown_for_any_extent() {
    let (server, teardown) = deployed().await;
    let data = json!({
        "kind": "Secret", "namespace": "shop", "name": "data", "requiresDeletionConfirmation": true,
    });
    let plain = json!({ "kind": "Secret", "namespace": "shop", "name": "plain" });
    let mut app = argocd::unsynced("apps");
    app["status"]["resources"] = json!([plain, data]);
    server.put(&application("b"), app);
    let [group, kind, namespace, name] = ["", "Secret", "shop", "data"].map(str::to_owned);
    let expected = [("b".to_owned(), vec![ObjectName { group, kind, namespace, name }])].into();
    assert_eq!(teardown.preview().await.unwrap().unconfirmed, expected);
    let apps = Teardown { extent: Extent::Apps, ..teardown };
    assert_eq!(apps.preview().await.unwrap().unconfirmed, expected);
}

#[tokio::test(start_paused = true)]
async fn an_app_that_has_moved_to_another_platform_stays() {
    let (server, teardown) = deployed().await;
    server.put(&application("b"), argocd::unsynced("another"));
    assert_eq!(teardown.preview().await.unwrap().apps, ["a"]);
    assert_eq!(run(teardown).await.unwrap(), Verdict::Succeeded);
    assert!(server.get(&application("b")).is_some());
    assert!(server.get(&application("a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_say_what_it_has_is_left_as_it_is() {
    let (server, teardown) = deployed().await;
    server.next_where(|asked| asked.path == "/apis", Answer::refused(500, "no"));
    assert_eq!(run(teardown).await.unwrap_err().explain().exit, Exit::Failed);
    assert_eq!(asked(&server), ["take the Lease", "give up the Lease"]);
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_after_the_last_app_has_gone_is_said_and_gives_up_the_lease() {
    let mut writes = 0;
    let second_graph = move |asked: &Asked| {
        writes += usize::from(asked.method == Method::PATCH && asked.path.contains("configmaps"));
        writes == 2
    };
    let released = |asked: &Asked| {
        let window = asked.body.pointer("/spec/syncWindows");
        asked.method == Method::PATCH && window.is_some_and(serde_json::Value::is_null)
    };
    let forgotten =
        |asked: &Asked| asked.method == Method::DELETE && asked.path.contains("configmaps");
    let cases: [(Meant, usize); 3] =
        [(Box::new(second_graph), 0), (Box::new(released), 1), (Box::new(forgotten), 2)];
    for (meant, after) in cases {
        let (server, teardown) = deployed().await;
        server.next_where(meant, Answer::refused(403, "no"));
        assert_eq!(run(teardown).await.unwrap_err().explain().exit, Exit::Credentials);
        let expected = [&BEFORE[..], &APPS, &AFTER[..after], &["give up the Lease"]].concat();
        assert_eq!(asked(&server), expected);
    }
    let (server, teardown) = deployed().await;
    server.next(Method::DELETE, "leases", Answer::refused(403, "no"));
    let error = run(teardown).await.unwrap_err();
    assert!(error.explain().what.contains("Lease"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn single_apps_go_without_the_generators_and_stay_held() {
    let (server, teardown) = deployed().await;
    let apps = Teardown { extent: Extent::Apps, ..teardown };
    assert_eq!(run(apps).await.unwrap(), Verdict::Succeeded);
    assert_eq!(asked(&server), [&BEFORE[..3], &APPS, &["give up the Lease"]].concat());
    let (server, teardown) = deployed().await;
    let pruned = Teardown { extent: Extent::Pruned, ..teardown };
    assert_eq!(run(pruned).await.unwrap(), Verdict::Succeeded);
    let expected = [&BEFORE[..3], &APPS, &["hold nothing", "give up the Lease"]].concat();
    assert_eq!(asked(&server), expected);
}

#[tokio::test(start_paused = true)]
async fn without_a_project_nothing_is_held_and_all_goes_on() {
    let (server, teardown) = deployed().await;
    server.change(|objects| objects.remove(PROJECT));
    let apps = Teardown { extent: Extent::Apps, ..teardown };
    assert_eq!(run(apps).await.unwrap(), Verdict::Succeeded);
    assert_eq!(asked(&server), [&BEFORE[..2], &APPS, &["give up the Lease"]].concat());
}

#[tokio::test(start_paused = true)]
async fn a_graph_that_changed_while_the_lease_was_awaited_ends_it() {
    let (server, teardown) = deployed().await;
    let store = teardown.store();
    let mut graph = teardown.graph.clone().unwrap();
    graph.removed("b");
    store.write(&graph).await.unwrap();
    let error = run(teardown).await.unwrap_err();
    assert!(error.explain().what.contains("graph changed"), "{error}");
    assert_eq!(asked(&server), ["take the Lease", "give up the Lease"]);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_left_not_even_the_lease_is_taken() {
    let (server, teardown) = deployed().await;
    for name in [ROOT, "a", "b"] {
        server.change(|objects| objects.remove(&application(name)));
    }
    let nothing = Teardown { graph: None, ..teardown };
    assert_eq!(run(nothing).await.unwrap(), Verdict::Succeeded);
    assert_eq!(asked(&server), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn whoever_loses_the_lease_while_it_holds_the_apps_asks_for_nothing_more() {
    let (server, teardown) = deployed().await;
    let slow = Answer::After(Duration::from_secs(60), Box::new(Answer::Cut));
    server.next(Method::PATCH, "appprojects/apps", slow);
    let take_over = async {
        tokio::time::sleep(Duration::from_secs(8)).await;
        server.put(LEASE, json!({ "spec": { "holderIdentity": "another" } }));
    };
    let (ended, ()) = tokio::join!(run(teardown), take_over);
    assert_eq!(ended.unwrap_err().explain().exit, Exit::Held);
    assert_eq!(asked(&server), [&BEFORE[..3], &["give up the Lease"]].concat());
    assert_eq!(holder(&server).as_deref(), Some("another"), "it is not taken from them");
}

/// A run was killed when it held the apps, and one of them was being synced by Argo CD.
#[tokio::test(start_paused = true)]
async fn what_an_earlier_hold_has_frozen_is_freed() {
    let (server, teardown) = deployed().await;
    Hold::new(&server.client(), &testkit::platform().argocd, "killed").hold_now("b").await.unwrap();
    argocd::freeze(&server, "b");
    let began = tokio::time::Instant::now();
    assert_eq!(run(teardown).await.unwrap(), Verdict::Succeeded);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(server.get(&application("b")), None);
}
