//! Runs in which somebody else has a say in when apps start.

use tiphys_run::{Event, Pending, Signal, Time};

use crate::platform::Builder;
use crate::run::Run;

#[test]
fn nothing_starts_before_it_is_admitted() {
    let mut run = Run::admitted(&Builder::new().app("a", &[]).app("b", &[]).plan());
    assert!(run.steps().is_empty());
    run.admit("b");
    assert_eq!(run.steps(), ["0s b admitted", "0s b syncing 1 at r1"]);
    run.admit("b");
    assert!(run.steps().is_empty(), "once is enough");
}

#[test]
fn admission_is_not_enough_inv_1() {
    let mut run = Run::admitted(&Builder::new().app("a", &[]).app("b", &["a"]).plan());
    run.admit("b");
    assert_eq!(run.steps(), ["0s b waits", "0s b admitted"]);
    run.admit("a");
    run.complete("a");
    assert_eq!(
        run.steps(),
        [
            "0s a admitted",
            "0s a syncing 1 at r1",
            "0s a converging",
            "0s a done: applied",
            "0s b syncing 1 at r1",
        ]
    );
}

#[test]
fn limits_and_rank_hold_among_what_is_admitted() {
    let builder = Builder::new().concurrency(1).app("a", &[]).app("b", &[]).app("c", &["b"]);
    let mut run = Run::admitted(&builder.plan());
    run.admit("a");
    run.admit("b");
    assert_eq!(
        run.steps(),
        ["0s c waits", "0s a admitted", "0s a syncing 1 at r1", "0s b admitted",],
        "the longer path was not admitted in time"
    );
    let b = run.app("b");
    assert_eq!(run.machine().pending(b, None), Pending::Attempt, "it waits for its turn");
}

fn is_start(event: &Event) -> bool {
    matches!(event, Event::Syncing { .. })
}

#[test]
fn the_machine_refuses_a_start_that_was_not_admitted() {
    let plan = Builder::new().app("a", &[]).plan();
    let free = {
        let mut run = Run::deploy(&plan);
        run.events().into_iter().map(|(_, event)| event).find(is_start).unwrap()
    };
    let mut machine = Run::admitted(&plan).machine().clone();
    let illegal = machine.apply(Time::START, &free).unwrap_err();
    assert_eq!(illegal.why, "it has not been admitted");
}

#[test]
fn what_depends_on_a_failure_is_skipped_without_being_admitted() {
    let builder = Builder::new().app("a", &[]).retry(0, 1, 1, 1).app("b", &["a"]);
    let mut run = Run::admitted(&builder.plan());
    run.admit("a");
    run.refuse("a");
    run.admit("b");
    assert_eq!(
        run.steps(),
        [
            "0s b waits",
            "0s a admitted",
            "0s a syncing 1 at r1",
            "0s a failed: the sync failed: denied",
            "0s b skipped: a was lost",
            "0s finished: failed",
        ]
    );
}

#[test]
fn a_run_that_is_interrupted_waits_for_no_admission() {
    let mut run = Run::admitted(&Builder::new().app("a", &[]).plan());
    run.signal(Signal::Interrupt);
    run.admit("a");
    assert_eq!(run.steps().len(), 2, "interrupted and finished");
}
