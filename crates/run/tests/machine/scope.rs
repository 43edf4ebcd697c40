//! Runs over a part of the platform, and what goes back to Argo CD.

use std::sync::Arc;

use tiphys_model::{AppName, Health, Plan, Scope, StackName};
use tiphys_run::{Action, Answer, Effect, Observation};

use crate::platform::Builder;
use crate::run::{Run, current, fresh};

/// `b` and what it needs: `a` lies outside the scope.
fn deploy_b(a: impl Fn() -> Option<Observation>) -> Run {
    let scope = Scope::app(&AppName::parse("b").unwrap());
    let plan = Builder::new().app("a", &[]).app("b", &["a"]).plan_of(&scope);
    Run::listed(&plan, Action::Deploy, |name| if name == "a" { a() } else { Some(fresh()) })
}

#[test]
fn what_lies_outside_the_scope_must_be_healthy_and_is_never_synced() {
    let mut run = deploy_b(|| Some(current()));
    run.refreshed("b");
    run.show("a", |_| {});
    assert_eq!(run.steps(), ["0s b waits"], "`a` has not been verified");
    run.refreshed("a");
    assert_eq!(run.steps(), ["0s a done: already current", "0s b syncing 1 at r1"]);
    let a = run.app("a");
    let synced = |effect: &Effect| matches!(effect, Effect::Sync { app, .. } if *app == a);
    assert!(!run.effects().iter().any(synced));
}

#[test]
fn nothing_starts_before_all_outside_the_scope_is_verified() {
    let scope = Scope::stack(&StackName::parse("stack").unwrap());
    let builder = Builder::new().app("a", &[]).in_stack("other").app("b", &["a"]).app("c", &[]);
    let mut run = Run::listed(&builder.plan_of(&scope), Action::Deploy, |name| {
        Some(if name == "a" { current() } else { fresh() })
    });
    run.refreshed("c");
    assert_eq!(run.steps(), ["0s b waits"], "not even what does not need it");
    run.refreshed("a");
    assert_eq!(run.steps(), ["0s a done: already current", "0s c syncing 1 at r1"]);
}

#[test]
fn another_revision_outside_the_scope_is_good_enough_if_it_is_healthy() {
    let healthy_but_drifted = || Observation { health: Health::Healthy, ..fresh() };
    let mut run = deploy_b(|| Some(healthy_but_drifted()));
    run.refreshed("a");
    assert_eq!(run.steps(), ["0s b waits", "0s a done: already current"]);
}

#[test]
fn an_unhealthy_app_outside_the_scope_refuses_the_whole_run() {
    let mut run = deploy_b(|| Some(Observation { health: Health::Degraded, ..current() }));
    run.refreshed("b");
    run.refreshed("a");
    assert_eq!(
        run.steps(),
        [
            "0s b waits",
            "0s a failed: it is outside the scope and Degraded",
            "0s b skipped: a outside the scope",
            "0s finished: failed",
        ]
    );
}

#[test]
fn a_missing_app_outside_the_scope_refuses_the_whole_run() {
    let mut run = deploy_b(|| None);
    run.refreshed("a");
    assert_eq!(
        run.steps(),
        [
            "0s b waits",
            "0s a failed: Application not found",
            "0s b skipped: a outside the scope",
            "0s finished: failed",
        ]
    );
}

#[test]
fn an_app_is_handed_off_when_it_is_done_and_the_run_waits_for_that() {
    let mut run = Run::deploy(&Builder::new().handed_off().app("a", &[]).plan());
    run.effects();
    run.complete("a");
    run.steps();
    let app = run.app("a");
    assert_eq!(run.effects(), [Effect::HandOff { app }]);
    run.wait(29);
    run.show("a", |_| {});
    assert_eq!(run.effects(), [], "there is still time to answer");
    run.wait(1);
    assert_eq!(run.effects(), [Effect::HandOff { app }], "asked once more");
    run.answer("a", Answer::HandedOff);
    assert_eq!(
        run.steps(),
        ["30s a hand-off asked", "30s a handed off", "30s finished: succeeded"]
    );
}

/// It ails for longer than anything waits for it.
#[test]
fn an_app_that_stays_unhealthy_is_handed_off_all_the_same() {
    let builder = Builder::new().handed_off().app("a", &[]).timeouts(300, 10);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.assess("a", Health::Degraded);
    run.wait(29);
    run.effects();
    run.wait(1);
    assert_eq!(run.effects(), [Effect::HandOff { app: run.app("a") }], "asked once more");
}

#[test]
fn what_lies_outside_the_scope_is_not_handed_off() {
    let scope = Scope::app(&AppName::parse("b").unwrap());
    let plan = Builder::new().handed_off().app("a", &[]).app("b", &["a"]).plan_of(&scope);
    let mut run = Run::listed(&plan, Action::Deploy, |_| Some(current()));
    run.refreshed("a");
    run.refreshed("b");
    assert_eq!(
        run.steps(),
        [
            "0s b waits",
            "0s a done: already current",
            "0s b done: already current",
            "0s b hand-off asked"
        ]
    );
}

#[test]
fn an_app_that_failed_is_not_handed_off() {
    let mut run = Run::deploy(&Builder::new().handed_off().app("a", &[]).plan());
    run.refuse("a");
    assert_eq!(
        run.steps(),
        ["0s a syncing 1 at r1", "0s a failed: the sync failed: denied", "0s finished: failed"]
    );
}

/// `a` and `c` are in the scope; `b`, which lies between them, is not.
fn around_b() -> Arc<Plan> {
    let scope = Scope::stack(&StackName::parse("stack").unwrap());
    let builder = Builder::new().app("a", &[]).app("b", &["a"]).in_stack("other").app("c", &["b"]);
    builder.plan_of(&scope)
}

#[test]
fn a_teardown_is_refused_if_something_outside_the_scope_needs_what_goes() {
    let mut run = Run::listed(&around_b(), Action::Teardown, |_| Some(current()));
    assert_eq!(run.effects(), []);
    assert_eq!(
        run.steps(),
        [
            "0s a waits",
            "0s b waits",
            "0s b failed: it is outside the scope and depends on an app to be removed",
            "0s a skipped: b outside the scope",
            "0s c skipped: b outside the scope",
            "0s finished: failed",
        ]
    );
}

#[test]
fn a_teardown_is_not_held_up_by_what_is_gone_outside_the_scope() {
    let mut run = Run::listed(&around_b(), Action::Teardown, |name| (name != "b").then(current));
    run.show_gone("c");
    run.show_gone("a");
    assert_eq!(run.steps().last().map(String::as_str), Some("0s finished: succeeded"));
}

#[test]
fn a_teardown_leaves_what_it_needs_outside_the_scope_as_it_is() {
    let scope = Scope::app(&AppName::parse("b").unwrap());
    let plan = Builder::new().handed_off().app("a", &[]).app("b", &["a"]).plan_of(&scope);
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    assert_eq!(run.effects(), [Effect::Delete { app: run.app("b") }]);
    run.show_gone("b");
    assert_eq!(
        run.steps(),
        [
            "0s a waits",
            "0s a done: already current",
            "0s b removing",
            "0s b removed",
            "0s finished: succeeded",
        ]
    );
}

#[test]
fn an_app_waits_for_another_of_the_scope_through_one_that_lies_between() {
    let mut run = Run::listed(&around_b(), Action::Deploy, |name| {
        Some(if name == "b" { current() } else { fresh() })
    });
    for app in ["a", "b", "c"] {
        run.refreshed(app);
    }
    assert_eq!(
        run.steps(),
        ["0s b waits", "0s c waits", "0s b done: already current", "0s a syncing 1 at r1"]
    );
    run.complete("a");
    let steps = run.steps();
    assert_eq!(steps.last().map(String::as_str), Some("0s c syncing 1 at r1"), "{steps:?}");
}

#[test]
fn an_app_is_skipped_with_another_of_the_scope_through_one_that_lies_between() {
    let mut run = Run::listed(&around_b(), Action::Deploy, |name| {
        Some(if name == "b" { current() } else { fresh() })
    });
    for app in ["a", "b", "c"] {
        run.refreshed(app);
    }
    run.refuse("a");
    let steps = run.steps();
    let end = &steps[steps.len() - 2..];
    assert_eq!(end, ["0s c skipped: a was lost", "0s finished: failed"], "{steps:?}");
}

#[test]
fn a_teardown_keeps_the_order_through_what_is_gone_between() {
    let mut run = Run::listed(&around_b(), Action::Teardown, |name| (name != "b").then(current));
    assert_eq!(run.effects(), [Effect::Delete { app: run.app("c") }]);
    run.show_gone("c");
    assert_eq!(run.effects(), [Effect::Delete { app: run.app("a") }]);
}
