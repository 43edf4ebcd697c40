//! What others do to the hold while a run goes on.

use std::cell::RefCell;

use super::*;

/// A run that holds `a` and `b`.
async fn running(server: &Server) -> Hold {
    let hold = hold(server);
    let applications = Applications::of(&server.client(), &argocd(&["prod"]));
    hold.hold_when_idle(&apps(&["a", "b"]), &applications, async |_| Ok(())).await.unwrap();
    hold
}

/// Somebody writes these windows.
fn meddle(server: &Server, manager: &str, windows: Value) {
    server.change(|objects| {
        let mut project = objects.get(PROJECT).unwrap();
        project["spec"]["syncWindows"] = windows;
        project["metadata"]["managedFields"] = json!([{
            "manager": manager, "operation": "Update", "time": "2026-11-16T12:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:syncWindows": {} } },
        }]);
        objects.put(PROJECT, project);
    });
}

/// Watches for so long; what was warned of, and how it ended if it did.
async fn watch(hold: &Hold, seconds: u64) -> (Vec<String>, Option<HoldError>) {
    let warnings = RefCell::<Vec<String>>::default();
    let warn = |warning| warnings.borrow_mut().push(warning);
    let ended = tokio::time::timeout(Duration::from_secs(seconds), hold.watch(&warn)).await;
    (warnings.into_inner(), ended.ok())
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_removed_is_set_again_within_seconds_and_told() {
    let server = server();
    let hold = running(&server).await;
    meddle(&server, "kubectl-edit", json!([]));
    let (warnings, ended) = watch(&hold, 3).await;
    assert!(ended.is_none());
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("removed by the field manager `kubectl-edit`"), "{warnings:?}");
    assert_eq!(held(&server), apps(&["a", "b"]));
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_stays_is_not_written() {
    let server = server();
    let hold = running(&server).await;
    let before = server.writes().len();
    let (warnings, _) = watch(&hold, 600).await;
    assert_eq!((warnings.len(), server.writes().len()), (0, before));
}

#[tokio::test(start_paused = true)]
async fn whoever_removes_it_a_fourth_time_ends_the_run() {
    let server = server();
    let hold = running(&server).await;
    server.control(|objects, written| {
        let mut project = objects.get(PROJECT).unwrap();
        if written == PROJECT {
            project["spec"]["syncWindows"] = json!([]);
            objects.put(PROJECT, project);
        }
    });
    meddle(&server, "argocd-application-controller", json!([]));
    let (warnings, ended) = watch(&hold, 60).await;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let told = ended.expect("it ends").explain();
    assert_eq!(told.exit, Exit::Held);
    assert!(told.why.contains("`argocd-application-controller`"), "{}", told.why);
}

#[tokio::test(start_paused = true)]
async fn our_own_writes_are_never_taken_for_those_of_others() {
    let server = server();
    let hold = running(&server).await;
    let slow = |seconds| Duration::from_secs(seconds);
    let ours = async {
        for (number, app) in ["a", "b"].into_iter().enumerate() {
            // One that arrives and one that does not, and both are waited for.
            let late = Answer::After(slow(5), Box::new(Answer::refused(500, "no")));
            if number == 0 {
                server.lose_answer(Method::PATCH, "appprojects");
                hold.release_batched(app).await.unwrap();
            } else {
                refuse(&server, &Method::PATCH, "appprojects", &late);
                hold.release_batched(app).await.unwrap_err();
            }
            tokio::time::sleep(slow(3)).await;
            hold.hold_now(app).await.unwrap();
            hold.release_batched(app).await.unwrap();
        }
    };
    let (watched, ()) = tokio::join!(watch(&hold, 60), ours);
    assert_eq!(watched.0, Vec::<String>::new());
    assert!(watched.1.is_none());
    assert_eq!(held(&server), apps(&[]));
}

#[tokio::test(start_paused = true)]
async fn a_release_restores_what_others_took_away() {
    let server = server();
    let hold = running(&server).await;
    meddle(&server, "kubectl-edit", json!([]));
    hold.release_batched("a").await.unwrap();
    assert_eq!(held(&server), apps(&["b"]));
    assert_eq!(hold.warnings().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_a_write_of_ours_runs_into_is_told() {
    let server = server();
    let hold = running(&server).await;
    let late = Answer::After(Duration::from_secs(2), Box::new(Answer::refused(409, "modified")));
    server.next(Method::PATCH, "appprojects", late);
    let removes = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        meddle(&server, "kubectl-edit", json!([]));
    };
    let (released, ()) = tokio::join!(hold.release_batched("a"), removes);
    released.unwrap();
    assert_eq!(held(&server), apps(&["b"]));
    assert_eq!(hold.warnings().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_project_there_is_nothing_to_watch() {
    let server = server();
    server.change(|objects| objects.remove(PROJECT));
    let (warnings, ended) = watch(&hold(&server), 600).await;
    assert_eq!((warnings.len(), ended.is_none()), (0, true));
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_this_run_has_set_before_is_watched() {
    let server = server();
    hold_both(&server).await.unwrap();
    let hold = hold(&server);
    let removes = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        meddle(&server, "kubectl-edit", json!([]));
    };
    let ((warnings, _), ()) = tokio::join!(watch(&hold, 5), removes);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(held(&server), apps(&["a", "b"]));
}

#[tokio::test(start_paused = true)]
async fn the_hold_of_a_later_run_is_left_alone_by_whoever_lost_its_lease() {
    let server = server();
    let hold = running(&server).await;
    let theirs = windows::holding(&[], &apps(&["a", "b"]), "other-2");
    meddle(&server, "tiphys", theirs.clone());
    let before = server.writes().len();
    hold.release_batched("a").await.unwrap();
    hold.hold_now("c").await.unwrap();
    let (warnings, ended) = watch(&hold, 30).await;
    assert!(ended.is_none());
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("run other-2"), "{warnings:?}");
    assert_eq!(server.get(PROJECT).unwrap()["spec"]["syncWindows"], theirs);
    assert_eq!(server.writes().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_few_odd_answers_do_not_end_a_watch_and_lasting_ones_do() {
    for (answers, ends) in [(3, false), (300, true)] {
        for (code, exit) in [(403, Exit::Credentials), (500, Exit::Failed), (404, Exit::NotFound)] {
            let server = server();
            let hold = running(&server).await;
            for _ in 0..answers {
                server.next(Method::GET, "appprojects", Answer::refused(code, "no"));
            }
            let (_, ended) = watch(&hold, 120).await;
            let ended = ended.map(|error| error.explain().exit);
            assert_eq!(ended, ends.then_some(exit), "{answers} times {code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn windows_of_others_are_judged_without_ours() {
    let server = server();
    let hold = running(&server).await;
    let applications = Applications::of(&server.client(), &argocd(&["prod"]));
    let held = server.get(PROJECT).unwrap()["spec"]["syncWindows"][0].clone();
    // Argo CD would let a manual sync through: our window is open, and it has `manualSync`.
    let never = json!({
        "kind": "allow", "schedule": "* * * * *", "duration": "0", "applications": ["b"],
    });
    meddle(&server, "kubectl-edit", json!([never, held]));
    assert_eq!(hold.denies("a", &applications).await.unwrap(), None);
    let denied = hold.denies("b", &applications).await.unwrap().expect("it is denied");
    let all = hold.denied_now(&apps(&["a", "b"]), &applications).await.unwrap();
    assert_eq!(all, [(denied, vec!["b".to_owned()])].into());
    let broken = json!({ "kind": "deny", "schedule": "@daily", "applications": ["*"] });
    meddle(&server, "kubectl-edit", json!([broken, held]));
    let error = hold.denies("a", &applications).await.unwrap_err();
    assert_eq!(error.explain().exit, Exit::Configuration);
    assert!(error.explain().why.contains("@daily"), "{error}");
}
