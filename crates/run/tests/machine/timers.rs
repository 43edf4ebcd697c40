//! When a run wants to be woken although nothing happens: neither too late nor in vain.

use std::time::Duration;

use tiphys_model::Health;
use tiphys_run::{Action, Machine, Signal, Time};

use crate::platform::Builder;
use crate::run::Run;

fn at(seconds: u64) -> Time {
    Time::START + Duration::from_secs(seconds)
}

#[test]
fn a_run_that_has_not_begun_or_is_over_sleeps_for_ever() {
    let plan = Builder::new().app("a", &[]).plan();
    assert_eq!(Machine::new(plan.clone(), Action::Deploy, 1).wake_at(), None);
    let mut run = Run::deploy(&plan);
    run.signal(Signal::Terminate);
    assert_eq!(run.wake_at(), None);
}

#[test]
fn a_run_in_which_nothing_is_due_sleeps_until_its_deadline() {
    let builder = Builder::new().deadline(3600).app("a", &[]).app("b", &["a"]);
    let mut run = Run::deploy(&builder.plan());
    assert_eq!(run.wake_at(), Some(at(30)), "the sync is to be looked at");
    run.refuse("a");
    assert_eq!(run.wake_at(), None, "it is over");

    let plan = Builder::new().deadline(20).app("a", &[]).plan();
    assert_eq!(Run::deploy(&plan).wake_at(), Some(at(20)), "before the first look");
}

#[test]
fn a_pause_ends_when_it_said_and_an_interrupt_ends_it_for_good() {
    let builder = Builder::new().deadline(3600).app("a", &[]).retry(1, 10, 2, 30).app("b", &[]);
    let mut run = Run::deploy(&builder.plan());
    run.refuse("a");
    assert_eq!(run.wake_at(), Some(at(10)));
    run.signal(Signal::Interrupt);
    assert_eq!(run.wake_at(), Some(at(30)), "only `b` is looked at");
    run.wait(20);
    assert_eq!(run.steps().last().map(String::as_str), Some("0s interrupted: Interrupt"));
}

/// `a` is Done and unhealthy since 10s, for at most 120s; `c` needs it and waits for `b`, too;
/// `d` needs it and has started.
fn with_an_ailing_dependency() -> Run {
    let builder = Builder::new()
        .deadline(3600)
        .app("a", &[])
        .timeouts(300, 120)
        .app("b", &[])
        .timeouts(1000, 1000)
        .app("c", &["a", "b"])
        .app("d", &["a"])
        .timeouts(1000, 1000);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.accept("b");
    run.accept("d");
    run.wait(10);
    run.assess("a", Health::Degraded);
    run
}

#[test]
fn an_unhealthy_app_is_given_up_when_its_time_is_over_if_something_waits_for_it() {
    let mut run = with_an_ailing_dependency();
    run.steps();
    run.wait(119);
    assert_eq!(run.steps(), Vec::<String>::new());
    run.wait(1);
    assert_eq!(run.steps(), ["130s c skipped: a stayed unhealthy"]);
    run.wait(200);
    assert_eq!(run.steps(), Vec::<String>::new(), "nobody is told twice");
}

#[test]
fn an_unhealthy_app_wakes_nobody_once_nothing_waits_for_it() {
    let mut run = with_an_ailing_dependency();
    run.refuse("b");
    assert_eq!(run.steps().last().map(String::as_str), Some("10s c skipped: b was lost"));
    run.wait(200);
    assert_eq!(run.steps(), Vec::<String>::new());
}
