//! What the end of a run says: what it waited for at its deadline, and what turned unhealthy.

use tiphys_model::Health;
use tiphys_run::gate::Missing;
use tiphys_run::{
    Action, Cause, Deleting, Event, EventKind, Evidence, Input, Pending, Stamp, SyncAnswer,
    Unhealthy, Verdict,
};

use crate::platform::Builder;
use crate::run::{Run, current};

/// Why the steps in progress failed, and why the others were skipped, when the run ended.
fn ends(run: &mut Run) -> Vec<String> {
    let lines = run.lines().into_iter().filter_map(|line| match line.kind {
        EventKind::StepFailed { app, cause, .. } => Some(format!("{app}: {cause}")),
        EventKind::StepSkipped { app, because, reason } => {
            let because: Vec<String> = because.iter().map(ToString::to_string).collect();
            Some(format!("{app} < {}: {reason}", because.join(" < ")))
        }
        _ => None,
    });
    lines.collect()
}

fn unhealthy(run: &mut Run) -> Vec<Unhealthy> {
    match run.events().pop() {
        Some((_, Event::Finished { unhealthy, .. })) => unhealthy,
        other => panic!("the last event is {other:?}"),
    }
}

#[test]
fn a_deadline_names_what_every_step_waited_for() {
    let builder = Builder::new()
        .deadline(60)
        .app("converging", &[])
        .app("retrying", &[])
        .retry(1, 100, 1, 100)
        .app("syncing", &[])
        .app("unanswered", &[])
        .app("next", &["syncing"])
        .app("last", &["next"]);
    let mut run = Run::deploy(&builder.plan());
    run.sync("converging");
    run.assess("converging", Health::Progressing);
    run.refuse("retrying");
    run.accept("syncing");
    run.answer_sync("unanswered", SyncAnswer::Unanswered { message: "no route".into() });
    run.wait(60);
    assert_eq!(run.verdict(), Some(Verdict::Deadline));
    let mut told = ends(&mut run);
    told.sort();
    assert_eq!(
        told,
        [
            "converging: the run's deadline passed before it was done: it is Progressing",
            "last < next < syncing: the run's deadline passed before syncing was done",
            "next < syncing: the run's deadline passed before syncing was done",
            "retrying: the run's deadline passed before its next attempt",
            "syncing: the run's deadline passed before its sync finished",
            "unanswered: the run's deadline passed before Argo CD answered the sync request: no \
             route",
        ]
    );
}

#[test]
fn a_deadline_shows_what_was_seen_of_the_apps_in_progress() {
    let mut run = Run::deploy(&Builder::new().deadline(60).app("a", &[]).plan());
    run.sync("a");
    run.assess_but("a", Health::Progressing, |seen| seen.health_message = Some("0 of 1".into()));
    run.wait(60);
    let failed = run.events().into_iter().find_map(|(_, event)| match event {
        Event::Failed { cause, evidence, .. } => Some((cause, evidence)),
        _ => None,
    });
    let (cause, evidence) = failed.unwrap();
    let missing = Some(Missing::Health(Health::Progressing));
    assert_eq!(cause, Cause::Deadline { before: Pending::Gate { missing } });
    assert_eq!(evidence.message.as_deref(), Some("0 of 1"));
}

#[test]
fn a_step_that_only_lacked_room_at_the_deadline_says_so() {
    let builder = Builder::new().deadline(60).concurrency(1).app("a", &[]).app("b", &[]);
    let mut run = Run::deploy(&builder.plan());
    run.accept("a");
    run.wait(60);
    assert_eq!(ends(&mut run)[1], "b < : the run's deadline passed before it could start");
}

#[test]
fn a_step_that_waited_for_an_unhealthy_one_at_the_deadline_says_so() {
    let builder = Builder::new().deadline(60).app("a", &[]).app("b", &[]).app("c", &["a", "b"]);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.assess("a", Health::Degraded);
    run.complete("b");
    run.wait(60);
    assert_eq!(ends(&mut run), ["c < a: the run's deadline passed before a was Healthy"]);
}

#[test]
fn a_teardown_names_the_finalizers_that_it_waited_for_at_the_deadline() {
    let plan = Builder::new().deadline(60).app("a", &[]).app("b", &["a"]).plan();
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    run.show("b", |seen| {
        seen.deleting = Some(Deleting { since: Stamp(0), finalizers: vec!["backup".into()] });
    });
    run.wait(60);
    assert_eq!(
        ends(&mut run),
        [
            "a < b: the run's deadline passed before b was removed",
            "b: the run's deadline passed before it was removed: waiting for backup",
        ]
    );
}

#[test]
fn an_app_that_turned_unhealthy_is_told_at_the_end_with_what_was_seen() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).app("b", &[]).app("c", &[]).plan());
    run.complete("a");
    run.complete("b");
    run.assess("a", Health::Degraded);
    run.assess("b", Health::Degraded);
    run.assess("b", Health::Healthy);
    run.show("a", |seen| seen.health_message = Some("2 of 3 nodes lost".into()));
    run.complete("c");
    let told = unhealthy(&mut run);
    let [Unhealthy { app, cause, evidence }] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(*app, run.app("a"));
    assert_eq!(cause.to_string(), "it was done, then became Degraded: 2 of 3 nodes lost");
    assert_eq!(evidence.health, Some(Health::Degraded));
}

#[test]
fn an_application_that_somebody_deleted_or_made_again_is_told_at_the_end() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).app("b", &[]).plan());
    run.complete("a");
    run.show_gone("a");
    run.complete("b");
    let told = unhealthy(&mut run);
    assert_eq!(told[0].cause.to_string(), "it was done, then became Missing");
    assert_eq!(told[0].evidence, Evidence::default());

    let plan = Builder::new().app("a", &[]).app("b", &[]).plan();
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    run.show_gone("a");
    run.show_again("a");
    run.tell(Input::LeaseLost);
    assert_eq!(unhealthy(&mut run)[0].cause.to_string(), "it was removed, then created again");
}
