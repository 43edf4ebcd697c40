//! Sync requests of which nobody knows whether they arrived: looked for, and sent again only if
//! nothing shows them.

use tiphys_run::{Effect, LastOperation, Operation, OperationPhase, SyncAnswer};

use crate::platform::Builder;
use crate::run::{Run, revisions};

#[test]
fn a_request_without_answer_is_sent_again_under_the_same_id_once_a_look_has_not_found_it() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    let (app, operation) = (run.app("a"), run.operation("a"));
    let sync = |number| {
        let revisions = revisions("r1");
        Effect::Sync { app, operation: operation.clone(), revisions, number }
    };
    assert_eq!(run.effects(), [Effect::Refresh { app, number: 1 }, sync(2)]);
    run.answer_sync("a", SyncAnswer::Unanswered { message: "timeout".into() });
    assert_eq!(run.effects(), [Effect::Read { app, number: 3 }]);
    run.wait(20);
    assert_eq!(run.effects(), [], "nobody has looked yet");
    run.looked("a");
    assert_eq!(run.effects(), [sync(4)]);
    assert_eq!(run.steps(), ["0s a syncing 1 at r1", "0s a unanswered: timeout", "20s a resent"]);
}

#[test]
fn a_request_is_not_sent_again_before_five_seconds_have_passed() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.answer_sync("a", SyncAnswer::Unanswered { message: "timeout".into() });
    run.looked("a");
    run.wait(60);
    assert_eq!(run.steps(), ["0s a syncing 1 at r1", "0s a unanswered: timeout", "5s a resent"]);
}

#[test]
fn a_look_that_got_lost_is_made_up_for_by_the_next() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.answer_sync("a", SyncAnswer::Unanswered { message: "timeout".into() });
    run.wait(30);
    run.looked("a");
    assert_eq!(
        run.log()[3..],
        [
            "0s a syncing 1 at r1",
            "0s a unanswered: timeout",
            "30s a looked at",
            "30s a look returned",
            "30s a resent",
        ]
    );
}

#[test]
fn a_request_without_answer_that_turns_up_is_not_sent_again() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.answer_sync("a", SyncAnswer::Unanswered { message: "timeout".into() });
    let operation = Operation { id: Some(run.operation("a")), by: "tiphys".into() };
    run.show("a", |seen| seen.operation = Some(operation));
    run.looked("a");
    run.wait(20);
    assert_eq!(run.steps(), ["0s a syncing 1 at r1", "0s a unanswered: timeout"]);
}

#[test]
fn a_request_that_never_gets_through_is_an_error_and_not_a_timeout() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).timeouts(100, 300).plan());
    run.answer_sync("a", SyncAnswer::Unanswered { message: "no route to host".into() });
    run.steps();
    run.wait(100);
    assert_eq!(
        run.steps(),
        ["100s a errored: cannot reach Argo CD: no route to host", "100s finished: failed"]
    );
}

#[test]
fn a_request_without_answer_was_replaced_if_another_operation_has_ended_since() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    run.answer_sync("a", SyncAnswer::Unanswered { message: "timeout".into() });
    run.steps();
    run.show("a", |seen| {
        seen.last = Some(LastOperation {
            operation: Operation { id: None, by: "alice".into() },
            phase: OperationPhase::Succeeded,
            finished_at: seen.reconciled_at,
            revisions: revisions("r1"),
            message: "synced".into(),
        });
    });
    assert_eq!(run.steps(), Vec::<String>::new(), "that may be older than our request");
    run.looked("a");
    let replaced = "0s a retrying at 10s: an operation of alice replaced the sync of this run";
    assert_eq!(run.steps(), [replaced]);
}
