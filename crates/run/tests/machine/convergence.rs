//! From the end of an operation to Done: refreshes, trouble that passes, trouble that stays.

use tiphys_model::{Health, SyncStatus};
use tiphys_run::{Answer, Condition, ConditionKind, Drifted, Effect, Observation};

use crate::platform::Builder;
use crate::run::{Kind, Run};

fn converging() -> Run {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).timeouts(300, 3000).plan());
    run.wait(10);
    run.sync("a");
    run.log();
    run.effects();
    run
}

fn comparison_error(seen: &mut Observation) {
    seen.sync = SyncStatus::Unknown;
    let condition = Condition { kind: ConditionKind::Comparison, message: "no such path".into() };
    seen.conditions = vec![condition];
}

#[test]
fn an_app_is_refreshed_at_most_every_five_seconds() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan()).answering_refreshes();
    run.sync("a");
    // Compared with an old spec, so that a refresh alone settles nothing.
    run.show("a", |seen| seen.compared_to_spec = false);
    run.steps();
    run.wait(20);
    let refreshes: Vec<String> =
        run.log().into_iter().filter(|line| line.contains("asked")).collect();
    assert_eq!(
        refreshes,
        ["5s a refresh asked", "10s a refresh asked", "15s a refresh asked", "20s a refresh asked"]
    );
}

#[test]
fn a_refresh_without_answer_is_asked_for_again_after_thirty_seconds() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.sync("a");
    run.log();
    run.wait(40);
    let refreshes: Vec<String> =
        run.log().into_iter().filter(|line| line.contains("asked")).collect();
    assert_eq!(refreshes, ["5s a refresh asked", "35s a refresh asked"]);
}

#[test]
fn a_refresh_that_failed_is_asked_for_again_when_one_is_due() {
    let mut run = converging();
    run.show("a", |_| {});
    let number = run.number("a", Kind::Refresh);
    run.answer("a", Answer::RefreshFailed { number });
    run.wait(5);
    assert_eq!(run.log(), ["10s a refresh wanted", "15s a refresh asked"]);
}

/// Everything looks well, within the second in which the operation ended.
fn look_well_at_once(run: &mut Run) {
    run.show("a", |seen| {
        seen.reconciled_at = seen.last.as_ref().and_then(|last| last.finished_at);
        seen.sync = SyncStatus::Synced;
        seen.health = Health::Healthy;
    });
}

#[test]
fn only_a_refresh_that_was_asked_for_after_the_end_proves_anything() {
    let mut run = converging();
    look_well_at_once(&mut run);
    assert_eq!(run.steps(), Vec::<String>::new());
    run.refreshed("a");
    assert_eq!(run.steps(), ["10s a done: applied", "10s finished: succeeded"]);
}

#[test]
fn a_refresh_of_an_earlier_attempt_proves_nothing() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 0, 1, 0).plan());
    run.wait(10);
    run.sync("a");
    let earlier = Answer::Refreshed { number: run.number("a", Kind::Refresh) };
    run.show("a", |seen| seen.last.as_mut().unwrap().operation.id = None);
    run.wait(0);
    run.sync("a");
    look_well_at_once(&mut run);
    run.steps();
    run.answer("a", earlier.clone());
    run.wait(5);
    run.answer("a", earlier);
    assert_eq!(run.steps(), Vec::<String>::new());
    run.refreshed("a");
    assert_eq!(run.steps(), ["15s a done: applied", "15s finished: succeeded"]);
}

#[test]
fn a_late_answer_to_a_refresh_after_the_end_is_as_good_as_that_to_its_repetition() {
    let mut run = converging();
    look_well_at_once(&mut run);
    let first = Answer::Refreshed { number: run.number("a", Kind::Refresh) };
    run.wait(35);
    assert_ne!(first, Answer::Refreshed { number: run.number("a", Kind::Refresh) });
    run.answer("a", first);
    assert_eq!(run.steps(), ["45s a done: applied", "45s finished: succeeded"]);
}

#[test]
fn a_silent_watch_is_not_trusted_for_more_than_thirty_seconds() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.accept("a");
    run.begin("a");
    run.log();
    run.effects();
    run.wait(80);
    let app = run.app("a");
    assert_eq!(run.log(), ["10s a looked at", "40s a looked at", "70s a looked at"]);
    assert_eq!(run.effects(), [3, 4, 5].map(|number| Effect::Read { app, number }));
}

#[test]
fn an_operation_that_does_not_begin_is_brought_to_mind_by_a_refresh() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.accept("a");
    run.log();
    run.wait(15);
    assert_eq!(run.log(), ["10s a refresh asked", "10s a looked at"]);
    run.refreshed("a");
    run.begin("a");
    run.log();
    run.wait(30);
    assert_eq!(run.log(), ["40s a looked at"], "it has begun");
}

#[test]
fn a_refresh_from_before_the_end_proves_nothing_about_it() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.accept("a");
    run.wait(10);
    run.succeed("a");
    run.steps();
    look_well_at_once(&mut run);
    run.refreshed("a");
    assert_eq!(run.steps(), Vec::<String>::new());
}

#[test]
fn degraded_for_a_minute_is_a_failure() {
    let mut run = converging();
    run.assess("a", Health::Degraded);
    run.wait(59);
    assert_eq!(run.steps(), ["10s a suspected: it is Degraded"]);
    run.wait(1);
    assert_eq!(run.steps(), ["70s a failed: it is Degraded", "70s finished: failed"]);
}

#[test]
fn degraded_for_a_while_is_not() {
    let mut run = converging();
    run.assess("a", Health::Degraded);
    run.wait(50);
    run.assess("a", Health::Progressing);
    run.assess("a", Health::Degraded);
    run.wait(50);
    run.assess("a", Health::Healthy);
    assert_eq!(
        run.steps(),
        [
            "10s a suspected: it is Degraded",
            "60s a cleared",
            "60s a suspected: it is Degraded",
            "110s a done: applied",
            "110s finished: succeeded",
        ]
    );
}

#[test]
fn other_trouble_begins_to_count_anew() {
    let mut run = converging().answering_refreshes();
    run.assess("a", Health::Degraded);
    run.wait(50);
    run.show("a", comparison_error);
    run.wait(50);
    assert_eq!(
        run.steps(),
        [
            "10s a suspected: it is Degraded",
            "60s a suspected: Argo CD cannot compare it with its source: no such path",
        ]
    );
}

#[test]
fn an_app_that_takes_its_time_is_refreshed_every_half_minute_and_no_more() {
    let mut run = converging().answering_refreshes();
    run.assess("a", Health::Progressing);
    run.log();
    run.wait(65);
    let refreshes: Vec<String> =
        run.log().into_iter().filter(|line| line.contains("refresh asked")).collect();
    assert_eq!(refreshes, ["40s a refresh asked", "70s a refresh asked"]);
}

#[test]
fn health_that_argo_cd_has_missed_is_found() {
    let mut run = converging();
    run.assess("a", Health::Degraded);
    run.refreshed("a");
    run.log();
    run.wait(31);
    assert_eq!(run.log(), ["40s a refresh asked", "40s a looked at"]);
    run.show("a", |seen| seen.health = Health::Healthy);
    assert_eq!(run.steps(), ["41s a done: applied", "41s finished: succeeded"]);
}

#[test]
fn an_error_of_comparing_fails_after_a_minute_and_two_refreshes() {
    let mut run = converging().answering_refreshes();
    run.show("a", comparison_error);
    run.refreshed("a");
    run.wait(59);
    assert_eq!(
        run.steps(),
        ["10s a suspected: Argo CD cannot compare it with its source: no such path"]
    );
    run.wait(5);
    assert_eq!(
        run.steps(),
        [
            "70s a failed: Argo CD cannot compare it with its source: no such path",
            "70s finished: failed",
        ]
    );
}

#[test]
fn an_error_of_comparing_does_not_fail_without_two_refreshes() {
    let mut run = converging();
    run.show("a", comparison_error);
    run.wait(90);
    run.refreshed("a");
    run.wait(4);
    assert_eq!(
        run.steps(),
        ["10s a suspected: Argo CD cannot compare it with its source: no such path"]
    );
    run.wait(1);
    run.refreshed("a");
    assert_eq!(
        run.steps(),
        [
            "105s a failed: Argo CD cannot compare it with its source: no such path",
            "105s finished: failed",
        ]
    );
}

#[test]
fn out_of_sync_is_a_failure_when_two_more_refreshes_find_it_so() {
    let mut run = converging();
    run.show("a", |seen| {
        seen.sync = SyncStatus::OutOfSync;
        seen.drifted = vec![Drifted { resource: "Deployment/web".into(), fields: Vec::new() }];
        // Assessed in the second in which it ended: only a refresh can tell.
        seen.reconciled_at = seen.last.as_ref().and_then(|last| last.finished_at);
    });
    run.wait(20);
    assert_eq!(run.steps(), Vec::<String>::new());
    // The cluster that it was compared with may be an older one.
    run.refreshed("a");
    assert_eq!(run.steps(), ["30s a suspected: still OutOfSync after the sync: Deployment/web"]);
    run.wait(5);
    run.refreshed("a");
    run.wait(25);
    assert_eq!(run.steps(), Vec::<String>::new());
    run.refreshed("a");
    assert_eq!(
        run.steps(),
        ["60s a failed: still OutOfSync after the sync: Deployment/web", "60s finished: failed"]
    );
}

#[test]
fn what_was_out_of_sync_for_a_moment_is_done() {
    let mut run = converging();
    run.show("a", |seen| {
        seen.sync = SyncStatus::OutOfSync;
        seen.drifted = vec![Drifted { resource: "Deployment/web".into(), fields: Vec::new() }];
    });
    run.refreshed("a");
    run.wait(5);
    run.assess("a", Health::Healthy);
    assert_eq!(run.steps(), ["15s a done: applied", "15s finished: succeeded"]);
}
