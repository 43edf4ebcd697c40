//! The view that every display reads: a fold of the log, and of nothing else.

use std::sync::Arc;

use tiphys_model::{AppName, Health, Plan, Scope};
use tiphys_run::{
    Action, Answer, AppState, AppView, EventKind, EventLine, FailState, How, RunView, Signal, Time,
    Verdict,
};

use crate::platform::Builder;
use crate::run::{Run, current};

impl Run {
    /// The view after all that has happened.
    fn view(&mut self) -> RunView {
        let mut view = RunView::default();
        for line in self.lines() {
            view.fold(&line);
        }
        view
    }
}

fn app<'a>(view: &'a RunView, name: &str) -> &'a AppView {
    view.app(&AppName::parse(name).unwrap()).unwrap()
}

fn first_line(plan: &Arc<Plan>) -> EventLine {
    Run::deploy(plan).lines().remove(0)
}

/// Each app with its word, in the order in which they are shown.
fn words(view: &RunView) -> Vec<String> {
    view.apps().map(|(name, app)| format!("{name} {}", app.state.word())).collect()
}

#[test]
fn with_the_first_line_every_app_waits_in_plan_order() {
    // The longest remaining path comes first in the plan, so the names are out of order.
    let plan = Builder::new().app("a", &[]).typical(1).app("b", &[]).app("c", &["b"]).plan();
    let mut view = RunView::default();
    assert!(view.started.is_none() && view.apps().next().is_none());
    view.fold(&first_line(&plan));
    assert_eq!(words(&view), ["b waiting", "a waiting", "c waiting"]);
    assert!(view.started.is_some() && view.finished.is_none());
    assert!(view.app(&AppName::parse("nobody").unwrap()).is_none());
}

#[test]
fn typical_times_and_ranks_are_those_of_the_plan() {
    let builder = || {
        Builder::new()
            .app("a", &[])
            .app("b", &["a"])
            .typical(600)
            .app("c", &["a"])
            .app("d", &["b", "c"])
            .typical(5)
            .app("e", &[])
    };
    // Within a scope, what lies outside takes no time.
    let scope = Scope::app(&AppName::parse("d").unwrap());
    for plan in [builder().plan(), builder().plan_of(&scope)] {
        let mut view = RunView::default();
        view.fold(&first_line(&plan));
        let seen: Vec<_> = view.apps().map(|(name, app)| (name, app.typical, app.rank)).collect();
        let planned = plan.apps.iter().map(|app| (&app.app.name, app.typical(), app.rank));
        assert_eq!(seen, planned.collect::<Vec<_>>());
    }
}

#[test]
fn another_first_line_begins_anew() {
    let mut killed = Run::deploy(&Builder::new().app("a", &[]).app("b", &["a"]).plan());
    killed.complete("a");
    let mut view = killed.view();
    let plan = Builder::new().app("b", &[]).plan();
    view.fold(&first_line(&plan));
    let mut fresh = RunView::default();
    fresh.fold(&first_line(&plan));
    assert_eq!(view, fresh);
}

#[test]
fn an_app_is_shown_in_the_state_that_its_newest_line_tells_and_since_when() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    let mut view = RunView::default();
    run.wait(2);
    run.refuse("a");
    run.wait(10);
    run.sync("a");
    run.wait(3);
    run.assess("a", Health::Healthy);
    let mut shown = Vec::new();
    for line in run.lines() {
        view.fold(&line);
        let app = app(&view, "a");
        shown.push(format!("{} since {}", app.state.word(), app.since.as_millis()));
    }
    shown.dedup();
    assert_eq!(
        shown,
        [
            "waiting since 0",
            "syncing since 0",
            "retrying since 2000",
            "syncing since 12000",
            "converging since 12000",
            "done since 15000",
        ]
    );
}

#[test]
fn a_step_has_started_with_its_first_attempt() {
    let mut run =
        Run::deploy(&Builder::new().app("a", &[]).app("b", &["a"]).app("c", &["b"]).plan());
    run.wait(4);
    run.complete("a");
    run.wait(4);
    run.refuse("b");
    let view = run.view();
    let started = |name| app(&view, name).started.map(Time::as_millis);
    assert_eq!((started("a"), started("b"), started("c")), (Some(0), Some(4000), None));
    assert_eq!(words(&view), ["a done", "b failed", "c skipped"]);
}

#[test]
fn the_end_of_the_run_its_hold_and_its_interrupt_are_seen() {
    let mut run = Run::deploy(&Builder::new().handed_off().app("a", &[]).app("b", &[]).plan());
    run.complete("a");
    run.answer("a", Answer::HandedOff);
    run.accept("b");
    run.wait(6);
    run.signal(Signal::Interrupt);
    run.succeed("b");
    let view = run.view();
    assert_eq!(
        view.finished.as_ref().map(|finished| finished.verdict),
        Some(Verdict::Interrupted(Signal::Interrupt))
    );
    assert_eq!(view.started.as_ref().map(|started| started.action), Some(Action::Deploy));
    assert!(view.interrupted);
    assert!(!view.held, "nothing has said so");
    assert_eq!(view.elapsed.as_millis(), 6000);
    assert_eq!((app(&view, "a").handed_off, app(&view, "b").handed_off), (true, false));
}

#[test]
fn a_removed_app_is_shown_as_removed() {
    let plan = Builder::new().app("a", &[]).app("b", &["a"]).plan();
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    run.wait(5);
    run.show_gone("b");
    assert_eq!(words(&run.view()), ["a removing", "b removed"]);
}

#[test]
fn a_line_about_an_app_of_another_plan_changes_nothing() {
    let plan = Builder::new().app("a", &[]).plan();
    let mut view = RunView::default();
    view.fold(&first_line(&plan));
    let mut other = Run::deploy(&Builder::new().app("b", &[]).plan());
    let syncing = |line: &EventLine| matches!(line.kind, EventKind::StepSyncing { .. });
    view.fold(&other.lines().into_iter().find(syncing).unwrap());
    assert_eq!(words(&view), ["a waiting"]);
}

#[test]
fn what_runs_is_not_over_and_what_waits_is_neither() {
    let failed = |state| AppState::Failed {
        state,
        cause: String::new(),
        evidence: tiphys_run::Evidence::default(),
        hint: String::new(),
    };
    let waits = [AppState::Waiting { reason: None }];
    let runs = [
        AppState::Syncing { attempt: 1 },
        AppState::Converging,
        AppState::Retrying { cause: String::new() },
        AppState::Removing,
    ];
    let over = [
        AppState::Done { how: How::Applied, took_ms: 0 },
        failed(FailState::Failed),
        failed(FailState::Errored),
        failed(FailState::TimedOut),
        AppState::Skipped { because: Vec::new(), reason: String::new() },
        AppState::Removed { took_ms: 0 },
    ];
    let of = |state: &AppState| (state.is_running(), state.is_over());
    assert!(waits.iter().all(|state| of(state) == (false, false)));
    assert!(runs.iter().all(|state| of(state) == (true, false)));
    assert!(over.iter().all(|state| of(state) == (false, true)));
    assert_eq!(
        over.each_ref().map(AppState::word),
        ["done", "failed", "errored", "timed-out", "skipped", "removed"]
    );
}
