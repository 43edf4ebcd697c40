//! Taking down: in reverse, one after the other, and naming what blocks.

use std::sync::Arc;

use tiphys_model::Plan;
use tiphys_run::{Action, Answer, Deleting, Effect, Stamp};

use crate::platform::Builder;
use crate::run::{Run, current};

fn chain() -> Arc<Plan> {
    Builder::new().app("a", &[]).app("b", &["a"]).app("c", &["b"]).timeouts(300, 100).plan()
}

fn teardown() -> Run {
    Run::listed(&chain(), Action::Teardown, |_| Some(current()))
}

fn delete_in_progress(run: &mut Run, app: &str) {
    run.answer(app, Answer::DeleteAccepted);
    let finalizers = vec!["foreground".into()];
    run.show(app, |seen| seen.deleting = Some(Deleting { since: Stamp(1), finalizers }));
}

#[test]
fn nothing_is_removed_before_all_that_depends_on_it_is_gone() {
    let mut run = teardown();
    assert_eq!(run.effects(), [Effect::Delete { app: run.app("c") }]);
    delete_in_progress(&mut run, "c");
    assert_eq!(run.effects(), [], "being deleted is not gone");
    run.show_gone("c");
    assert_eq!(run.effects(), [Effect::Delete { app: run.app("b") }]);
    run.show_gone("b");
    run.show_gone("a");
    assert_eq!(
        run.log(),
        [
            "0s begun",
            "0s a waits",
            "0s b waits",
            "0s c removing",
            "0s c removed",
            "0s b removing",
            "0s b removed",
            "0s a removing",
            "0s a removed",
            "0s finished: succeeded",
        ]
    );
}

#[test]
fn what_is_gone_already_is_not_asked_to_go() {
    let mut run = Run::listed(&chain(), Action::Teardown, |_| None);
    assert_eq!(run.effects(), []);
    assert_eq!(
        run.steps(),
        [
            "0s a waits",
            "0s b waits",
            "0s c removed",
            "0s b removed",
            "0s a removed",
            "0s finished: succeeded"
        ]
    );
}

#[test]
fn what_does_not_go_away_is_named_and_keeps_what_it_depends_on() {
    let mut run = teardown();
    delete_in_progress(&mut run, "c");
    run.wait(99);
    run.steps();
    run.wait(1);
    assert_eq!(
        run.steps(),
        [
            "100s c timed out: it was not removed before the timeout: waiting for foreground",
            "100s b skipped: c was lost",
            "100s a skipped: b was lost",
            "100s finished: failed",
        ]
    );
}

#[test]
fn a_refused_removal_is_final() {
    let mut run = teardown();
    run.steps();
    run.answer("c", Answer::DeleteRefused { message: "permission denied".into() });
    assert_eq!(
        run.steps(),
        [
            "0s c errored: Argo CD refused the request: permission denied",
            "0s b skipped: c was lost",
            "0s a skipped: b was lost",
            "0s finished: failed",
        ]
    );
}

#[test]
fn a_removal_that_shows_no_effect_is_asked_for_again() {
    let mut run = teardown();
    let app = run.app("c");
    run.effects();
    run.wait(30);
    assert_eq!(run.effects(), [Effect::Delete { app }, Effect::Read { app, number: 1 }]);
    delete_in_progress(&mut run, "c");
    run.wait(30);
    assert_eq!(run.effects(), [Effect::Read { app, number: 2 }], "it is under way");
}

#[test]
fn removals_keep_to_the_concurrency() {
    let plan = Builder::new().concurrency(1).app("a", &[]).app("b", &[]).plan();
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    assert_eq!(run.steps(), ["0s b removing"]);
    run.show_gone("b");
    assert_eq!(run.steps(), ["0s b removed", "0s a removing"]);
}

#[test]
fn what_comes_back_holds_up_what_waits() {
    let builder = Builder::new().app("a", &[]).app("b", &["a"]).app("c", &["a"]);
    let mut run = Run::listed(&builder.plan(), Action::Teardown, |_| Some(current()));
    run.show_gone("c");
    run.steps();
    run.show_again("c");
    run.show_gone("b");
    assert_eq!(
        run.steps(),
        ["0s c ails: there again", "0s a waits for c to be well", "0s b removed"]
    );
    run.show_gone("c");
    assert_eq!(run.steps(), ["0s c recovered", "0s a removing"]);
}

#[test]
fn what_stays_after_it_came_back_keeps_what_waits() {
    let builder = Builder::new()
        .app("a", &[])
        .app("b", &["a"])
        .timeouts(300, 1000)
        .app("c", &["a"])
        .timeouts(300, 120);
    let mut run = Run::listed(&builder.plan(), Action::Teardown, |_| Some(current()));
    delete_in_progress(&mut run, "b");
    run.show_gone("c");
    run.show_again("c");
    run.steps();
    run.wait(119);
    run.show("c", |_| {});
    assert_eq!(run.steps(), Vec::<String>::new());
    run.wait(1);
    assert_eq!(run.steps(), ["120s a skipped: c stayed unhealthy"]);
    run.wait(300);
    run.show_gone("b");
    assert_eq!(run.steps(), ["420s b removed", "420s finished: failed"]);
}
