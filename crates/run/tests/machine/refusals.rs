//! What the machine refuses, whoever proposes it: the last line of defence against a mistake in
//! deciding. Each case is an event that must not happen in the state that the run is in.

use std::time::Duration;

use tiphys_model::{AppIx, Health, Scope};
use tiphys_run::{
    Action, Answer, Attempt, Because, Cause, Event, Evidence, FailState, How, Machine, Phase,
    Signal, SyncAnswer, Time, Verdict, WaitingOn,
};

use crate::platform::Builder;
use crate::run::{Run, current, fresh, revisions};

const AT: Time = Time::START;

/// Why the machine does not accept an event.
fn refused_at(machine: &Machine, at: Time, event: &Event) -> &'static str {
    match machine.clone().apply(at, event) {
        Ok(()) => panic!("{event:?} was accepted"),
        Err(illegal) => {
            assert_eq!(&*illegal.event, event);
            illegal.why
        }
    }
}

fn refused(run: &Run, event: &Event) -> &'static str {
    refused_at(run.machine(), AT, event)
}

fn after(seconds: u64) -> Time {
    AT + Duration::from_secs(seconds)
}

fn failed(app: AppIx) -> Event {
    let (cause, evidence) = (Cause::SyncTimeout, Evidence::default());
    Event::Failed { app, state: FailState::Failed, cause, evidence }
}

fn retrying(app: AppIx) -> Event {
    Event::Retrying { app, cause: Cause::SyncTimeout, until: AT }
}

impl Run {
    /// A first attempt for an app, as the machine itself would propose it.
    fn attempt(&self, app: &str) -> Event {
        let borrowed = Run::deploy(&Builder::new().app(app, &[]).plan()).operation(app);
        let attempt = Attempt {
            operation: borrowed,
            revisions: revisions("r1"),
            pinned: true,
            before: None,
            adopted: None,
        };
        Event::Syncing { app: self.app(app), attempt }
    }
}

/// `a` is in progress, `b` waits for it.
fn one_in_progress() -> Run {
    Run::deploy(&Builder::new().app("a", &[]).app("b", &["a"]).retry(1, 10, 2, 30).plan())
}

#[test]
fn nothing_happens_after_the_end() {
    let mut run = one_in_progress();
    let app = run.app("b");
    run.signal(Signal::Terminate);
    for event in [
        Event::Waiting { app, on: WaitingOn::Prerequisites },
        Event::Held,
        Event::Finished { verdict: Verdict::Succeeded, unhealthy: Vec::new() },
    ] {
        assert_eq!(refused(&run, &event), "the run is over");
    }
}

#[test]
fn nothing_starts_before_the_beginning_and_that_comes_once() {
    let plan = Builder::new().app("a", &[]).plan();
    let app = AppIx::new(0);
    let not_begun = Machine::new(plan.clone(), Action::Deploy, 1);
    let current = Event::Done { app, how: How::AlreadyCurrent };
    assert_eq!(refused_at(&not_begun, AT, &current), "the run has not begun");
    let begun = Run::deploy(&plan);
    assert_eq!(refused(&begun, &Event::Begun), "it has begun");
}

#[test]
fn nothing_starts_before_what_it_waits_for_is_satisfied() {
    let mut run = one_in_progress();
    let app = run.app("b");
    let why = "what it waits for is not satisfied";
    assert_eq!(refused(&run, &run.attempt("b")), why);
    assert_eq!(refused(&run, &Event::Done { app, how: How::AlreadyCurrent }), why);
    run.complete("a");
    assert_eq!(run.steps().last().map(String::as_str), Some("0s b syncing 1 at r1"));

    let plan = Builder::new().app("a", &[]).app("b", &["a"]).plan();
    let run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    let app = run.app("a");
    assert_eq!(refused(&run, &Event::Removing { app }), why);
    assert_eq!(refused(&run, &Event::Removed { app }), why);
}

#[test]
fn nothing_starts_out_of_turn_or_after_an_interrupt() {
    let builder = Builder::new().concurrency(1).app("a", &[]).app("b", &[]);
    let mut run = Run::deploy(&builder.plan());
    assert_eq!(refused(&run, &run.attempt("b")), "it is not its turn");
    run.signal(Signal::Interrupt);
    assert_eq!(refused(&run, &run.attempt("b")), "the run was interrupted");
}

#[test]
fn nothing_starts_before_all_outside_the_scope_is_verified() {
    let scope = Scope::app(&tiphys_model::AppName::parse("b").unwrap());
    let plan = Builder::new().app("a", &[]).app("b", &["a"]).plan_of(&scope);
    let run = Run::listed(&plan, Action::Deploy, |_| Some(fresh()));
    let why = "apps outside the scope have not been verified";
    assert_eq!(refused(&run, &run.attempt("b")), why);
    let not_begun = Machine::new(plan, Action::Deploy, 1);
    let verified = Event::Done { app: run.app("a"), how: How::AlreadyCurrent };
    assert_eq!(refused_at(&not_begun, AT, &verified), "the run has not begun");
}

#[test]
fn a_deployment_removes_nothing_and_a_teardown_syncs_nothing() {
    let deployment = one_in_progress();
    let app = deployment.app("b");
    assert_eq!(refused(&deployment, &Event::Removing { app }), "this run deploys");
    let plan = Builder::new().app("a", &[]).plan();
    let teardown = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    assert_eq!(refused(&teardown, &teardown.attempt("a")), "this run removes");
}

#[test]
fn an_attempt_begins_from_waiting_or_when_its_pause_is_over() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    let attempt = run.attempt("a");
    assert_eq!(refused(&run, &attempt), "it neither waits nor retries");
    run.refuse("a");
    assert_eq!(refused_at(run.machine(), after(9), &attempt), "its time has not come");
    let mut machine = run.machine().clone();
    machine.apply(after(10), &attempt).unwrap();
    let Phase::Syncing(syncing) = &machine.step(run.app("a")).phase else { panic!("it syncs") };
    assert_eq!(syncing.attempt, 2);
}

#[test]
fn what_belongs_to_an_attempt_needs_one() {
    let run = one_in_progress();
    let app = run.app("b");
    let message = || "timeout".into();
    for (event, why) in [
        (Event::Accepted { app, version: 1 }, "it does not sync"),
        (Event::Unanswered { app, message: message() }, "it does not sync"),
        (Event::ReadReturned { app }, "it does not sync"),
        (Event::Resent { app }, "it does not sync"),
        (Event::Converging { app }, "it does not sync"),
        (Event::Postponed { app, until: AT }, "there is no attempt that could be postponed"),
        (retrying(app), "there is no attempt that could have failed"),
        (Event::Done { app, how: How::Applied }, "it cannot be done from where it is"),
        (
            Event::RevisionMoved { app, from: revisions("r1"), to: revisions("r2") },
            "it is not in progress",
        ),
    ] {
        assert_eq!(refused(&run, &event), why, "{event:?}");
    }
}

#[test]
fn a_request_that_was_taken_is_neither_unanswered_nor_sent_again() {
    let mut run = one_in_progress();
    let app = run.app("a");
    assert_eq!(refused(&run, &Event::ReadReturned { app }), "nothing is unanswered");
    run.answer_sync("a", SyncAnswer::Accepted { version: 1 });
    let message = "timeout".into();
    assert_eq!(refused(&run, &Event::Unanswered { app, message }), "it has been accepted");
    assert_eq!(refused(&run, &Event::Resent { app }), "it has been accepted");
}

#[test]
fn refreshes_of_an_app_come_one_at_a_time_and_five_seconds_apart() {
    let plan = Builder::new().app("a", &[]).plan();
    let mut run = Run::listed(&plan, Action::Deploy, |_| Some(fresh()));
    let app = run.app("a");
    let ask = Event::RefreshAsked { app };
    assert_eq!(refused_at(run.machine(), after(29), &ask), "a refresh is in flight");
    run.machine().clone().apply(after(30), &ask).unwrap();
    run.refreshed("a");
    let why = "a refresh was asked for less than five seconds ago";
    assert_eq!(refused_at(run.machine(), after(4), &ask), why);
    run.machine().clone().apply(after(5), &ask).unwrap();
    assert_eq!(refused(&run, &Event::Refreshed { app }), "no refresh was asked for");
}

#[test]
fn what_is_over_is_over() {
    let mut run = one_in_progress();
    run.complete("a");
    let app = run.app("a");
    let attempt = run.attempt("a");
    for (event, why) in [
        (failed(app), "it is over"),
        (Event::Skipped { app, because: Because::Deadline }, "it has started"),
        (Event::Waiting { app, on: WaitingOn::Prerequisites }, "it is not waiting"),
        (Event::Done { app, how: How::Applied }, "it cannot be done from where it is"),
        (retrying(app), "there is no attempt that could have failed"),
        (attempt, "it neither waits nor retries"),
    ] {
        assert_eq!(refused(&run, &event), why, "{event:?}");
    }
}

#[test]
fn what_has_started_is_neither_skipped_nor_waiting() {
    let run = one_in_progress();
    let app = run.app("a");
    let skipped = Event::Skipped { app, because: Because::Deadline };
    assert_eq!(refused(&run, &skipped), "it has started");
    let waiting = Event::Waiting { app, on: WaitingOn::Prerequisites };
    assert_eq!(refused(&run, &waiting), "it is not waiting");
}

#[test]
fn only_what_was_done_can_ail_and_only_what_ails_can_recover() {
    let mut run = one_in_progress();
    let app = run.app("a");
    let ailing = Event::Ailing { app, health: Some(Health::Degraded) };
    assert_eq!(refused(&run, &ailing), "it was not done");
    run.complete("a");
    assert_eq!(refused(&run, &Event::Recovered { app }), "it is so already");
    run.assess("a", Health::Degraded);
    assert_eq!(refused(&run, &ailing), "it is so already");
}

#[test]
fn only_what_waits_or_is_going_can_be_removed() {
    let plan = Builder::new().app("a", &[]).app("b", &["a"]).plan();
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    run.show_gone("b");
    let app = run.app("b");
    assert_eq!(refused(&run, &Event::Removing { app }), "it does not wait");
    assert_eq!(refused(&run, &Event::Removed { app }), "it was not being removed");
}

#[test]
fn an_errand_is_for_what_is_over_and_is_answered_once() {
    let mut run = Run::deploy(&Builder::new().handed_off().app("a", &[]).app("b", &[]).plan());
    let app = run.app("a");
    assert_eq!(refused(&run, &Event::HandOffAsked { app }), "it is not over");
    assert_eq!(refused(&run, &Event::TerminateAsked { app }), "it is not over");
    run.complete("a");
    run.answer("a", Answer::HandedOff);
    assert_eq!(refused(&run, &Event::HandedOff { app }), "nobody asked for it");
    assert_eq!(refused(&run, &Event::Terminated { app }), "nobody asked for it");
}
