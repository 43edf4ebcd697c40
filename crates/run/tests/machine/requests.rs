//! Requests and their answers, which come late, twice or never.

use tiphys_model::{AppIx, Health};
use tiphys_run::{Answer, Effect, Input, SyncAnswer};

use crate::platform::Builder;
use crate::run::{Kind, Run};

/// What has been asked for and not been answered, as an engine would count it.
struct InFlight(Vec<Effect>);

impl InFlight {
    fn ask(&mut self, run: &mut Run) {
        for effect in run.effects() {
            // A look is no promise: it may be lost, and the next one will be asked for in time.
            if !matches!(effect, Effect::Read { .. }) {
                self.0.push(effect);
            }
        }
    }

    fn answer(&mut self, run: &mut Run, answered: impl Fn(&Effect) -> Option<Answer>) {
        let (at, answer) = self
            .0
            .iter()
            .enumerate()
            .find_map(|(at, effect)| Some((at, answered(effect)?)))
            .unwrap();
        let app = self.0.remove(at).app();
        run.tell(Input::Answered { app, answer });
        self.ask(run);
        self.check(run);
    }

    fn check(&self, run: &Run) {
        let key = |effect: &Effect| (effect.app(), format!("{effect:?}"));
        let mut counted = self.0.clone();
        counted.sort_by_key(key);
        let mut outstanding = run.machine().outstanding();
        outstanding.sort_by_key(key);
        assert_eq!(outstanding, counted);
    }
}

fn of(app: AppIx, effect: &Effect) -> bool {
    effect.app() == app
}

#[test]
fn outstanding_is_what_was_asked_for_and_not_answered() {
    let builder = Builder::new().handed_off().app("a", &[]).app("b", &["a"]);
    let plan = builder.plan();
    let mut run = Run::listed(&plan, tiphys_run::Action::Deploy, |_| Some(crate::run::fresh()));
    let mut in_flight = InFlight(Vec::new());
    in_flight.ask(&mut run);
    in_flight.check(&run);
    for name in ["a", "b"] {
        let app = run.app(name);
        let refreshed = |effect: &Effect| match effect {
            Effect::Refresh { number, .. } if of(app, effect) => {
                Some(Answer::Refreshed { number: *number })
            }
            _ => None,
        };
        in_flight.answer(&mut run, refreshed);
    }
    for name in ["a", "b"] {
        let app = run.app(name);
        in_flight.answer(&mut run, |effect| match effect {
            Effect::Sync { number, .. } if of(app, effect) => {
                let answer = SyncAnswer::Accepted { version: 1 };
                Some(Answer::Sync { number: *number, answer })
            }
            _ => None,
        });
        run.finish_sync(name);
        in_flight.ask(&mut run);
        in_flight.check(&run);
        in_flight.answer(&mut run, |effect| {
            matches!(effect, Effect::HandOff { .. }).then_some(Answer::HandedOff)
        });
    }
    assert_eq!(in_flight.0, []);
    assert_eq!(run.steps().last().map(String::as_str), Some("0s finished: succeeded"));
}

impl Run {
    fn finish_sync(&mut self, app: &str) {
        self.succeed(app);
        self.assess(app, Health::Healthy);
    }
}

#[test]
fn a_timed_out_sync_leaves_only_its_termination_outstanding() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).timeouts(100, 300).plan());
    run.wait(100);
    let app = run.app("a");
    assert_eq!(run.machine().outstanding(), [Effect::Terminate { app }]);
}

#[test]
fn a_removal_is_outstanding_until_the_app_is_gone() {
    let plan = Builder::new().app("a", &[]).plan();
    let mut run = Run::listed(&plan, tiphys_run::Action::Teardown, |_| Some(crate::run::current()));
    let app = run.app("a");
    run.answer("a", Answer::DeleteAccepted);
    assert_eq!(run.machine().outstanding(), [Effect::Delete { app }]);
    run.show_gone("a");
    assert_eq!(run.machine().outstanding(), []);
}

#[test]
fn answers_that_come_twice_are_ignored() {
    let mut run = Run::deploy(&Builder::new().handed_off().app("a", &[]).plan());
    run.log();
    run.effects();
    run.refreshed("a");
    assert_eq!((run.log(), run.effects()), (Vec::new(), Vec::new()));
    let accepted = Answer::Sync { number: 2, answer: SyncAnswer::Accepted { version: 1 } };
    run.answer("a", accepted.clone());
    assert_eq!(run.log(), ["0s a accepted"]);
    run.answer("a", accepted);
    let refused = SyncAnswer::Refused { message: "no".into() };
    run.answer("a", Answer::Sync { number: 2, answer: refused });
    assert_eq!(run.log(), Vec::<String>::new());
    run.finish_sync("a");
    run.answer("a", Answer::HandedOff);
    run.log();
    run.answer("a", Answer::HandedOff);
    run.answer("a", Answer::Terminated);
    assert_eq!(
        (run.log(), run.effects()),
        (Vec::new(), vec![Effect::HandOff { app: run.app("a") }])
    );
}

#[test]
fn an_errand_that_nobody_is_on_cannot_be_done() {
    let mut run = Run::deploy(&Builder::new().handed_off().app("a", &[]).app("b", &[]).plan());
    run.complete("a");
    run.answer("a", Answer::HandedOff);
    run.log();
    for app in ["a", "b"] {
        run.answer(app, Answer::HandedOff);
        run.answer(app, Answer::Terminated);
    }
    assert_eq!(run.log(), Vec::<String>::new());
}

#[test]
fn the_answer_to_an_earlier_request_says_nothing_about_a_later_one() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    let unanswered = SyncAnswer::Unanswered { message: "timeout".into() };
    run.answer("a", Answer::Sync { number: 2, answer: unanswered });
    run.looked("a");
    run.wait(5);
    run.log();
    let late = SyncAnswer::Refused { message: "no".into() };
    run.answer("a", Answer::Sync { number: 2, answer: late });
    run.looked("a");
    assert_eq!(run.log(), Vec::<String>::new());
    run.answer("a", Answer::Sync { number: 4, answer: SyncAnswer::Accepted { version: 1 } });
    assert_eq!(run.log(), ["5s a accepted"]);
}

#[test]
fn a_look_that_was_asked_for_before_says_nothing_about_a_request() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.wait(30);
    let before = run.number("a", Kind::Read);
    run.answer_sync("a", SyncAnswer::Unanswered { message: "timeout".into() });
    run.log();
    run.answer("a", Answer::Looked { number: before });
    assert_eq!(run.log(), Vec::<String>::new());
    run.looked("a");
    run.looked("a");
    assert_eq!(run.log(), ["30s a look returned"]);
}

#[test]
fn the_failure_of_a_refresh_that_has_been_answered_is_ignored() {
    let builder = Builder::new().app("a", &[]).app("b", &["a"]);
    let mut run = Run::deploy(&builder.plan());
    run.log();
    let number = run.number("b", Kind::Refresh);
    run.answer("b", Answer::RefreshFailed { number });
    assert_eq!(run.log(), Vec::<String>::new(), "what is known of `b` stays good enough");
}

#[test]
fn the_refusal_of_a_removal_that_took_place_is_ignored() {
    let plan = Builder::new().app("a", &[]).app("b", &["a"]).plan();
    let mut run = Run::listed(&plan, tiphys_run::Action::Teardown, |_| Some(crate::run::current()));
    run.show_gone("b");
    run.log();
    run.answer("b", Answer::DeleteRefused { message: "not found".into() });
    run.answer("b", Answer::DeleteUnanswered);
    assert_eq!(run.log(), Vec::<String>::new());
}

#[test]
fn older_news_do_not_replace_newer_ones() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.complete("a");
    run.log();
    let app = run.app("a");
    let newest = run.seen("a").unwrap().version;
    run.tell(Input::Observed { app, version: newest - 1, seen: None });
    run.tell(Input::Observed { app, version: newest, seen: None });
    assert_eq!(run.log(), Vec::<String>::new());
    assert_eq!(run.seen("a").map(|seen| seen.version), Some(newest));
    run.tell(Input::Observed { app, version: newest + 1, seen: None });
    assert_eq!(run.seen("a"), None);
}

#[test]
fn an_old_operation_is_no_news_before_the_request_was_taken() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).plan());
    run.steps();
    let by = tiphys_run::Operation { id: None, by: "alice".into() };
    run.show("a", |seen| {
        seen.last = Some(tiphys_run::LastOperation {
            operation: by,
            phase: tiphys_run::OperationPhase::Failed,
            finished_at: seen.reconciled_at,
            revisions: seen.revisions.clone(),
            message: "alice failed".into(),
        });
    });
    assert_eq!(run.steps(), Vec::<String>::new());
    run.complete("a");
    assert_eq!(run.steps(), ["0s a converging", "0s a done: applied", "0s finished: succeeded"]);
}
