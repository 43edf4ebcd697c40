//! How a step begins: with a sync, with what another run has left, or not before something that
//! the run cannot change has passed.

use std::sync::Arc;

use tiphys_model::{Health, OperationId, Plan, SyncStatus};
use tiphys_run::{
    Action, Condition, ConditionKind, Effect, LastOperation, Observation, Operation,
    OperationPhase, Stamp,
};

use crate::platform::Builder;
use crate::run::{Run, fresh, revisions};

/// A run over one app that looks like this, whose refreshes are answered.
fn begin(plan: &Arc<Plan>, seen: &Observation) -> Run {
    let mut run = Run::listed(plan, Action::Deploy, |_| Some(seen.clone())).answering_refreshes();
    run.refreshed("a");
    run
}

#[test]
fn an_operation_of_the_same_plan_is_taken_over_and_not_repeated() {
    let plan = Builder::new().app("a", &[]).plan();
    let sent_before = {
        let run = Run::deploy(&plan);
        run.operation("a")
    };
    let operation = Operation { id: Some(sent_before), by: "tiphys".into() };
    let mut run = Run::listed(&plan, Action::Deploy, |_| {
        let mut seen = fresh();
        seen.operation = Some(operation.clone());
        Some(seen)
    });
    run.effects();
    run.refreshed("a");
    assert_eq!(run.steps(), ["0s a syncing 1 at r1 adopted"]);
    assert_eq!(run.effects(), []);
}

#[test]
fn a_foreign_operation_is_awaited_before_the_first_attempt() {
    let plan = Builder::new().app("a", &[]).plan();
    let mut run = Run::listed(&plan, Action::Deploy, |_| {
        let mut seen = fresh();
        seen.operation = Some(Operation { id: None, by: "alice".into() });
        Some(seen)
    })
    .answering_refreshes();
    run.refreshed("a");
    assert_eq!(run.steps(), ["0s a held up by alice"]);
    run.wait(299);
    run.steps();
    let mut ended = run;
    ended.show("a", |seen| seen.operation = None);
    ended.wait(5);
    assert_eq!(ended.steps(), ["299s a freed", "300s a syncing 1 at r1"]);
}

/// Alice's operation is under way.
fn held_up() -> Run {
    let plan = Builder::new().app("a", &[]).timeouts(20, 300).plan();
    let operation = Some(Operation { id: None, by: "alice".into() });
    begin(&plan, &Observation { operation, ..fresh() })
}

#[test]
fn a_foreign_operation_is_awaited_until_the_sync_timeout_and_named() {
    let mut run = held_up();
    run.wait(19);
    assert!(run.steps().iter().all(|line| line.ends_with("held up by alice")));
    run.wait(1);
    assert_eq!(
        run.steps(),
        [
            "20s a timed out: an operation of alice did not end before the sync timeout",
            "20s finished: failed",
        ]
    );
}

#[test]
fn an_app_that_vanishes_while_it_is_held_up_has_failed() {
    let mut run = held_up();
    run.steps();
    run.show_gone("a");
    run.wait(5);
    assert_eq!(
        run.steps(),
        ["0s a freed", "5s a failed: Application not found", "5s finished: failed"]
    );
}

/// Compared with an older spec.
fn not_compared() -> Run {
    let plan = Builder::new().app("a", &[]).timeouts(20, 300).plan();
    begin(&plan, &Observation { compared_to_spec: false, ..fresh() })
}

#[test]
fn nothing_is_decided_from_a_comparison_with_another_spec() {
    let mut run = not_compared();
    run.wait(12);
    assert!(run.steps().iter().all(|line| line.ends_with("held up: not compared")));
    run.show("a", |seen| seen.compared_to_spec = true);
    run.wait(3);
    assert_eq!(run.steps(), ["12s a freed", "15s a syncing 1 at r1"]);
}

#[test]
fn an_app_that_is_not_compared_with_its_spec_fails_after_the_sync_timeout() {
    let mut run = not_compared();
    run.wait(19);
    run.steps();
    run.wait(1);
    assert_eq!(
        run.steps(),
        [
            "20s a timed out: Argo CD cannot compare it with its source: not compared with its \
             current spec",
            "20s finished: failed",
        ]
    );
}

/// Argo CD cannot compare it.
fn not_comparable() -> Run {
    let condition = Condition { kind: ConditionKind::Comparison, message: "no such path".into() };
    let seen = Observation { conditions: vec![condition], ..fresh() };
    begin(&Builder::new().app("a", &[]).plan(), &seen)
}

#[test]
fn an_app_that_cannot_be_compared_is_not_synced_and_fails_after_a_minute() {
    let mut run = not_comparable();
    run.wait(59);
    assert_eq!(
        run.steps(),
        ["0s a suspected: Argo CD cannot compare it with its source: no such path"]
    );
    run.wait(5);
    assert_eq!(
        run.steps(),
        [
            "60s a failed: Argo CD cannot compare it with its source: no such path",
            "60s finished: failed",
        ]
    );
}

#[test]
fn an_app_that_can_be_compared_again_is_synced() {
    let mut run = not_comparable();
    run.wait(32);
    run.show("a", |seen| seen.conditions.clear());
    run.steps();
    run.wait(3);
    assert_eq!(run.steps(), ["35s a syncing 1 at r1"]);
}

/// The same plan has applied it, in an earlier run.
fn applied_before(plan: &Arc<Plan>, health: Health) -> Run {
    let id = OperationId { epoch: 0, ..Run::deploy(plan).operation("a") };
    let last = LastOperation {
        operation: Operation { id: Some(id), by: "tiphys".into() },
        phase: OperationPhase::Succeeded,
        finished_at: fresh().reconciled_at.map(|Stamp(stamp)| Stamp(stamp - 1)),
        revisions: revisions("r1"),
        message: "synced".into(),
    };
    begin(plan, &Observation { last: Some(last), sync: SyncStatus::Synced, health, ..fresh() })
}

#[test]
fn what_an_earlier_run_has_brought_up_is_current() {
    let mut run = applied_before(&Builder::new().app("a", &[]).plan(), Health::Healthy);
    assert_eq!(run.steps(), ["0s a done: already current", "0s finished: succeeded"]);
}

#[test]
fn what_an_earlier_run_has_applied_is_awaited_and_not_synced_again() {
    let mut run = applied_before(&Builder::new().app("a", &[]).plan(), Health::Progressing);
    assert_eq!(run.steps(), ["0s a syncing 1 at r1 adopted", "0s a converging"]);
    run.assess("a", Health::Healthy);
    assert_eq!(run.steps(), ["0s a done: applied", "0s finished: succeeded"]);
    let sent = |effect: &Effect| matches!(effect, Effect::Sync { .. });
    assert!(!run.effects().iter().any(sent));
}
