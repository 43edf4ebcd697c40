//! How long an ApplicationSet is waited for, and what is said meanwhile.

use std::cell::RefCell;

use http::Method;
use tiphys_cluster::scripted::Answer;
use tiphys_model::{Exit, Explain};

use super::*;
use crate::generators::tests::Bench;
use crate::testkit::argocd::{application, unsynced};
use tiphys_cluster::scripted::{REFUSALS, Server};

const SET: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/stacks";
const UNANSWERED: &str = "waiting for the ApplicationSet controller to answer for `stacks`";

/// A set that its controller was content with before, and two Applications of it: an app, and a
/// generator.
fn server() -> Server {
    let server = Server::default();
    server.put(SET, json!({ "spec": {}, "status": status(None) }));
    for (name, project) in [("a", "apps"), ("stack", "roots")] {
        let mut child = unsynced(project);
        child["metadata"] = json!({ "ownerReferences": [{
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "name": "stacks", "uid": "u",
        }] });
        server.put(&application(name), child);
    }
    server.put(&application("other"), unsynced("roots"));
    server
}

fn status(error: Option<&str>) -> Value {
    let occurred = if error.is_some() { "True" } else { "False" };
    let up_to_date = if error.is_some() { "False" } else { "True" };
    json!({ "conditions": [
        { "type": "ErrorOccurred", "status": occurred, "message": error },
        { "type": "ResourcesUpToDate", "status": up_to_date },
    ] })
}

/// What its controller does at the end of its work.
fn answer(server: &Server) {
    let mut set = server.get(SET).unwrap();
    set["metadata"]["annotations"] = json!({});
    server.put(SET, set);
}

/// How it ends, what was said until then, and how long it took.
async fn settle(server: &Server) -> (Result<Vec<String>, GeneratorError>, Vec<String>, Duration) {
    let bench = Bench::new(server).await;
    let notes = RefCell::new(Vec::new());
    let began = Instant::now();
    let note = |text| notes.borrow_mut().push(text);
    let ended = bench.generators(&note).settle("stacks").await;
    (ended, notes.take(), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_answers_is_asked_once_and_nothing_is_said() {
    let server = server();
    server.control(|objects, path| {
        let mut set = objects.get(path).unwrap();
        assert!(!set["metadata"]["annotations"][REFRESH].is_null());
        set["metadata"]["annotations"] = json!({});
        objects.put(path, set);
    });
    let (settled, notes, took) = settle(&server).await;
    assert_eq!(settled.unwrap(), ["a", "stack"], "what it has made");
    assert_eq!(server.writes(), ["PATCH applicationsets/stacks"]);
    assert!(notes.is_empty() && took < SAY_AFTER, "{notes:?} {took:?}");
}

#[tokio::test(start_paused = true)]
async fn without_its_controller_a_set_is_never_settled() {
    let server = server();
    let (error, notes, took) = settle(&server).await;
    let told = error.unwrap_err().explain();
    assert_eq!(told.exit, Exit::Failed);
    let why = "after 120 s: the ApplicationSet controller has not answered a refresh";
    assert_eq!((&*told.what, &*told.why), ("the ApplicationSet `stacks` is not up to date", why));
    assert!(told.next.unwrap().starts_with("check that it is running"));
    assert_eq!(notes, [UNANSWERED], "said once");
    assert!(took > SETS_TIMEOUT && took < SETS_TIMEOUT + 2 * POLL, "{took:?}");
    assert_eq!(server.writes().len(), 1, "asked once: each change would make it begin anew");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_comes_back_ends_the_wait() {
    let server = server();
    let comes_back = async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        answer(&server);
    };
    let ((settled, notes, took), ()) = tokio::join!(settle(&server), comes_back);
    assert_eq!(settled.unwrap(), ["a", "stack"]);
    assert_eq!(notes, [UNANSWERED]);
    assert!(took < Duration::from_secs(101), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_fails_says_why_and_is_asked_again() {
    let server = server();
    server.put(SET, json!({ "spec": {}, "status": status(Some("no such branch")) }));
    let told = settle(&server).await.0.unwrap_err().explain();
    assert_eq!(told.exit, Exit::Failed);
    assert_eq!(
        told.why,
        "after 120 s: the ApplicationSet controller has not finished a refresh; it reports: no \
         such branch"
    );
    assert_eq!(told.next.unwrap(), "fix the ApplicationSet, then run the same command again");
    let asked = server.asked().into_iter().filter(|asked| asked.method == Method::PATCH);
    let asked: Vec<Value> =
        asked.map(|asked| asked.body["metadata"]["annotations"][REFRESH].clone()).collect();
    let each_is_new = asked.windows(2).all(|two| two[0] != two[1]);
    assert!(asked.len() == 6 && each_is_new, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn what_an_answered_set_lacks_is_said_and_awaited() {
    let answering = |objects: &mut tiphys_cluster::scripted::Objects<'_>, path: &str| {
        let mut set = objects.get(path).unwrap();
        set["metadata"]["annotations"] = json!({});
        objects.put(path, set);
    };
    let lack = "its controller reports: no cluster";
    let server = server();
    server.put(SET, json!({ "spec": {}, "status": status(Some("no cluster")) }));
    server.control(answering);
    let (error, notes, took) = settle(&server).await;
    let told = error.unwrap_err().explain();
    assert_eq!((told.exit, told.why), (Exit::NotFound, format!("after 120 s: {lack}")));
    assert_eq!(notes, [format!("waiting for the ApplicationSet `stacks`: {lack}")]);
    assert!(took > SETS_TIMEOUT && took < SETS_TIMEOUT + 2 * ROUND, "{took:?}");

    let repaired = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.put(SET, json!({ "spec": {}, "status": status(None) }));
    };
    let ((settled, notes, _), ()) = tokio::join!(settle(&server), repaired);
    assert_eq!((settled.unwrap(), notes.len()), (vec!["a".to_owned(), "stack".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_is_refused_is_said() {
    for (code, exit) in REFUSALS {
        let server = server();
        server.next(Method::PATCH, "applicationsets/stacks", Answer::refused(code, "no"));
        let error = settle(&server).await.0.unwrap_err();
        assert_eq!(error.explain().exit, exit, "{code}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn rolling_sync_is_refused_before_anything_is_asked() {
    let server = server();
    for (strategy, refused) in [("RollingSync", true), ("AllAtOnce", false)] {
        server.put(SET, json!({ "spec": { "strategy": { "type": strategy } } }));
        let error = settle(&server).await.0.unwrap_err();
        let found = matches!(&error, GeneratorError::RollingSync { set } if set == "stacks");
        assert_eq!((found, server.writes().is_empty()), (refused, refused), "{error}");
    }
}

#[test]
fn what_argo_cd_refuses_to_render_for_good_is_said_at_once() {
    let refused = |refusal| CallError::Refused { refusal, message: "permission denied".to_owned() };
    for (error, lasting) in [
        (refused(Refusal::Forbidden), true),
        (refused(Refusal::Unauthenticated), true),
        (refused(Refusal::NotFound), true),
        (refused(Refusal::Other), false),
        (CallError::Unanswered { message: "unable to generate".to_owned() }, false),
    ] {
        assert_eq!(is_lasting(&error), lasting, "{error:?}");
    }
    let source = refused(Refusal::Forbidden);
    let told = GeneratorError::Render { set: "stacks".to_owned(), source }.explain();
    assert_eq!(told.exit, Exit::Credentials);
    let what = "cannot render the Applications of the ApplicationSet `stacks`";
    assert_eq!((&*told.what, &*told.why), (what, "permission denied"));
    assert_eq!(told.next.unwrap(), "run `tiphys configure` to set it up");
}
