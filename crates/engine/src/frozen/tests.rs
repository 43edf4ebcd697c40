//! That what is frozen ends, in order, and that nobody waits for ever.

use http::Method;
use serde_json::json;
use tiphys_cluster::names::Purpose;
use tiphys_cluster::scripted::Answer;
use tiphys_model::{Exit, Explain};

use super::*;
use crate::testkit;
use crate::testkit::argocd::{self, application, freeze};
use tiphys_cluster::scripted::Server;

fn apps(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Both apps are held, and the operations of these are frozen.
async fn server(frozen: &[&str]) -> (Server, Hold) {
    let server = argocd::server(&[]);
    let hold = Hold::new(&server.client(), &testkit::platform().argocd, "run-1");
    for app in ["a", "b"] {
        server.put(&application(app), argocd::unsynced("apps"));
        hold.hold_now(app).await.unwrap();
    }
    for app in frozen {
        freeze(&server, app);
    }
    (server, hold)
}

async fn end(server: &Server, hold: &Hold, of: &[&str]) -> Result<BTreeSet<String>, HoldError> {
    let client = server.client();
    let argocd = ArgoCdClient::new(&client, &testkit::platform(), Purpose::Deploy).await.unwrap();
    let applications = Applications::of(&client, &testkit::platform().argocd);
    let frozen = FrozenOperations { hold, applications: &applications, argocd: &argocd };
    frozen.end(&apps(of)).await
}

#[test]
fn it_is_terminated_before_the_window_lets_it_go() {
    let seen = |automated: bool, phase: Option<&str>| -> Application {
        let state = phase.map(|phase| json!({ "phase": phase }));
        serde_json::from_value(json!({
            "metadata": { "name": "a" }, "spec": {}, "status": { "operationState": state },
            "operation": { "initiatedBy": { "automated": automated } },
        }))
        .unwrap()
    };
    for (held, phase, expected) in [
        (true, None, Next::Terminate),
        (true, Some("Running"), Next::Terminate),
        (true, Some("Terminating"), Next::Release),
        (false, Some("Terminating"), Next::Wake),
        (false, Some("Running"), Next::Nothing),
        (false, None, Next::Nothing),
    ] {
        assert_eq!(next(&seen(true, phase), held), expected, "{held} {phase:?}");
        assert_eq!(next(&seen(false, phase), held), Next::Nothing, "somebody asked for it");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_frozen_ends_without_being_applied_and_others_stay_held() {
    let (server, hold) = server(&["b"]).await;
    let began = Instant::now();
    assert_eq!(end(&server, &hold, &["a", "b"]).await.unwrap(), apps(&["b"]));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let b = server.get(&application("b")).unwrap();
    assert_eq!(
        (&b["operation"], &b["status"]["sync"]["status"]),
        (&json!(null), &json!("OutOfSync"))
    );
    assert_eq!(b["status"]["operationState"]["phase"], "Failed");
    assert_eq!(hold.held().await.unwrap(), apps(&["a"]));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_where_nothing_is_frozen() {
    let (server, hold) = server(&["b"]).await;
    let before = server.writes().len();
    assert_eq!(end(&server, &hold, &["a"]).await.unwrap(), apps(&[]));
    hold.release_batched("b").await.unwrap();
    assert_eq!(end(&server, &hold, &["a", "b"]).await.unwrap(), apps(&[]));
    assert_eq!(server.writes().len(), before + 1, "the release");
}

#[tokio::test(start_paused = true)]
async fn odd_answers_are_passed_over() {
    for (method, path) in [
        (Method::GET, "applications?"),
        (Method::PATCH, "applications/b"),
        (Method::GET, "applications/b"),
        (Method::PATCH, "appprojects/apps"),
    ] {
        for code in [403, 409, 500, 503] {
            let (server, hold) = server(&["b"]).await;
            server.next(method.clone(), path, Answer::refused(code, "odd"));
            assert_eq!(end(&server, &hold, &["b"]).await.unwrap(), apps(&["b"]), "{code} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_ends_is_named_within_two_minutes_and_held_again() {
    let (server, hold) = server(&["b"]).await;
    // A controller that is away.
    server.control(|_, _| {});
    let began = Instant::now();
    let error = end(&server, &hold, &["a", "b"]).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    assert_eq!(error.explain().exit, Exit::Failed);
    assert!(error.explain().why.contains("`b`"), "{error}");
    assert!(error.explain().next.is_some_and(|next| next.contains("controller")), "{error}");
    assert_eq!(hold.held().await.unwrap(), apps(&["a", "b"]));
}
