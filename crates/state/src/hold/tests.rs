//! How we react to what an API server answers about the hold, and that nothing slips through.

mod races;
mod watched;

use std::sync::Mutex;

use http::Method;
use serde_json::{Value, json};
use tiphys_cluster::scripted::Answer;
use tiphys_model::{Exit, Explain};

use super::*;
use tiphys_cluster::scripted::{Objects, REFUSALS, Server};

const PROJECT: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/prod";
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";

/// A project with a destination, and the idle apps `a` and `b`.
fn server() -> Server {
    let server = Server::default();
    server.put(PROJECT, json!({ "spec": { "destinations": [{ "server": "*" }] } }));
    for app in ["a", "b"] {
        server.put(&path(app), json!({ "spec": { "project": "prod" } }));
    }
    server
}

fn path(app: &str) -> String {
    format!("{APPLICATIONS}/{app}")
}

pub(crate) fn argocd(projects: &[&str]) -> ArgoCd {
    ArgoCd {
        namespace: "argocd".to_owned(),
        application_namespaces: Vec::new(),
        projects: projects.iter().map(|project| (*project).to_owned()).collect(),
        root_project: "roots".to_owned(),
        has_root_app: false,
        access: tiphys_model::platform::ArgoCdAccess::default(),
        server: tiphys_model::ApiServer::default(),
        allowed: tiphys_model::platform::Allowed::default(),
    }
}

fn hold(server: &Server) -> Hold {
    Hold::new(&server.client(), &argocd(&["prod"]), "run-1")
}

fn apps(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Argo CD begins, or ends, a sync of its own.
fn automated(objects: &mut Objects<'_>, app: &str, begins: bool) {
    let mut object = objects.get(&path(app)).unwrap();
    object["operation"] =
        if begins { json!({ "initiatedBy": { "automated": true } }) } else { Value::Null };
    objects.put(&path(app), object);
}

async fn hold_both(server: &Server) -> Result<(), HoldError> {
    let terminate = async |app: &str| {
        server.change(|objects| automated(objects, app, false));
        Ok(())
    };
    let applications = Applications::of(&server.client(), &argocd(&["prod"]));
    hold(server).hold_when_idle(&apps(&["a", "b"]), &applications, terminate).await
}

fn held(server: &Server) -> BTreeSet<String> {
    let project = server.get(PROJECT).unwrap();
    assert_eq!(project["spec"]["destinations"], json!([{ "server": "*" }]), "it is not ours");
    windows::held(project["spec"]["syncWindows"].as_array().unwrap_or(&Vec::new()))
}

#[tokio::test(start_paused = true)]
async fn idle_apps_are_held_and_looked_at_before_and_after() {
    let server = server();
    hold_both(&server).await.unwrap();
    assert_eq!(held(&server), apps(&["a", "b"]));
    assert_eq!(
        server.requests(),
        ["GET applications", "GET appprojects/prod", "PATCH appprojects/prod", "GET applications",]
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_run_holds_is_not_written_again() {
    let server = server();
    hold_both(&server).await.unwrap();
    hold_both(&server).await.unwrap();
    assert_eq!(server.writes(), ["PATCH appprojects/prod"]);
}

#[tokio::test(start_paused = true)]
async fn an_automated_operation_is_awaited_and_then_terminated() {
    let server = server();
    server.change(|objects| automated(objects, "b", true));
    let began = Instant::now();
    hold_both(&server).await.unwrap();
    assert!(began.elapsed() > Duration::from_secs(120), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(125), "{:?}", began.elapsed());
    assert_eq!(held(&server), apps(&["a", "b"]));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_nobody_can_end_is_named_and_nothing_is_held() {
    let server = server();
    server.change(|objects| automated(objects, "b", true));
    let terminated = Mutex::new(0);
    let applications = Applications::of(&server.client(), &argocd(&["prod"]));
    let terminate = async |_: &str| {
        *terminated.lock().unwrap() += 1;
        Ok(())
    };
    let hold = hold(&server);
    let error = hold.hold_when_idle(&apps(&["a", "b"]), &applications, terminate).await;
    let error = error.unwrap_err();
    assert_eq!(error.explain().exit, Exit::Failed);
    assert!(error.explain().why.contains("`b`"), "{error}");
    assert!(*terminated.lock().unwrap() > 1, "it was asked again");
    assert_eq!(held(&server), apps(&[]));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_cannot_be_terminated_ends_it_with_the_reason() {
    let server = server();
    server.change(|objects| automated(objects, "a", true));
    let applications = Applications::of(&server.client(), &argocd(&["prod"]));
    let no = || CallError::Unanswered { message: "no".to_owned() };
    let hold = hold(&server);
    let ended = hold.hold_when_idle(&apps(&["a"]), &applications, async |_| Err(no())).await;
    assert!(
        matches!(ended, Err(HoldError::NotStopped { app, source }) if app == "a" && source == no())
    );
    assert!(server.writes().is_empty());
}

/// An automated operation begins whenever the project is written, so often.
fn slip_in(server: &Server, mut times: usize) {
    server.control(move |objects, written| {
        let held = objects.get(PROJECT).unwrap()["spec"].get("syncWindows").is_some();
        if written == PROJECT && held && times > 0 {
            times -= 1;
            automated(objects, "a", true);
        } else if written == PROJECT && !held {
            automated(objects, "a", false);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_slips_in_ends_outside_the_window_and_all_is_tried_again() {
    let server = server();
    slip_in(&server, 3);
    hold_both(&server).await.unwrap();
    assert_eq!(server.writes(), ["PATCH appprojects/prod"; 7], "three times set and undone");
    assert_eq!(held(&server), apps(&["a", "b"]));
}

#[tokio::test(start_paused = true)]
async fn whoever_is_late_each_time_gives_up_and_leaves_nothing_held() {
    let server = server();
    slip_in(&server, usize::MAX);
    let error = hold_both(&server).await.unwrap_err();
    assert!(error.explain().why.contains("each time"), "{error}");
    assert_eq!(held(&server), apps(&[]));
    assert_eq!(server.writes().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn undoing_leaves_alone_what_was_held_before_and_what_others_hold_meanwhile() {
    let server = server();
    hold(&server).hold_now("b").await.unwrap();
    let mut first = true;
    server.control(move |objects, written| {
        if written == PROJECT && std::mem::take(&mut first) {
            let mut project = objects.get(PROJECT).unwrap();
            project["spec"]["syncWindows"] =
                windows::holding(&[], &apps(&["a", "b", "c"]), "other");
            objects.put(PROJECT, project);
            automated(objects, "a", true);
        }
    });
    let applications = Applications::of(&server.client(), &argocd(&["prod"]));
    let no = async |_: &str| Err(CallError::Unanswered { message: "stop".to_owned() });
    let hold = hold(&server);
    hold.hold_when_idle(&apps(&["a", "b"]), &applications, no).await.unwrap_err();
    assert_eq!(held(&server), apps(&["b", "c"]));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_starts_it_over_from_what_is_there_now() {
    let server = server();
    server.next(Method::PATCH, "appprojects", Answer::refused(409, "modified"));
    let hold = hold(&server);
    hold.hold_now("a").await.unwrap();
    assert_eq!(held(&server), apps(&["a"]));
    let requests = ["GET appprojects/prod", "PATCH appprojects/prod"];
    assert_eq!(server.requests(), [requests, requests].concat());
    for _ in 0..10 {
        server.next(Method::PATCH, "appprojects", Answer::refused(409, "modified"));
    }
    assert_eq!(hold.hold_now("b").await.unwrap_err().explain().exit, Exit::Held, "not for ever");
    assert_eq!(held(&server), apps(&["a"]));
}

/// As often as one answer is asked for.
fn refuse(server: &Server, method: &Method, path: &str, answer: &Answer) {
    for _ in 0..3 {
        server.next(method.clone(), path, answer.clone());
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_said() {
    for (method, path) in [
        (Method::GET, "appprojects"),
        (Method::PATCH, "appprojects"),
        (Method::GET, "applications"),
    ] {
        for (code, exit) in REFUSALS.into_iter().chain([(404, Exit::NotFound)]) {
            let server = server();
            refuse(&server, &method, path, &Answer::refused(code, "no"));
            let error = hold_both(&server).await.unwrap_err();
            assert_eq!(error.explain().exit, exit, "{method} {path} {code}: {error}");
            assert_eq!(held(&server), apps(&[]), "{method} {path} {code}");
        }
        let server = server();
        refuse(&server, &method, path, &Answer::Cut);
        assert_eq!(hold_both(&server).await.unwrap_err().explain().exit, Exit::Unreachable);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_answers_are_waited_for() {
    let server = server();
    let slow = Answer::After(Duration::from_secs(9), Box::new(Answer::refused(409, "modified")));
    server.next(Method::PATCH, "appprojects", slow);
    hold_both(&server).await.unwrap();
    assert_eq!(held(&server), apps(&["a", "b"]));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_was_lost_is_made_once() {
    let server = server();
    server.lose_answer(Method::PATCH, "appprojects");
    hold_both(&server).await.unwrap();
    assert_eq!(server.writes().len(), 1);
    assert_eq!(held(&server), apps(&["a", "b"]));
}

#[tokio::test(start_paused = true)]
async fn an_odd_answer_to_a_write_is_asked_for_again() {
    for odd in [Answer::refused(500, "odd"), Answer::Cut] {
        let server = server();
        server.next(Method::PATCH, "appprojects", odd.clone());
        server.next(Method::PATCH, "appprojects", odd);
        hold_both(&server).await.unwrap();
        assert_eq!(held(&server), apps(&["a", "b"]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_failed_is_made_up_for_by_the_next_one() {
    let server = server();
    hold_both(&server).await.unwrap();
    let hold = hold(&server);
    refuse(&server, &Method::PATCH, "appprojects", &Answer::refused(500, "no"));
    assert_eq!(hold.release_batched("a").await.unwrap_err().explain().exit, Exit::Failed);
    assert_eq!(held(&server), apps(&["a", "b"]));
    hold.release_batched("b").await.unwrap();
    assert_eq!(held(&server), apps(&[]), "both were let go together");
    assert!(server.get(PROJECT).unwrap()["spec"].get("syncWindows").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_release_lets_nobody_else_go() {
    let server = server();
    hold_both(&server).await.unwrap();
    let hold = hold(&server);
    hold.release_batched("a").await.unwrap();
    assert_eq!(held(&server), apps(&["b"]));
    hold.release_all(&apps(&["a", "c"])).await.unwrap();
    assert_eq!(held(&server), apps(&["b"]));
    assert_eq!(server.writes().len(), 2, "nothing had to be written");
}

#[tokio::test(start_paused = true)]
async fn windows_of_others_stay_as_they_are() {
    let server = server();
    let window = json!({ "kind": "allow", "schedule": "0 22 * * *", "duration": "1h" });
    let mut project = server.get(PROJECT).unwrap();
    project["spec"]["syncWindows"] = json!([window]);
    server.put(PROJECT, project);
    hold_both(&server).await.unwrap();
    assert_eq!(held(&server), apps(&["a", "b"]));
    assert_eq!(server.get(PROJECT).unwrap()["spec"]["syncWindows"][0], window);
    hold(&server).release_all(&apps(&["a", "b"])).await.unwrap();
    assert_eq!(server.get(PROJECT).unwrap()["spec"]["syncWindows"], json!([window]));
}
