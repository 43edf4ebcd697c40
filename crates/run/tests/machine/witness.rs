//! Which refreshes a run asks for, and which it is spared.

use std::sync::Arc;

use tiphys_model::{Health, Plan, SyncStatus};
use tiphys_run::{Action, Clock, Condition, ConditionKind, Effect, Observation, Stamp};

use crate::platform::Builder;
use crate::run::{Run, current, fresh};

/// When Argo CD's settings changed, when it compared the apps, when the run began, and now.
const SETTLED: Stamp = Stamp(1_000);
const COMPARED: Stamp = Stamp(2_000);
const BEGUN: Stamp = Stamp(2_900);
const NOW: Stamp = Stamp(3_000);

fn compared() -> Observation {
    Observation { reconciled_at: Some(COMPARED), ..current() }
}

fn plan() -> Arc<Plan> {
    Builder::new().app("a", &[]).app("b", &["a"]).app("c", &["b"]).plan()
}

fn begin(look: impl Fn(&str) -> Observation) -> Run {
    let clock = Clock { settled: Some(SETTLED), begun: Some(BEGUN) };
    Run::with_clock(&plan(), Action::Deploy, clock, |app| Some(look(app)))
}

/// Of which apps a refresh was asked for since the last time this was asked.
fn refreshed(run: &mut Run) -> Vec<String> {
    let plan = run.machine().plan().clone();
    let effects = run.effects().into_iter();
    let refreshes = effects.filter(|effect| matches!(effect, Effect::Refresh { .. }));
    refreshes.map(|effect| plan.app(effect.app()).app.name.to_string()).collect()
}

/// Argo CD refreshes an app, and it is as before.
fn answer(run: &mut Run, app: &str) {
    run.show(app, |seen| seen.reconciled_at = Some(NOW));
    run.refreshed(app);
}

#[test]
fn one_refresh_is_enough_for_apps_that_are_current() {
    let mut run = begin(|_| compared());
    assert_eq!(refreshed(&mut run), ["a"]);
    assert_eq!(run.steps(), ["0s b waits", "0s c waits"]);
    answer(&mut run, "a");
    let done = ["a", "b", "c"].map(|app| format!("0s {app} done: already current"));
    assert_eq!(run.steps()[..3], done);
    assert_eq!(refreshed(&mut run), [""; 0]);
}

#[test]
fn each_cluster_has_a_witness_of_its_own() {
    let mut run = begin(|app| match app {
        "a" => compared(),
        _ => Observation { cluster: Some("edge".into()), ..compared() },
    });
    assert_eq!(refreshed(&mut run), ["a", "b"]);
    answer(&mut run, "a");
    assert_eq!(run.steps().last().unwrap(), "0s a done: already current");
    answer(&mut run, "b");
    assert!(run.steps().contains(&"0s c done: already current".to_owned()));
    assert_eq!(refreshed(&mut run), [""; 0]);
}

#[test]
fn whatever_may_be_otherwise_is_refreshed() {
    let odd: [(&str, Observation); 6] = [
        ("moving", Observation { pinned: false, ..compared() }),
        ("never compared", Observation { reconciled_at: None, ..compared() }),
        ("before the settings", Observation { reconciled_at: Some(SETTLED), ..compared() }),
        ("drifted", Observation { sync: SyncStatus::OutOfSync, ..compared() }),
        ("unwell", Observation { health: Health::Degraded, ..compared() }),
        ("not met", Observation { unmet: vec!["tcp".into()], ..compared() }),
    ];
    for (what, seen) in odd {
        let mut run = begin(|app| if app == "b" { seen.clone() } else { compared() });
        assert_eq!(refreshed(&mut run), ["a", "b"], "{what}");
    }
    let mut run = Run::listed(&plan(), Action::Deploy, |_| Some(compared()));
    assert_eq!(refreshed(&mut run), ["a", "b", "c"], "nobody knows when the settings changed");
    let mut run = begin(|_| fresh());
    assert_eq!(refreshed(&mut run), ["a", "b", "c"], "nobody has synced them");
}

#[test]
fn what_has_changed_before_the_witness_came_is_refreshed() {
    let mut run = begin(|_| compared());
    refreshed(&mut run);
    run.show("b", |seen| seen.sync = SyncStatus::OutOfSync);
    answer(&mut run, "a");
    assert_eq!(refreshed(&mut run), ["b"]);
    assert!(run.log().contains(&"0s c vouched for".to_owned()));
}

#[test]
fn a_comparison_that_is_too_old_is_made_again() {
    let mut run = begin(|_| compared());
    refreshed(&mut run);
    run.show("a", |seen| seen.reconciled_at = Some(Stamp(COMPARED.0 + 1_801)));
    run.refreshed("a");
    assert_eq!(refreshed(&mut run), ["b", "c"]);
}

#[test]
fn without_an_answer_of_the_witness_every_app_is_refreshed() {
    let mut run = begin(|_| compared());
    assert_eq!(refreshed(&mut run), ["a"]);
    run.wait(29);
    assert_eq!(refreshed(&mut run), [""; 0]);
    run.wait(1);
    assert_eq!(refreshed(&mut run), ["a", "b", "c"]);
}

/// An app whose spec has just been written.
fn new() -> Observation {
    Observation { compared_to_spec: false, ..fresh() }
}

/// Argo CD compares an app by itself.
fn compare(run: &mut Run, app: &str) {
    run.show(app, |seen| {
        seen.compared_to_spec = true;
        seen.reconciled_at = Some(NOW);
    });
}

#[test]
fn an_app_that_argo_cd_has_to_compare_anyway_is_not_refreshed() {
    let mut run = begin(|_| new());
    assert_eq!(refreshed(&mut run), [""; 0]);
    run.show("a", |seen| seen.health = Health::Progressing);
    run.log();
    compare(&mut run, "a");
    assert_eq!(run.log()[..2], ["0s a vouched for", "0s a syncing 1 at r1"]);
}

#[test]
fn a_comparison_with_a_source_that_moves_is_made_again() {
    let mut run = begin(|_| Observation { pinned: false, ..new() });
    compare(&mut run, "a");
    assert_eq!(refreshed(&mut run), ["a"]);
}

#[test]
fn who_is_not_compared_is_refreshed_once_nobody_else_is_compared_either() {
    let mut run = begin(|_| new());
    run.wait(20);
    compare(&mut run, "b");
    run.wait(29);
    assert_eq!(refreshed(&mut run), [""; 0], "Argo CD is busy");
    run.wait(31);
    assert_eq!(refreshed(&mut run), ["a", "c"]);
}

#[test]
fn trouble_with_comparing_is_not_waited_for() {
    let trouble = || Condition { kind: ConditionKind::Comparison, message: "no such path".into() };
    let mut run = begin(|_| Observation { conditions: vec![trouble()], ..new() });
    assert_eq!(refreshed(&mut run), ["a", "b", "c"]);
    let mut run = begin(|_| new());
    run.show("a", |seen| seen.conditions = vec![trouble()]);
    assert_eq!(refreshed(&mut run), ["a"]);
}

#[test]
fn an_app_that_was_compared_in_this_run_is_not_refreshed() {
    let out_of_sync = |at| Observation { reconciled_at: Some(at), ..fresh() };
    let mut run = begin(|_| out_of_sync(NOW));
    assert_eq!(refreshed(&mut run), [""; 0]);
    assert!(run.steps().contains(&"0s a syncing 1 at r1".to_owned()));
    for (what, seen) in [
        ("in the second in which it began", out_of_sync(BEGUN)),
        ("at a branch", Observation { pinned: false, ..out_of_sync(NOW) }),
        ("by another clock", Observation { cluster: Some("edge".into()), ..out_of_sync(NOW) }),
    ] {
        let mut run = begin(|_| seen.clone());
        assert_eq!(refreshed(&mut run), ["a", "b", "c"], "{what}");
    }
}
