//! What a person, a deadline or another run does to a run.

use tiphys_model::{Exit, Health};
use tiphys_run::{Input, Signal, SyncAnswer, Verdict};

use crate::platform::Builder;
use crate::run::Run;

fn two_at_once() -> Run {
    let builder = Builder::new()
        .concurrency(2)
        .app("a", &[])
        .retry(3, 10, 2, 30)
        .app("b", &[])
        .app("c", &[])
        .app("d", &["a"]);
    let mut run = Run::deploy(&builder.plan());
    run.steps();
    run
}

fn exit(run: &Run) -> Option<Exit> {
    run.verdict().map(Verdict::exit)
}

#[test]
fn the_first_interrupt_starts_nothing_new_and_lets_syncs_finish() {
    let mut run = two_at_once();
    run.signal(Signal::Interrupt);
    run.complete("a");
    assert_eq!(run.steps(), ["0s interrupted: Interrupt", "0s a converging", "0s a done: applied"]);
    run.sync("b");
    assert_eq!(run.steps(), ["0s b converging", "0s finished: interrupted"]);
    assert_eq!(exit(&run), Some(Exit::Interrupted));
}

#[test]
fn an_interrupt_ends_at_once_when_no_sync_is_in_flight() {
    let mut run = two_at_once();
    run.sync("a");
    run.sync("b");
    run.assess("b", Health::Progressing);
    run.steps();
    run.signal(Signal::Interrupt);
    assert_eq!(run.steps(), ["0s interrupted: Interrupt", "0s finished: interrupted"]);
}

#[test]
fn an_interrupted_run_repeats_no_attempt() {
    let mut run = two_at_once();
    run.signal(Signal::Interrupt);
    run.refuse("a");
    run.wait(20);
    run.refuse("b");
    assert_eq!(
        run.steps(),
        [
            "0s interrupted: Interrupt",
            "0s a retrying at 10s: the sync failed: denied",
            "20s b failed: the sync failed: denied",
            "20s finished: interrupted",
        ]
    );
}

#[test]
fn the_second_interrupt_leaves_everything_as_it_is() {
    let mut run = two_at_once();
    run.accept("a");
    run.signal(Signal::Interrupt);
    run.effects();
    run.signal(Signal::Interrupt);
    assert_eq!(
        run.steps(),
        ["0s interrupted: Interrupt", "0s interrupted: Interrupt", "0s finished: interrupted"]
    );
    assert_eq!(run.effects(), []);
    assert_eq!(run.machine().outstanding(), []);
    assert_eq!(exit(&run), Some(Exit::Interrupted));
}

#[test]
fn a_request_to_terminate_counts_as_the_second_interrupt() {
    let mut run = two_at_once();
    run.signal(Signal::Terminate);
    assert_eq!(run.steps(), ["0s interrupted: Terminate", "0s finished: interrupted"]);
    assert_eq!(exit(&run), Some(Exit::Terminated));
}

#[test]
fn a_request_to_terminate_after_an_interrupt_decides_the_exit_code() {
    let mut run = two_at_once();
    run.signal(Signal::Interrupt);
    run.signal(Signal::Terminate);
    assert_eq!(exit(&run), Some(Exit::Terminated));
}

#[test]
fn the_deadline_of_the_run_ends_what_runs_and_skips_what_waits() {
    let builder = Builder::new().deadline(60).app("a", &[]).app("b", &["a"]).app("c", &[]);
    let mut run = Run::deploy(&builder.plan());
    run.complete("c");
    run.accept("a");
    run.wait(59);
    run.steps();
    run.wait(1);
    assert_eq!(
        run.steps(),
        [
            "60s a timed out: the run's deadline passed before its sync finished",
            "60s b skipped: deadline",
            "60s finished: deadline",
        ]
    );
    assert_eq!(exit(&run), Some(Exit::Deadline));
}

#[test]
fn a_run_that_lost_the_platform_ends_without_another_word() {
    let mut run = two_at_once();
    run.effects();
    run.tell(Input::LeaseLost);
    assert_eq!(run.steps(), ["0s finished: lease-lost"]);
    assert_eq!(exit(&run), Some(Exit::Held));
    run.answer_after_the_end();
    assert_eq!((run.log(), run.effects()), (Vec::new(), Vec::new()));
}

impl Run {
    /// News of every sort that come too late.
    fn answer_after_the_end(&mut self) {
        let (app, version) = (self.app("a"), 100);
        self.tell(Input::Tick);
        self.tell(Input::Interrupted(Signal::Interrupt));
        self.tell(Input::Observed { app, version, seen: None });
        let answer = tiphys_run::Answer::Sync { number: 1, answer: SyncAnswer::Conflict };
        self.tell(Input::Answered { app, answer });
        self.tell(Input::LeaseLost);
    }
}
