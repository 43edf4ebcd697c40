//! Runs against a server whose answers are odd, or that hides what happens.

mod windows;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tiphys_argocd::{Applications, ArgoCdClient};
use tiphys_cluster::names::Purpose;
use tiphys_cluster::scripted::{Answer, Asked};
use tiphys_cluster::{Kinds, Place};
use tiphys_evidence::criteria::Prober;
use tiphys_model::{Exit, Explain, Platform, Scope};
use tiphys_run::{Action, Clock};
use tiphys_state::hold::Hold;
use tokio::time::Instant;

use super::*;
use crate::app_resources::AppResources;
use crate::testkit;
use crate::testkit::argocd::{self, APPLICATIONS, application};
use tiphys_cluster::scripted::Server;

const JOB: &str = "/apis/batch/v1/namespaces/db/jobs/clean";

/// With both apps of the test platform, and Jobs.
fn server() -> Server {
    let server = argocd::server(&[]);
    let jobs = json!({
        "resource": "jobs", "scope": "Namespaced", "singularResource": "job",
        "responseKind": { "group": "batch", "version": "v1", "kind": "Job" },
        "verbs": ["get", "list", "delete"],
    });
    let batch = json!({
        "metadata": { "name": "batch" }, "versions": [{ "version": "v1", "resources": [jobs] }],
    });
    server.put("/api", json!({ "kind": "APIGroupDiscoveryList", "items": [] }));
    server.put("/apis", json!({ "kind": "APIGroupDiscoveryList", "items": [batch] }));
    for name in ["a", "b"] {
        server.put(&application(name), argocd::unsynced("apps"));
    }
    server
}

/// How a run ended, and how long it took.
struct Ended {
    verdict: Result<Verdict, RunError>,
    took: Duration,
    /// Apps that were removed, in order.
    removed: Vec<usize>,
    notes: Vec<String>,
    warnings: Vec<String>,
}

impl Ended {
    fn exit(self) -> Exit {
        self.verdict.unwrap_err().explain().exit
    }
}

async fn run(server: &Server, action: Action) -> Ended {
    Box::pin(run_platform(server, action, testkit::platform())).await
}

async fn run_platform(server: &Server, action: Action, platform: Platform) -> Ended {
    let client = server.client();
    let plan = Arc::new(tiphys_plan::plan(&platform, &Scope::Platform).unwrap());
    let kinds = Kinds::discover(&client).await.unwrap();
    let hold = Arc::new(Hold::new(&client, &testkit::platform().argocd, "run"));
    let teardown = action == Action::Teardown;
    for name in ["a", "b"] {
        hold.hold_now(name).await.unwrap();
    }
    let setup = Setup {
        argocd: ArgoCdClient::new(&client, &platform, Purpose::Deploy).await.unwrap(),
        app_resources: teardown
            .then(|| Arc::new(AppResources::new(&client, &platform.argocd, kinds))),
        client: client.clone(),
        prober: (!teardown).then(|| Prober::new(client.clone(), Place::Outside)),
        applications: Applications::of(&client, &platform.argocd),
        plan,
        action,
        hold,
        held: true,
        clock: Clock::default(),
        run: "run".to_owned(),
    };
    let lease = Lease::acquire(client, "argocd", "tiphys-prod", "us", action.as_str(), |_| {});
    let lease = lease.await.unwrap();
    let mut signals = Signals::unsent();
    let (removed, notes) = (RefCell::default(), RefCell::default());
    let warnings = RefCell::<Vec<String>>::default();
    let events = |_, event: Event| {
        if let Event::Removed { app } = event {
            RefCell::<Vec<usize>>::borrow_mut(&removed).push(app.position());
        }
    };
    let updates = |update: RunUpdate| match update {
        RunUpdate::Note(note) => RefCell::<Vec<String>>::borrow_mut(&notes).push(note),
        RunUpdate::Warning(warning) => warnings.borrow_mut().push(warning),
        _ => {}
    };
    let began = Instant::now();
    let run = super::run(setup, None, &lease, &mut signals, &events, &updates);
    let limit = Duration::from_secs(3600);
    let verdict = tokio::time::timeout(limit, run).await.expect("it ends");
    let took = began.elapsed();
    let (removed, notes) = (removed.into_inner(), notes.into_inner());
    Ended { verdict, took, removed, notes, warnings: warnings.into_inner() }
}

/// Nothing happens to the second app when its turn comes; what it waits for is looked at all the
/// same.
#[tokio::test(start_paused = true)]
async fn an_app_is_probed_soon_when_another_makes_it_start() {
    let server = server();
    server.put(JOB, json!({ "status": { "succeeded": 1 } }));
    let resource = json!({ "name": "jobs", "kind": "Job", "namespaced": true, "verbs": ["get"] });
    server.put(
        "/apis/batch/v1",
        json!({ "kind": "APIResourceList", "groupVersion": "batch/v1", "resources": [resource] }),
    );
    let platform = || {
        testkit::platform_with(
            "{ name: b, dependsOn: [a], health: [{ resource: { apiVersion: batch/v1, kind: Job, \
             name: clean, namespace: db, expression: 'has(obj.status.succeeded)' } }] }",
        )
    };
    let first = Box::pin(run_platform(&server, Action::Deploy, platform())).await;
    assert_eq!(first.verdict.unwrap(), Verdict::Succeeded);
    server.change(|objects| {
        objects.put(JOB, json!({ "status": {} }));
        let mut a = objects.get(&application("a")).unwrap();
        a["status"]["sync"]["status"] = "OutOfSync".into();
        objects.put(&application("a"), a);
    });
    let ends = async {
        while server.get(&application("a")).unwrap()["status"]["sync"]["status"] != "Synced" {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.put(JOB, json!({ "status": { "succeeded": 1 } }));
    };
    let (again, ()) = tokio::join!(run_platform(&server, Action::Deploy, platform()), ends);
    assert_eq!(again.verdict.unwrap(), Verdict::Succeeded);
    assert!(again.took < Duration::from_secs(4), "{:?}", again.took);
}

fn watched(asked: &Asked) -> bool {
    asked.path.contains("applications?") && asked.path.contains("watch=true")
}

fn listed(asked: &Asked) -> bool {
    asked.path.contains("applications?") && !asked.path.contains("watch=true")
}

const ODD: [u16; 5] = [401, 403, 409, 500, 503];

/// A request after the run has begun.
fn in_run(method: Method, path: &str) -> impl FnMut(&Asked) -> bool + Send + use<> {
    let path = format!("/{path}");
    let mut begun = false;
    move |asked| {
        begun |= asked.path.contains("applications?");
        begun && asked.method == method && asked.path.contains(&path)
    }
}

/// A run goes well although one of its requests gets an odd answer.
async fn goes_well(action: Action, odd: &[(Method, &str)]) {
    for code in ODD {
        for (method, path) in odd {
            let server = server();
            let meant = in_run(method.clone(), path);
            server.next_where(meant, Answer::refused(code, "odd"));
            let ended = run(&server, action).await;
            let verdict = ended.verdict.unwrap_or_else(|error| panic!("{code} {path}: {error}"));
            assert_eq!(verdict, Verdict::Succeeded, "{code} {method} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_odd_answer_does_not_end_a_deployment() {
    let application = |method| (method, "applications/a");
    let requests = [
        application(Method::PATCH),
        application(Method::GET),
        (Method::PATCH, "appprojects/apps"),
        (Method::GET, "appprojects/apps"),
        (Method::GET, "applications?"),
    ];
    goes_well(Action::Deploy, &requests).await;
}

#[tokio::test(start_paused = true)]
async fn one_odd_answer_does_not_end_a_teardown() {
    let requests = [
        (Method::DELETE, "applications/b"),
        (Method::PATCH, "applications/b"),
        (Method::GET, "applications/b"),
        (Method::GET, "applications?"),
    ];
    goes_well(Action::Teardown, &requests).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_denied_once_goes_on() {
    for code in [401, 403, 410, 500, 503] {
        let server = server();
        server.next_where(listed, Answer::refused(code, "odd"));
        server.next_where(watched, Answer::refused(code, "odd"));
        assert_eq!(run(&server, Action::Deploy).await.verdict.unwrap(), Verdict::Succeeded);
    }
}

/// How a run ends if these requests are refused for good.
async fn refused(action: Action, code: u16, meant: fn(&Asked) -> bool) -> Ended {
    let server = server();
    for _ in 0..200 {
        server.next_where(meant, Answer::refused(code, "no"));
    }
    run(&server, action).await
}

#[tokio::test(start_paused = true)]
async fn what_lasts_ends_a_run_with_its_own_code() {
    let synced =
        |asked: &Asked| asked.method == Method::PATCH && asked.path.contains("/applications/a");
    let deleted =
        |asked: &Asked| asked.method == Method::DELETE && asked.path.contains("/applications/");
    let soon = Duration::from_secs(30);
    for code in [401, 403] {
        for meant in [listed, watched, synced] {
            let ended = refused(Action::Deploy, code, meant).await;
            assert!(ended.took >= Duration::from_secs(15) && ended.took < soon, "{:?}", ended.took);
            assert_eq!(ended.exit(), Exit::Credentials);
        }
        let ended = refused(Action::Teardown, code, deleted).await;
        assert!(ended.took <= Duration::from_secs(61), "{:?}", ended.took);
        assert_eq!(ended.exit(), Exit::Credentials);
    }
    for (code, exit) in [(500, Exit::Failed), (503, Exit::Unreachable)] {
        let ended = refused(Action::Deploy, code, listed).await;
        assert!(ended.took < Duration::from_secs(70), "{:?}", ended.took);
        assert_eq!(ended.exit(), exit);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_cannot_be_released_ends_a_run() {
    for (code, exit) in [(403, Exit::Credentials), (500, Exit::Failed)] {
        let server = server();
        for _ in 0..100 {
            let released = in_run(Method::PATCH, "appprojects/apps");
            server.next_where(released, Answer::refused(code, "no"));
        }
        let ended = run(&server, Action::Deploy).await;
        assert!(ended.took < Duration::from_secs(70), "{:?}", ended.took);
        assert_eq!(ended.exit(), exit);
    }
}

/// Applications vanish when they are deleted, and the watch does not tell. Returns whether one has.
fn hide_deletions(server: &Server) -> Arc<AtomicBool> {
    let gone = Arc::new(AtomicBool::new(false));
    let flag = gone.clone();
    server.control(move |objects, path| {
        // The finalizer is written first.
        if path.starts_with(APPLICATIONS) {
            objects.remove(path);
            flag.store(true, SeqCst);
        }
    });
    gone
}

#[tokio::test(start_paused = true)]
async fn an_application_that_only_a_look_misses_is_gone_once() {
    let server = server();
    hide_deletions(&server);
    let ended = run(&server, Action::Teardown).await;
    assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
    assert_eq!(ended.removed, [1, 0]);
    assert!(ended.took < Duration::from_secs(70), "{:?}", ended.took);
}

#[tokio::test(start_paused = true)]
async fn an_application_that_vanishes_while_the_watch_is_down_is_gone_once() {
    let within = Answer::Object(json!({
        "type": "ERROR",
        "object": { "status": "Failure", "code": 410, "reason": "Expired", "message": "old" },
    }));
    let expired = || Answer::refused(410, "old");
    for answers in [
        vec![expired()],
        vec![within.clone()],
        vec![Answer::Cut, Answer::Cut, within],
        vec![Answer::refused(503, "no"), Answer::refused(401, "no"), expired()],
    ] {
        let server = server();
        let gone = hide_deletions(&server);
        for answer in answers.iter().chain(&answers) {
            let gone = gone.clone();
            server.next_where(move |asked| watched(asked) && gone.load(SeqCst), answer.clone());
        }
        let ended = run(&server, Action::Teardown).await;
        assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
        assert_eq!(ended.removed, [1, 0]);
        // Before anybody looks.
        assert!(ended.took < Duration::from_secs(20), "{answers:?} {:?}", ended.took);
    }
}

/// What was seen last was not seen by the watch.
#[tokio::test(start_paused = true)]
async fn an_application_that_vanishes_after_a_look_is_gone() {
    let server = server();
    let gone = Arc::new(AtomicBool::new(false));
    let flag = gone.clone();
    server.control(move |objects, path| {
        if path == application("b") && !flag.swap(true, SeqCst) {
            let mut going = objects.get(path).unwrap();
            going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            objects.put(path, going);
        }
    });
    let stays =
        |asked: &Asked| asked.method == Method::DELETE && asked.path.contains("/applications/b");
    server.next_where(stays, Answer::Object(json!({ "kind": "Status", "status": "Success" })));
    let silent = Answer::After(Duration::from_secs(40), Box::new(Answer::refused(410, "old")));
    server.next_where(move |asked| watched(asked) && gone.load(SeqCst), silent);
    let vanishes = async {
        tokio::time::sleep(Duration::from_secs(35)).await;
        server.change(|objects| objects.remove(&application("b")));
    };
    let (ended, ()) = tokio::join!(run(&server, Action::Teardown), vanishes);
    assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
    assert_eq!(ended.removed, [1, 0]);
    assert!(ended.took < Duration::from_secs(55), "{:?}", ended.took);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_argo_cd_leaves_is_told_and_not_waited_for() {
    let server = server();
    let mut app = argocd::unsynced("apps");
    app["status"]["resources"] =
        json!([{ "group": "batch", "kind": "Job", "namespace": "db", "name": "clean" }]);
    server.put(&application("b"), app);
    let hook = json!({ "argocd.argoproj.io/hook": "PostDelete" });
    let labels: Value = json!({ "app.kubernetes.io/instance": "b" });
    server.put(JOB, json!({ "metadata": { "labels": labels, "annotations": hook } }));
    let ended = run(&server, Action::Teardown).await;
    assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
    let note = "Job/db/clean stays: it is a hook of `b` that Argo CD does not delete";
    assert_eq!(ended.notes, [note]);
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
}

#[tokio::test(start_paused = true)]
async fn what_an_app_in_another_namespace_has_applied_names_that_namespace() {
    // With the name alone, it is of an Application in Argo CD's own namespace.
    for (instance, is_its_own) in [("team_b", true), ("b", false)] {
        let server = server();
        let mut app = argocd::unsynced("apps");
        app["status"]["resources"] =
            json!([{ "group": "batch", "kind": "Job", "namespace": "db", "name": "clean" }]);
        server.change(|objects| objects.remove(&application("b")));
        server.put(&application("team/b"), app);
        let hook = json!({ "argocd.argoproj.io/hook": "PostDelete" });
        let labels = json!({ "app.kubernetes.io/instance": instance });
        server.put(JOB, json!({ "metadata": { "labels": labels, "annotations": hook } }));
        let platform = testkit::platform_in("team");
        let ended = Box::pin(run_platform(&server, Action::Teardown, platform)).await;
        assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
        assert_eq!(ended.removed, [1, 0]);
        assert_eq!(ended.notes.len(), usize::from(is_its_own), "{:?}", ended.notes);
    }
}

/// It began after the apps were held and before the controller had seen it.
#[tokio::test(start_paused = true)]
async fn an_operation_that_was_frozen_meanwhile_does_not_keep_an_app_from_going() {
    let server = server();
    argocd::freeze(&server, "b");
    let ended = run(&server, Action::Teardown).await;
    assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
    assert_eq!(ended.removed, [1, 0]);
    assert!(ended.took < Duration::from_secs(60), "{:?}", ended.took);
    let hold = Hold::new(&server.client(), &testkit::platform().argocd, "run");
    assert_eq!(hold.held().await.unwrap(), ["a", "b"].map(str::to_owned).into(), "as before");
}

#[tokio::test(start_paused = true)]
async fn an_app_that_is_skipped_is_left_without_a_frozen_operation() {
    let server = server();
    argocd::freeze(&server, "b");
    let mut hopeless = argocd::unsynced("apps");
    hopeless["status"]["conditions"] = json!([{ "type": "InvalidSpecError", "message": "no" }]);
    server.put(&application("a"), hopeless);
    let ended = run(&server, Action::Deploy).await;
    assert_eq!(ended.verdict.unwrap(), Verdict::Failed);
    assert_eq!(ended.notes, ["stopped the automated sync of `b`, which the hold had frozen"]);
    let b = server.get(&application("b")).unwrap();
    assert_eq!(
        (&b["operation"], &b["status"]["sync"]["status"]),
        (&json!(null), &json!("OutOfSync"))
    );
    let hold = Hold::new(&server.client(), &testkit::platform().argocd, "run");
    assert_eq!(hold.held().await.unwrap(), ["a", "b"].map(str::to_owned).into(), "as before");
}

/// When its turn comes, Argo CD finishes what it began.
#[tokio::test(start_paused = true)]
async fn what_is_frozen_is_finished_in_its_turn() {
    let server = server();
    argocd::freeze(&server, "b");
    let ended = run(&server, Action::Deploy).await;
    assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
    assert!(ended.took < Duration::from_secs(60), "{:?}", ended.took);
    let b = server.get(&application("b")).unwrap();
    let by = &b["status"]["operationState"]["operation"]["initiatedBy"];
    assert_eq!(by["automated"], true, "{by}");
}

/// Argo CD was quicker when the app was about to be synced.
#[tokio::test(start_paused = true)]
async fn what_slips_in_before_a_sync_and_is_frozen_is_finished() {
    let server = server();
    let refused = Arc::new(AtomicBool::new(false));
    let flag = refused.clone();
    let synced = move |asked: &Asked| {
        let meant = asked.path.contains("/applications/b") && !asked.body["operation"].is_null();
        flag.fetch_or(meant, SeqCst);
        meant
    };
    server.next_where(synced, Answer::refused(409, "the object has been modified"));
    let slips_in = async {
        while !refused.load(SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        argocd::freeze(&server, "b");
    };
    let (ended, ()) = tokio::join!(run(&server, Action::Deploy), slips_in);
    assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
    assert!(ended.took < Duration::from_secs(60), "{:?}", ended.took);
}
