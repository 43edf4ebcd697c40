//! Attempts: when one is repeated, when it counts, and when the step has failed.

use tiphys_model::{AppIx, Health};
use tiphys_run::{Answer, Effect, Operation, Revisions, SyncAnswer};

use crate::platform::Builder;
use crate::run::{Run, revisions};

fn alice() -> Operation {
    Operation { id: None, by: "alice".into() }
}

#[test]
fn a_failed_sync_is_repeated_after_growing_pauses_until_the_limit() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(3, 10, 2, 30).plan());
    run.refuse("a");
    run.wait(10);
    run.refuse("a");
    run.wait(20);
    run.refuse("a");
    run.wait(30);
    run.refuse("a");
    assert_eq!(
        run.steps(),
        [
            "0s a syncing 1 at r1",
            "0s a retrying at 10s: the sync failed: denied",
            "10s a syncing 2 at r1",
            "10s a retrying at 30s: the sync failed: denied",
            "30s a syncing 3 at r1",
            "30s a retrying at 60s: the sync failed: denied",
            "60s a syncing 4 at r1",
            "60s a failed: the sync failed: denied",
            "60s finished: failed",
        ]
    );
}

#[test]
fn a_limit_of_zero_is_one_attempt() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(0, 10, 2, 30).plan());
    run.refuse("a");
    assert_eq!(
        run.steps(),
        ["0s a syncing 1 at r1", "0s a failed: the sync failed: denied", "0s finished: failed"]
    );
}

#[test]
fn a_later_attempt_can_succeed() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    run.refuse("a");
    run.wait(9);
    run.steps();
    run.wait(1);
    run.complete("a");
    assert_eq!(
        run.steps(),
        [
            "10s a syncing 2 at r1",
            "10s a converging",
            "10s a done: applied",
            "10s finished: succeeded"
        ]
    );
}

#[test]
fn news_during_a_pause_do_not_shorten_it() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    run.refuse("a");
    run.wait(5);
    run.steps();
    run.show("a", |_| {});
    assert_eq!(run.steps(), Vec::<String>::new());
    run.wait(5);
    assert_eq!(run.steps(), ["10s a syncing 2 at r1"]);
}

#[test]
fn a_health_timeout_is_not_retried() {
    let builder = Builder::new().app("a", &[]).retry(3, 10, 2, 30).timeouts(300, 100);
    let mut run = Run::deploy(&builder.plan());
    // At a moment from which on no look and no refresh falls on the timeout.
    run.wait(25);
    run.sync("a");
    run.assess("a", Health::Progressing);
    run.steps();
    run.wait(99);
    assert_eq!(run.steps(), Vec::<String>::new());
    run.wait(1);
    assert_eq!(
        run.steps(),
        [
            "125s a timed out: not Healthy before the health timeout: it is Progressing",
            "125s finished: failed",
        ]
    );
}

#[test]
fn a_sync_that_does_not_end_is_terminated_and_not_retried() {
    let builder = Builder::new().app("a", &[]).retry(3, 10, 2, 30).timeouts(100, 300);
    let mut run = Run::deploy(&builder.plan());
    run.accept("a");
    run.wait(99);
    run.steps();
    run.effects();
    run.wait(1);
    assert_eq!(
        run.steps(),
        [
            "100s a timed out: the sync did not end before the sync timeout",
            "100s a terminate asked"
        ]
    );
    assert_eq!(run.effects(), [Effect::Terminate { app: AppIx::new(0) }]);
    // Nobody answers: it is asked for once more. The run ends when it has been done.
    run.wait(30);
    assert_eq!(run.effects(), [Effect::Terminate { app: AppIx::new(0) }]);
    run.answer("a", Answer::Terminated);
    assert_eq!(
        run.steps(),
        ["130s a terminate asked", "130s a terminated", "130s finished: failed"]
    );
}

#[test]
fn a_refusal_by_argo_cd_is_final() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(3, 10, 2, 30).plan());
    run.answer_sync("a", SyncAnswer::Refused { message: "permission denied".into() });
    assert_eq!(
        run.steps(),
        [
            "0s a syncing 1 at r1",
            "0s a errored: Argo CD refused the request: permission denied",
            "0s finished: failed",
        ]
    );
}

#[test]
fn a_conflict_is_no_attempt_and_waits_for_the_other_operation() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.answer_sync("a", SyncAnswer::Conflict);
    run.show("a", |seen| seen.operation = Some(alice()));
    run.wait(10);
    run.show("a", |seen| seen.operation = None);
    run.wait(5);
    assert_eq!(
        run.steps(),
        [
            "0s a syncing 1 at r1",
            "0s a postponed to 5s",
            "5s a held up by alice",
            "5s a postponed to 10s",
            "10s a held up by alice",
            "10s a postponed to 15s",
            "15s a syncing 1 at r1",
        ]
    );
}

#[test]
fn a_conflict_with_our_own_request_is_taken_over() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    let ours = Operation { id: Some(run.operation("a")), by: "tiphys".into() };
    run.answer_sync("a", SyncAnswer::Conflict);
    run.show("a", |seen| seen.operation = Some(ours));
    run.effects();
    run.wait(5);
    assert_eq!(
        run.steps(),
        ["0s a syncing 1 at r1", "0s a postponed to 5s", "5s a syncing 1 at r1 adopted"]
    );
    assert_eq!(run.effects(), [], "nothing is sent for it");
}

#[test]
fn somebody_elses_operation_is_awaited_until_the_sync_timeout_and_named() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).timeouts(20, 300).plan());
    run.answer_sync("a", SyncAnswer::Conflict);
    run.show("a", |seen| seen.operation = Some(alice()));
    run.wait(24);
    run.steps();
    run.wait(1);
    assert_eq!(
        run.steps(),
        [
            "25s a timed out: an operation of alice did not end before the sync timeout",
            "25s finished: failed",
        ]
    );
}

#[test]
fn an_operation_that_was_replaced_is_repeated() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    run.accept("a");
    run.show("a", |seen| seen.operation = Some(alice()));
    run.show("a", |seen| seen.operation = None);
    run.wait(10);
    assert_eq!(
        run.steps(),
        [
            "0s a syncing 1 at r1",
            "0s a retrying at 10s: an operation of alice replaced the sync of this run",
            "10s a syncing 2 at r1",
        ]
    );
}

#[test]
fn an_operation_of_which_nothing_is_left_is_repeated() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    run.accept("a");
    run.show("a", |seen| seen.operation = None);
    assert_eq!(
        run.steps(),
        [
            "0s a syncing 1 at r1",
            "0s a retrying at 10s: an operation of someone else replaced the sync of this run",
        ]
    );
}

#[test]
fn a_source_that_moved_is_synced_again_without_a_pause() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    run.sync("a");
    run.show("a", |seen| seen.revisions = revisions("r2"));
    run.assess("a", Health::Healthy);
    run.wait(0);
    run.complete("a");
    assert_eq!(
        run.steps(),
        [
            "0s a syncing 1 at r1",
            "0s a converging",
            "0s a moved from r1 to r2",
            "0s a retrying at 0s: its source moved from r1 to r2 during the sync",
            "0s a syncing 2 at r2",
            "0s a converging",
            "0s a done: applied",
            "0s finished: succeeded",
        ]
    );
}

#[test]
fn a_source_is_followed_five_times_and_no_retry_is_spent_on_it() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(0, 10, 2, 30).plan());
    for number in 2..8 {
        run.accept("a");
        run.show("a", |seen| seen.revisions = revisions(&format!("r{number}")));
        run.succeed("a");
        run.assess("a", Health::Healthy);
        run.wait(0);
    }
    let steps = run.steps();
    let synced = steps.iter().filter(|step| step.contains("syncing")).count();
    assert_eq!(synced, 6, "{steps:#?}");
    let end =
        ["0s a failed: its source moved from r6 to r7 during the sync", "0s finished: failed"];
    assert!(steps.ends_with(&end.map(str::to_owned)), "{steps:#?}");
}

#[test]
fn what_follows_a_branch_is_asked_for_no_revision() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).app("b", &["a"]).plan());
    let asked = |run: &mut Run| {
        let effects = run.effects().into_iter();
        effects
            .filter_map(|effect| match effect {
                Effect::Sync { revisions, .. } => Some(revisions),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(asked(&mut run), [revisions("r1")]);
    run.show("b", |seen| seen.pinned = false);
    run.complete("a");
    assert_eq!(asked(&mut run), [Revisions::default()]);
}

#[test]
fn an_application_that_vanishes_has_failed() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(3, 10, 2, 30).plan());
    run.accept("a");
    run.show_gone("a");
    assert_eq!(
        run.steps(),
        ["0s a syncing 1 at r1", "0s a failed: Application not found", "0s finished: failed"]
    );
}
