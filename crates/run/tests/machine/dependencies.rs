//! The start condition: every dependency is Done, and Healthy in its newest look.

use tiphys_model::Health;
use tiphys_run::Action;

use crate::platform::Builder;
use crate::run::{Run, current};

#[test]
fn a_dependant_starts_when_all_it_needs_is_done() {
    let builder = Builder::new().app("a", &[]).app("b", &[]).app("c", &["a", "b"]);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.sync("b");
    run.assess("b", Health::Progressing);
    run.steps();
    run.assess("b", Health::Healthy);
    assert_eq!(run.steps(), ["0s b done: applied", "0s c syncing 1 at r1"]);
    run.complete("c");
    assert_eq!(run.steps(), ["0s c converging", "0s c done: applied", "0s finished: succeeded"]);
}

#[test]
fn news_of_an_app_that_waits_do_not_start_it() {
    let builder = Builder::new().app("a", &[]).app("b", &["a"]);
    let mut run = Run::deploy(&builder.plan());
    run.steps();
    run.show("b", |seen| *seen = current());
    run.show_gone("b");
    run.show_again("b");
    assert_eq!(run.steps(), Vec::<String>::new());
}

/// `c` needs `a` and `b`; `a` is Done and has turned unhealthy, `b` is in progress.
fn with_an_ailing_dependency() -> Run {
    let builder =
        Builder::new().app("a", &[]).timeouts(300, 120).app("b", &[]).app("c", &["a", "b"]);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.steps();
    run.wait(10);
    run.assess("a", Health::Degraded);
    assert_eq!(run.steps(), ["10s a ails: Degraded", "10s c waits for a to be well"]);
    run.complete("b");
    assert_eq!(run.steps(), ["10s b converging", "10s b done: applied"]);
    run
}

#[test]
fn a_dependency_that_turned_unhealthy_is_waited_for() {
    let mut run = with_an_ailing_dependency();
    run.wait(119);
    run.show("a", |_| {});
    assert_eq!(run.steps(), Vec::<String>::new());
    run.assess("a", Health::Healthy);
    assert_eq!(run.steps(), ["129s a recovered", "129s c syncing 1 at r1"]);
}

#[test]
fn a_dependency_that_stays_unhealthy_for_its_health_timeout_skips_what_waits() {
    let mut run = with_an_ailing_dependency();
    run.wait(120);
    assert_eq!(run.steps(), ["130s c skipped: a stayed unhealthy", "130s finished: failed"]);
}

#[test]
fn a_dependency_that_vanished_is_unhealthy() {
    let builder = Builder::new().app("a", &[]).app("b", &[]).app("c", &["a", "b"]);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.steps();
    run.show_gone("a");
    assert_eq!(run.steps(), ["0s a ails: Missing", "0s c waits for a to be well"]);
}

#[test]
fn what_has_started_is_not_stopped_when_its_dependency_turns_unhealthy() {
    let builder = Builder::new().app("a", &[]).app("b", &["a"]);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.steps();
    run.assess("a", Health::Degraded);
    run.complete("b");
    assert_eq!(
        run.steps(),
        ["0s a ails: Degraded", "0s b converging", "0s b done: applied", "0s finished: failed"]
    );
}

#[test]
fn an_app_that_is_unhealthy_at_the_end_makes_the_run_a_failure() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).app("b", &[]).plan());
    run.complete("a");
    run.assess("a", Health::Progressing);
    run.steps();
    run.complete("b");
    assert_eq!(run.steps(), ["0s b converging", "0s b done: applied", "0s finished: failed"]);
}

#[test]
fn an_app_that_recovers_before_the_end_does_not() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).app("b", &[]).plan());
    run.complete("a");
    run.assess("a", Health::Degraded);
    run.assess("a", Health::Healthy);
    run.steps();
    run.complete("b");
    assert_eq!(run.steps(), ["0s b converging", "0s b done: applied", "0s finished: succeeded"]);
}

#[test]
fn a_failure_skips_all_that_depends_on_it_and_nothing_else() {
    let builder = Builder::new().app("a", &[]).app("b", &["a"]).app("c", &["b"]).app("d", &[]);
    let mut run = Run::deploy(&builder.plan());
    run.steps();
    run.refuse("a");
    run.complete("d");
    assert_eq!(
        run.steps(),
        [
            "0s a failed: the sync failed: denied",
            "0s b skipped: a was lost",
            "0s c skipped: b was lost",
            "0s d converging",
            "0s d done: applied",
            "0s finished: failed",
        ]
    );
}

#[test]
fn what_is_current_is_done_without_a_sync() {
    let plan = Builder::new().app("a", &[]).app("b", &["a"]).plan();
    let mut run = Run::listed(&plan, Action::Deploy, |_| Some(current()));
    run.effects();
    run.refreshed("b");
    assert_eq!(run.steps(), ["0s b waits"]);
    run.refreshed("a");
    assert_eq!(
        run.steps(),
        ["0s a done: already current", "0s b done: already current", "0s finished: succeeded"]
    );
    assert_eq!(run.effects(), []);
}

#[test]
fn nothing_is_decided_from_a_look_that_is_older_than_the_run() {
    let plan = Builder::new().app("a", &[]).plan();
    let mut run = Run::listed(&plan, Action::Deploy, |_| Some(current()));
    run.wait(4);
    assert_eq!(run.log(), ["0s begun", "0s a refresh asked"]);
}
