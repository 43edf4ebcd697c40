//! The lines of a run's log: what they tell, and what only the whole log can tell.

use jiff::{SignedDuration, Timestamp};
use tiphys_model::{AppName, Exit, Health, Scope, StackName};
use tiphys_run::{
    Action, Answer, Counts, EngineName, EventKind, EventLine, GraphApp, How, Input, Recorder,
    RunFinished, Signal, SyncAnswer, Verdict,
};

use crate::platform::Builder;
use crate::run::{Run, current, fresh, revisions};

impl Run {
    /// All that has happened, as the lines that others read.
    pub(crate) fn lines(&mut self) -> Vec<EventLine> {
        let machine = self.machine();
        let mut recorder =
            Recorder::new(machine.plan().clone(), machine.action(), Timestamp::UNIX_EPOCH);
        let mut lines = vec![recorder.start("run-1".to_owned(), EngineName::Simulated, Some(7))];
        lines.extend(self.events().iter().filter_map(|(at, event)| recorder.record(*at, event)));
        lines
    }

    /// The same without the first line, and without numbers and times.
    fn kinds(&mut self) -> Vec<EventKind> {
        self.lines().into_iter().skip(1).map(|line| line.kind).collect()
    }

    fn finished(&mut self) -> RunFinished {
        match self.kinds().pop() {
            Some(EventKind::RunFinished(finished)) => finished,
            other => panic!("the last line is {other:?}"),
        }
    }
}

fn name(app: &str) -> AppName {
    AppName::parse(app).unwrap()
}

/// The reasons of those that were skipped: `c because of b, a: a failed`.
fn skips(kinds: &[EventKind]) -> Vec<String> {
    let skip = |kind: &EventKind| match kind {
        EventKind::StepSkipped { app, because, reason } => {
            let because: Vec<&str> = because.iter().map(AppName::as_str).collect();
            Some(format!("{app} because of {}: {reason}", because.join(", ")))
        }
        _ => None,
    };
    kinds.iter().filter_map(skip).collect()
}

#[test]
fn the_first_line_says_which_run_it_is_and_what_it_is_for() {
    let plan = Builder::new().app("a", &[]).plan();
    for action in [Action::Deploy, Action::Teardown] {
        let line = Run::listed(&plan, action, |_| Some(current())).lines().remove(0);
        assert_eq!((line.v, line.seq, line.elapsed_ms), (Some(1), 0, 0));
        let EventKind::RunStarted(started) = line.kind else { panic!("it is {:?}", line.kind) };
        assert_eq!(
            (started.run.as_str(), started.action, started.engine, started.seed),
            ("run-1", action, EngineName::Simulated, Some(7))
        );
        assert_eq!((started.platform, started.plan), (plan.platform.clone(), plan.digest.clone()));
    }
}

#[test]
fn the_first_line_carries_the_graph_in_plan_order() {
    let builder = Builder::new()
        .app("a", &[])
        .typical(1)
        .app("b", &[])
        .in_stack("storage")
        .app("c", &["a", "b"])
        .typical(90);
    let app = |app: &str, stack, layer, on: &[&str], typical_seconds| GraphApp {
        app: name(app),
        stack: StackName::parse(stack).unwrap(),
        layer,
        depends_on: on.iter().map(|on| name(on)).collect(),
        typical_seconds,
    };
    // Only `c` is in the scope; a run spends no time on what lies outside.
    let plan = builder.plan_of(&Scope::app(&name("c")));
    let line = Run::deploy(&plan).lines().remove(0);
    let EventKind::RunStarted(started) = line.kind else { panic!("it is {:?}", line.kind) };
    assert_eq!(
        started.graph,
        [
            app("a", "stack", 0, &[], 0),
            app("b", "storage", 0, &[], 0),
            app("c", "stack", 1, &["a", "b"], 90),
        ]
    );
}

#[test]
fn lines_are_numbered_without_gaps_and_carry_both_clocks() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.wait(10);
    run.complete("a");
    let lines = run.lines();
    assert_eq!(lines.iter().map(|line| line.seq).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(
        lines.iter().map(|line| line.elapsed_ms).collect::<Vec<_>>(),
        [0, 0, 10_000, 10_000, 10_000]
    );
    assert!(lines.iter().skip(1).all(|line| line.v.is_none()), "the version is told once");
    for line in lines {
        let elapsed = SignedDuration::from_millis(i64::try_from(line.elapsed_ms).unwrap());
        assert_eq!(line.at, Timestamp::UNIX_EPOCH + elapsed);
    }
}

#[test]
fn a_step_takes_from_its_first_attempt_to_its_end() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).retry(1, 10, 2, 30).plan());
    run.wait(5);
    run.refuse("a");
    run.wait(10);
    run.sync("a");
    run.wait(3);
    run.assess("a", Health::Healthy);
    let app = || name("a");
    assert_eq!(
        run.kinds()[..5],
        [
            EventKind::StepSyncing { app: app(), attempt: 1 },
            EventKind::StepRetrying {
                app: app(),
                cause: "the sync failed: denied".to_owned(),
                in_ms: 10_000
            },
            EventKind::StepSyncing { app: app(), attempt: 2 },
            EventKind::StepConverging { app: app() },
            EventKind::StepDone { app: app(), how: How::Applied, took_ms: 18_000 },
        ]
    );
}

#[test]
fn a_failure_tells_what_was_seen_and_what_to_do() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.refuse("a");
    let failed = run.kinds().into_iter().find_map(|kind| match kind {
        EventKind::StepFailed { evidence, hint, .. } => Some((evidence, hint)),
        _ => None,
    });
    let (evidence, hint) = failed.unwrap();
    assert_eq!(
        (evidence.health, evidence.message.as_deref()),
        (Some(Health::Missing), Some("denied"))
    );
    assert!(hint.contains("correct the manifests of a"), "{hint}");
}

#[test]
fn a_skipped_step_names_the_chain_to_what_failed_and_how_that_failed() {
    let builder =
        || Builder::new().app("a", &[]).timeouts(20, 300).app("b", &["a"]).app("c", &["b"]);
    let mut failed = Run::deploy(&builder().plan());
    failed.refuse("a");
    assert_eq!(skips(&failed.kinds()), ["b because of a: a failed", "c because of b, a: a failed"]);
    let mut timed_out = Run::deploy(&builder().plan());
    timed_out.wait(20);
    assert_eq!(
        skips(&timed_out.kinds()),
        ["b because of a: a timed out", "c because of b, a: a timed out"]
    );
    let mut errored = Run::deploy(&builder().plan());
    errored.answer_sync("a", SyncAnswer::Refused { message: "no".into() });
    assert_eq!(
        skips(&errored.kinds()),
        ["b because of a: a errored", "c because of b, a: a errored"]
    );
}

#[test]
fn a_step_that_was_skipped_for_another_reason_says_which() {
    let mut late = Run::deploy(&Builder::new().deadline(60).app("a", &[]).app("b", &["a"]).plan());
    late.wait(60);
    assert_eq!(
        skips(&late.kinds()),
        ["b because of a: the run's deadline passed before a was done"]
    );

    let builder = Builder::new().app("a", &[]).app("b", &[]).app("c", &["a", "b"]);
    let mut unhealthy = Run::deploy(&builder.plan());
    unhealthy.complete("a");
    unhealthy.accept("b");
    unhealthy.assess("a", Health::Degraded);
    unhealthy.wait(crate::platform::TIMEOUT - 1);
    unhealthy.succeed("b");
    unhealthy.wait(1);
    assert_eq!(skips(&unhealthy.kinds()), ["c because of a: a is Degraded"]);
}

#[test]
fn a_step_that_waits_names_what_it_waits_for() {
    let plan = Builder::new().app("a", &[]).app("b", &[]).app("c", &["a", "b"]).plan();
    let waiting = |kinds: Vec<EventKind>| -> Vec<(String, String, Option<String>)> {
        let words = |on: Vec<AppName>| on.iter().map(AppName::as_str).collect::<Vec<_>>().join(" ");
        let waits = |kind| match kind {
            EventKind::StepWaiting { app, on, reason } => {
                Some((app.to_string(), words(on), reason))
            }
            _ => None,
        };
        kinds.into_iter().filter_map(waits).collect()
    };
    let mut run = Run::deploy(&plan);
    run.complete("a");
    run.assess("a", Health::Progressing);
    assert_eq!(
        waiting(run.kinds()),
        [
            ("c".to_owned(), "a b".to_owned(), None),
            ("c".to_owned(), "a".to_owned(), Some("a is Progressing".to_owned())),
        ]
    );
    // In a teardown it is the other way round.
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    assert_eq!(
        waiting(run.kinds()),
        [("a".to_owned(), "c".to_owned(), None), ("b".to_owned(), "c".to_owned(), None)]
    );
}

#[test]
fn a_source_that_moved_an_interrupt_and_a_hand_off_have_lines_of_their_own() {
    let builder = Builder::new().handed_off().app("a", &[]).app("b", &[]).retry(1, 10, 2, 30);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.answer("a", Answer::HandedOff);
    run.sync("b");
    run.show("b", |seen| seen.revisions = revisions("r2"));
    run.assess("b", Health::Healthy);
    run.signal(Signal::Interrupt);
    let kinds = run.kinds();
    let moved =
        EventKind::RevisionMoved { app: name("b"), from: "r1".to_owned(), to: "r2".to_owned() };
    for expected in [
        EventKind::HandedOff { app: name("a") },
        moved,
        EventKind::Interrupted { signal: Signal::Interrupt },
    ] {
        assert!(kinds.contains(&expected), "{expected:?} is not among {kinds:#?}");
    }
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.signal(Signal::Terminate);
    assert!(run.kinds().contains(&EventKind::Interrupted { signal: Signal::Terminate }));
}

#[test]
fn what_goes_on_behind_the_steps_is_not_in_the_log() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.answer_sync("a", SyncAnswer::Unanswered { message: "timeout".into() });
    run.wait(40);
    run.looked("a");
    assert_eq!(run.kinds(), [EventKind::StepSyncing { app: name("a"), attempt: 1 }]);
}

#[test]
fn a_removal_that_is_asked_for_again_is_no_news() {
    let plan = Builder::new().app("a", &[]).plan();
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    run.wait(60);
    assert_eq!(run.kinds(), [EventKind::StepRemoving { app: name("a") }]);
}

#[test]
fn the_last_line_counts_how_every_step_of_a_deployment_ended() {
    let builder = Builder::new()
        .app("applied", &[])
        .app("applied-too", &[])
        .app("current", &[])
        .app("errored", &[])
        .app("failed", &[])
        .app("late", &[])
        .timeouts(20, 300)
        .app("skipped", &["failed"])
        .app("unhealthy", &[]);
    let mut run = Run::listed(&builder.plan(), Action::Deploy, |name| {
        Some(if name == "current" { current() } else { fresh() })
    });
    for app in ["applied", "applied-too", "current", "errored", "failed", "late", "unhealthy"] {
        run.refreshed(app);
    }
    for app in ["applied", "applied-too", "unhealthy"] {
        run.complete(app);
    }
    run.assess("unhealthy", Health::Degraded);
    run.refuse("failed");
    run.answer_sync("errored", SyncAnswer::Refused { message: "no".into() });
    run.accept("late");
    run.wait(20);
    run.answer("late", Answer::Terminated);
    let finished = run.finished();
    assert_eq!((finished.verdict, finished.makespan_ms), (Verdict::Failed, 20_000));
    assert_eq!(finished.exit(), Exit::Failed);
    assert_eq!(
        finished.counts,
        Counts {
            applied: 2,
            already_current: 1,
            removed: 0,
            failed: 1,
            errored: 1,
            timed_out: 1,
            skipped: 1,
            unhealthy: 1,
            unfinished: 0,
        }
    );
}

#[test]
fn the_last_line_counts_what_was_removed_and_what_an_interrupt_left() {
    let plan = Builder::new().app("a", &[]).app("b", &["a"]).app("c", &["b"]).plan();
    let mut run = Run::listed(&plan, Action::Teardown, |_| Some(current()));
    run.show_gone("c");
    run.tell(Input::Interrupted(Signal::Terminate));
    let finished = run.finished();
    assert_eq!(finished.verdict, Verdict::Interrupted(Signal::Terminate));
    assert_eq!(finished.counts, Counts { removed: 1, unfinished: 2, ..Counts::default() });
}

#[test]
fn an_app_that_recovered_counts_as_applied() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).app("b", &[]).plan());
    run.complete("a");
    run.assess("a", Health::Degraded);
    run.assess("a", Health::Healthy);
    run.complete("b");
    assert_eq!(run.finished().counts, Counts { applied: 2, ..Counts::default() });
}

#[test]
fn the_critical_path_is_the_longest_chain_of_what_the_steps_took() {
    // One at a time, so that the run takes as long as all steps together.
    let builder = Builder::new().concurrency(1).app("a", &[]).app("b", &["a"]).app("c", &[]);
    let mut run = Run::deploy(&builder.plan());
    for (app, seconds) in [("a", 7), ("b", 5), ("c", 9)] {
        run.accept(app);
        run.wait(seconds);
        run.succeed(app);
        run.assess(app, Health::Healthy);
    }
    let finished = run.finished();
    assert_eq!((finished.makespan_ms, finished.critical_path_ms), (21_000, 12_000));
}
