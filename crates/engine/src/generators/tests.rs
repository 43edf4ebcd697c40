//! How we react to what is answered while generators are synced and their children awaited.

use std::cell::Cell;
use std::collections::BTreeSet;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tiphys_argocd::application_set;
use tiphys_cluster::names::Purpose;
use tiphys_cluster::scripted::{Answer, Asked};
use tiphys_model::{Exit, Explain, OperationId};
use tokio::time::Instant;

use super::children::CHILDREN_TIMEOUT;
use super::one::{NOTICE, OPERATION_TIMEOUT, PART_TIMEOUT, PROJECT_TIMEOUT, TRUST_TIMEOUT};
use super::*;
use crate::testkit;
use crate::testkit::argocd::{self, ROOT, application, steps, unsynced};
use tiphys_cluster::scripted::Server;

/// What the generators work with, for as long as a test takes.
pub(super) struct Bench {
    platform: Platform,
    argocd: ArgoCdClient,
    applications: Applications,
    sets: Api<DynamicObject>,
    hold: Hold,
}

impl Bench {
    pub(super) async fn new(server: &Server) -> Self {
        let (client, platform): (Client, _) = (server.client(), testkit::platform());
        let argocd = ArgoCdClient::new(&client, &platform, Purpose::Deploy).await.unwrap();
        let sets = application_set::api(&client, "argocd");
        let hold = Hold::new(&client, &platform.argocd, "run-1");
        Bench {
            platform,
            argocd,
            applications: Applications::of(&client, &testkit::platform().argocd),
            sets,
            hold,
        }
    }

    pub(super) fn generators<'a>(&'a self, note: &'a dyn Fn(String)) -> Generators<'a> {
        Generators {
            platform: &self.platform,
            argocd: &self.argocd,
            applications: &self.applications,
            sets: &self.sets,
            tag: "0123456789ab/a/1/1".parse::<OperationId>().unwrap().plan,
            hold: &self.hold,
            epoch: 1,
            note,
            done: RefCell::default(),
            begun: Cell::default(),
        }
    }
}

async fn sync(server: &Server) -> Result<Revisions, GeneratorError> {
    Bench::new(server).await.generators(&|_| {}).sync().await
}

/// With or without an ApplicationSet that has been settled.
async fn await_children(server: &Server, set: bool) -> Result<usize, GeneratorError> {
    let bench = Bench::new(server).await;
    let apps: BTreeSet<String> = ["a", "b"].map(str::to_owned).into();
    let generators = bench.generators(&|_| {});
    generators.done.borrow_mut().extend(set.then(|| Generator::Set("set".to_owned())));
    generators.await_children(&apps).await.map(|found| found.len())
}

fn change(server: &Server, name: &str, change: impl FnOnce(&mut Value)) {
    let mut object = server.get(&application(name)).unwrap();
    change(&mut object);
    server.put(&application(name), object);
}

#[tokio::test(start_paused = true)]
async fn the_root_app_is_synced_once_and_then_found_current() {
    let server = argocd::server(&["a", "b"]);
    let generated = sync(&server).await.unwrap();
    assert_eq!(generated.to_string(), "r1");
    sync(&server).await.unwrap();
    assert_eq!(steps(&server), ["refresh prod-root", "sync prod-root", "refresh prod-root"]);
}

#[tokio::test(start_paused = true)]
async fn a_generator_that_the_root_app_creates_is_synced_after_it() {
    let server = argocd::server(&["a", "stack"]);
    sync(&server).await.unwrap();
    let begins = ["refresh prod-root", "sync prod-root"];
    assert_eq!(steps(&server)[..2], begins, "an app is left to the run");
    assert_eq!(steps(&server)[2..], ["refresh stack"], "it creates nothing");

    change(&server, "stack", |stack| stack["spec"]["project"] = "roots".into());
    sync(&server).await.unwrap();
    assert_eq!(steps(&server)[3..], ["refresh prod-root", "refresh stack", "sync stack"]);
}

/// A stack in a project of the apps, which creates `a`.
fn stack(server: &Server) {
    server.put(&application("a"), unsynced("apps"));
    server.put(&application("b"), unsynced("apps"));
    server.put(&application("stack"), unsynced("apps"));
    let child = json!({ "group": "argoproj.io", "kind": "Application", "name": "a" });
    change(server, "stack", |stack| stack["status"]["resources"] = json!([child]));
}

#[tokio::test(start_paused = true)]
async fn what_creates_apps_is_a_generator_whoever_has_created_it() {
    let server = argocd::server(&[]);
    stack(&server);
    assert_eq!(await_children(&server, false).await.unwrap(), 2);
    assert_eq!(steps(&server), ["refresh stack", "sync stack"], "and once");

    change(&server, "stack", |stack| stack["spec"]["project"] = "theirs".into());
    let told = await_children(&server, false).await.unwrap_err().explain();
    assert_eq!(
        (told.exit, &*told.what),
        (Exit::Configuration, "cannot hold the generator `stack`")
    );
}

#[tokio::test(start_paused = true)]
async fn a_generator_that_argo_cd_syncs_by_itself_is_held_before_it_is_synced() {
    let server = argocd::server(&[]);
    stack(&server);
    change(&server, "stack", |stack| stack["spec"]["syncPolicy"] = json!({ "automated": {} }));
    await_children(&server, false).await.unwrap();
    let expected = ["refresh stack", "hold [\"stack\"]", "refresh stack", "sync stack"];
    assert_eq!(steps(&server), expected);
    let sync = server.asked().into_iter().find(|asked| !asked.body["operation"].is_null());
    let revision = &sync.unwrap().body["operation"]["sync"]["revision"];
    assert!(revision.is_null(), "Argo CD takes no other than the one that it follows: {revision}");
}

#[tokio::test(start_paused = true)]
async fn where_a_revision_takes_a_right_of_its_own_the_newest_is_asked_for() {
    let server = argocd::server(&["a", "b"]);
    let operation = |asked: &Asked| !asked.body["operation"].is_null();
    let denied = "permission denied: applications, override, roots/prod-root, sub: tiphys";
    server.next_where(operation, Answer::refused(403, denied));
    sync(&server).await.unwrap();
    let asked = server.asked();
    let revisions = asked.iter().filter(|asked| operation(asked));
    let revisions: Vec<&Value> =
        revisions.map(|asked| &asked.body["operation"]["sync"]["revision"]).collect();
    assert_eq!(revisions, [&json!("r1"), &Value::Null]);
}

#[tokio::test(start_paused = true)]
async fn an_app_that_creates_another_is_refused() {
    let server = argocd::server(&[]);
    stack(&server);
    let child = json!({ "group": "argoproj.io", "kind": "Application", "name": "b" });
    change(&server, "a", |app| app["status"]["resources"] = json!([child]));
    let told = await_children(&server, false).await.unwrap_err().explain();
    assert_eq!(told.what, "the app `a` creates other apps of the platform");
    assert!(steps(&server).is_empty(), "{:?}", steps(&server));
}

#[tokio::test(start_paused = true)]
async fn what_argo_cd_refuses_is_said_with_where_to_look() {
    for (code, exit, hint) in [
        (401, Exit::Credentials, "run `tiphys configure` to set it up"),
        (403, Exit::Credentials, "run `tiphys configure` to set it up"),
        (404, Exit::Configuration, "run `tiphys configure` to set it up"),
        (409, Exit::Failed, ""),
        (410, Exit::Failed, ""),
    ] {
        let refresh = |asked: &Asked| asked.method == Method::PATCH;
        let compared = |asked: &Asked| asked.method == Method::GET;
        let operation = |asked: &Asked| !asked.body["operation"].is_null();
        for (meant, asked) in [(refresh as fn(&Asked) -> bool, 1), (compared, 1), (operation, 2)] {
            let server = argocd::server(&["a", "b"]);
            server.next_where(meant, Answer::refused(code, "no"));
            if code == 409 && asked == 2 {
                sync(&server).await.unwrap();
                let again = ["sync prod-root", "refresh prod-root", "sync prod-root"];
                assert_eq!(steps(&server)[1..4], again, "somebody was quicker");
                continue;
            }
            let error = sync(&server).await.err().unwrap();
            assert_eq!(error.explain().exit, exit, "{code}: {error}");
            assert_eq!(error.explain().next.unwrap_or_default(), hint, "{code}");
            assert_eq!(steps(&server).len(), asked, "{code}");
        }
    }
}

/// Argo CD's API server restarts when `configure` has changed its settings.
#[tokio::test(start_paused = true)]
async fn an_argo_cd_that_is_away_is_waited_for() {
    let away = [Answer::Cut, Answer::refused(429, "no"), Answer::refused(500, "no")];
    let refresh = |asked: &Asked| asked.method == Method::PATCH;
    let operation = |asked: &Asked| !asked.body["operation"].is_null();
    for meant in [refresh as fn(&Asked) -> bool, operation] {
        for answer in &away {
            let server = argocd::server(&["a", "b"]);
            server.next_where(meant, answer.clone());
            sync(&server).await.unwrap();
            let asked = steps(&server).iter().filter(|step| *step == "sync prod-root").count();
            assert!((1..=2).contains(&asked), "{answer:?}: {:?}", steps(&server));
        }
        let server = argocd::server(&["a", "b"]);
        for _ in 0..100 {
            server.next_where(meant, Answer::Cut);
        }
        let began = Instant::now();
        assert_eq!(sync(&server).await.err().unwrap().explain().exit, Exit::Unreachable);
        let waited = began.elapsed();
        assert!(waited >= PART_TIMEOUT && waited < 3 * PART_TIMEOUT, "{waited:?}");
    }
}

/// The next sync of the root app goes so, whatever Argo CD makes of it otherwise.
fn sync_ends(server: &Server, end: impl Fn(&mut Value) + Send + 'static) {
    server.control(move |objects, path| {
        let mut object = objects.get(path).unwrap();
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.clear();
        }
        if !object["operation"].is_null() {
            end(&mut object);
        }
        objects.put(path, object);
    });
}

/// Argo CD's controller can miss an operation, and finds it with the next refresh.
#[tokio::test(start_paused = true)]
async fn an_operation_that_argo_cd_misses_is_shown_to_it_again() {
    let server = argocd::server(&[]);
    server.control(|objects, path| {
        let mut root = objects.get(path).unwrap();
        let annotations = root["metadata"]["annotations"].as_object_mut().map(std::mem::take);
        let refreshed = annotations.is_some_and(|annotations| !annotations.is_empty());
        if refreshed && !root["operation"].is_null() {
            let operation = root["operation"].take();
            root["status"]["operationState"] =
                json!({ "phase": "Succeeded", "operation": operation, "finishedAt": "2026-01-01T00:00:00Z" });
        }
        objects.put(path, root);
    });
    let began = Instant::now();
    sync(&server).await.unwrap();
    let refresh = "refresh prod-root";
    assert_eq!(steps(&server), [refresh, "sync prod-root", refresh]);
    assert!(began.elapsed() < NOTICE + Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_ends_badly_or_is_replaced_is_said() {
    let server = argocd::server(&[]);
    sync_ends(&server, |root| {
        let operation = root["operation"].take();
        root["status"]["operationState"] =
            json!({ "phase": "Failed", "message": "no such path", "operation": operation });
    });
    let error = sync(&server).await.err().unwrap();
    assert_eq!((error.explain().exit, &*error.explain().why), (Exit::Failed, "no such path"));
    let server = argocd::server(&[]);
    sync_ends(&server, |root| root["operation"] = json!({ "initiatedBy": { "automated": true } }));
    let error = sync(&server).await.err().unwrap();
    assert_eq!(error.explain().why, "Argo CD's automated sync started another operation");
}

/// Argo CD fails an operation because of a condition that it has noted before it knew the project.
#[tokio::test(start_paused = true)]
async fn an_operation_that_fails_of_what_passes_is_sent_again() {
    let unknown = "InvalidSpecError: Application referencing project roots which does not exist";
    for (fails, told) in [(1, None), (u32::MAX, Some(unknown))] {
        let server = argocd::server(&[]);
        let failed = Cell::new(0);
        sync_ends(&server, move |root| {
            let operation = root["operation"].take();
            let (phase, message) = if failed.get() < fails {
                failed.set(failed.get() + 1);
                ("Failed", unknown)
            } else {
                ("Succeeded", "")
            };
            root["status"]["operationState"] = json!({
                "phase": phase, "message": message, "operation": operation,
                "finishedAt": "2026-01-01T00:00:00Z",
            });
        });
        let began = Instant::now();
        let error = sync(&server).await.err();
        assert_eq!(error.map(|error| error.explain().why).as_deref(), told);
        let waited = began.elapsed();
        assert!(waited < PROJECT_TIMEOUT + Duration::from_secs(10), "{waited:?}");
        let sent = steps(&server).iter().filter(|step| *step == "sync prod-root").count();
        assert!(sent >= 2, "{sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_does_not_end_is_given_up_on() {
    let server = argocd::server(&[]);
    sync_ends(&server, |_| {});
    let began = Instant::now();
    let error = sync(&server).await.err().unwrap();
    assert_eq!(error.explain().why, "its operation did not finish within 300 s");
    assert!(began.elapsed() < OPERATION_TIMEOUT + 10 * POLL, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_cannot_be_compared_is_not_synced() {
    let server = argocd::server(&[]);
    change(&server, ROOT, |root| {
        root["status"]["conditions"] =
            json!([{ "type": "ComparisonError", "message": "no such branch" }]);
    });
    assert_eq!(sync(&server).await.err().unwrap().explain().why, "no such branch");
    assert_eq!(steps(&server), ["refresh prod-root"]);
}

#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_is_waited_for_and_not_for_ever() {
    for (kind, message, timeout) in [
        ("ComparisonError", "rpc error: code = Unavailable desc = refused", PART_TIMEOUT),
        (
            "InvalidSpecError",
            "Application referencing project roots which does not exist",
            PROJECT_TIMEOUT,
        ),
        (
            "ComparisonError",
            "failed to list refs: x509: certificate signed by unknown authority",
            TRUST_TIMEOUT,
        ),
        ("ComparisonError", "ssh: handshake failed: knownhosts: key is unknown", TRUST_TIMEOUT),
    ] {
        let server = argocd::server(&[]);
        change(&server, ROOT, |root| {
            root["status"]["conditions"] = json!([{ "type": kind, "message": message }]);
        });
        let began = Instant::now();
        assert_eq!(sync(&server).await.err().unwrap().explain().why, message);
        assert!(began.elapsed() >= timeout, "{:?}", began.elapsed());
        let passes = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            change(&server, ROOT, |root| root["status"]["conditions"] = json!([]));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            synced = sync(&server) => drop(synced.unwrap()),
            () = passes => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_of_somebody_else_is_awaited() {
    let server = argocd::server(&[]);
    change(&server, ROOT, |root| root["operation"] = json!({ "sync": { "revision": "old" } }));
    sync_ends(&server, |_| {});
    let sent = |server: &Server| steps(server).contains(&"sync prod-root".to_owned());
    let within = Duration::from_secs(100);
    tokio::time::timeout(within, sync(&server)).await.expect_err("it waits");
    assert!(!sent(&server));
    change(&server, ROOT, |root| root["operation"] = Value::Null);
    tokio::time::timeout(within, sync(&server)).await.expect_err("it waits for its own");
    assert!(sent(&server));

    let server = argocd::server(&[]);
    sync_ends(&server, |_| {});
    change(&server, ROOT, |root| root["operation"] = json!({ "sync": {} }));
    let error = sync(&server).await.err().unwrap();
    assert_eq!(error.explain().why, "its operation did not finish within 300 s");
}

#[tokio::test(start_paused = true)]
async fn children_are_awaited_until_all_are_there() {
    let server = argocd::server(&[]);
    server.put(&application("a"), unsynced("apps"));
    let appear = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        server.put(&application("b"), unsynced("apps"));
    };
    let (found, ()) = tokio::join!(await_children(&server, false), appear);
    assert_eq!(found.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn children_that_do_not_come_are_named_later_where_sets_create_them() {
    for (sets, timeout) in [(false, CHILDREN_TIMEOUT), (true, SETS_TIMEOUT)] {
        let server = argocd::server(&[]);
        server.put(&application("a"), unsynced("apps"));
        let began = Instant::now();
        let error = await_children(&server, sets).await.unwrap_err();
        assert_eq!(error.explain().exit, Exit::NotFound);
        assert_eq!(error.explain().what, "no Application found for b");
        assert!(began.elapsed() > timeout && began.elapsed() < timeout + 2 * POLL);
    }
}

#[tokio::test(start_paused = true)]
async fn children_in_another_project_are_refused_at_once() {
    let server = argocd::server(&[]);
    server.put(&application("a"), unsynced("apps"));
    server.put(&application("b"), unsynced("default"));
    let error = await_children(&server, true).await.unwrap_err();
    assert_eq!((error.explain().exit, &*error.explain().why), (Exit::Configuration, "b (default)"));
    server.next(Method::GET, "applications", Answer::refused(403, "no"));
    assert_eq!(await_children(&server, true).await.unwrap_err().explain().exit, Exit::Credentials);
}
