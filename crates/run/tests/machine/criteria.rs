//! What only a closer look shows: criteria and generations, which come apart from the
//! Application itself.

use tiphys_model::Health;
use tiphys_run::Input;

use crate::platform::Builder;
use crate::run::Run;

fn found(run: &mut Run, app: &str, lagging: &[&str], unmet: &[&str]) {
    let app = run.app(app);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
    run.tell(Input::Found { app, lagging: texts(lagging), unmet: texts(unmet) });
}

#[test]
fn a_step_is_done_once_its_criteria_hold() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).app("b", &["a"]).plan());
    run.sync("a");
    run.steps();
    run.assess_but("a", Health::Healthy, |seen| seen.unmet = vec!["redis: LOADING".into()]);
    assert_eq!(run.steps(), Vec::<String>::new());
    found(&mut run, "a", &["Kafka/k"], &[]);
    assert_eq!(run.steps(), Vec::<String>::new());
    found(&mut run, "a", &[], &[]);
    assert_eq!(run.steps(), ["0s a done: applied", "0s b syncing 1 at r1"]);
}

#[test]
fn criteria_that_never_hold_are_named_by_the_timeout() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).timeouts(300, 120).plan());
    run.sync("a");
    run.assess_but("a", Health::Healthy, |seen| seen.unmet = vec!["redis: LOADING".into()]);
    run.steps();
    run.wait(120);
    assert_eq!(
        run.steps(),
        [
            "120s a timed out: not Healthy before the health timeout: redis: LOADING",
            "120s finished: failed"
        ]
    );
}

#[test]
fn a_dependency_whose_criteria_break_is_waited_for() {
    let builder = Builder::new().app("a", &[]).app("b", &[]).app("c", &["a", "b"]);
    let mut run = Run::deploy(&builder.plan());
    run.complete("a");
    run.steps();
    found(&mut run, "a", &[], &["redis: connection refused"]);
    assert_eq!(run.steps(), ["0s a ails: Progressing", "0s c waits for a to be well"]);
    run.complete("b");
    run.steps();
    found(&mut run, "a", &[], &[]);
    assert_eq!(run.steps(), ["0s a recovered", "0s c syncing 1 at r1"]);
}

#[test]
fn what_is_found_of_an_app_that_is_gone_is_forgotten() {
    let mut run = Run::deploy(&Builder::new().app("a", &[]).app("b", &["a"]).plan());
    run.complete("a");
    run.steps();
    run.show_gone("a");
    assert_eq!(run.steps(), ["0s a ails: Missing"]);
    found(&mut run, "a", &[], &[]);
    assert_eq!(run.steps(), Vec::<String>::new());
}
