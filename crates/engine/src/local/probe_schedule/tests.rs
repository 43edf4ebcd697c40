//! When a probe is taken, and what is known meanwhile.

use serde_json::json;
use tiphys_model::Scope;
use tiphys_run::{Answer, Clock, Driver, Effect, Input, Machine, Output, Time};
use tiphys_spec::{Source, Sources};

use super::*;
use tiphys_argocd::Application;

/// One app with a criterion.
fn plan() -> Arc<Plan> {
    let text = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: p }
spec: { stacks: [{ name: s, apps: [{ name: a, health: [{ tcp: { service: a, port: 1 } }] }] }] }
";
    let source = Source::new("platform.yaml", text.into()).unwrap();
    let platform = tiphys_spec::platform(&Sources::new(vec![source])).unwrap();
    Arc::new(tiphys_plan::plan(&platform, &Scope::Platform).unwrap())
}

/// Healthy, and reconciled after an operation that finished then.
fn seen(finished_at: &str, sync: &str) -> Observation {
    let source = json!({ "path": "apps/a" });
    let application: Application = serde_json::from_value(json!({
        "metadata": { "name": "a", "resourceVersion": "7" },
        "spec": { "source": source },
        "status": {
            "sync": { "status": sync, "revision": "r", "comparedTo": { "source": source } },
            "health": { "status": "Healthy" },
            "operationState": { "phase": "Succeeded", "finishedAt": finished_at },
        },
    }))
    .unwrap();
    application.observe().unwrap()
}

const EARLY: &str = "2026-11-15T10:00:00Z";
const LATE: &str = "2026-11-15T11:00:00Z";

/// A machine with its only step in progress.
fn in_progress(plan: &Arc<Plan>) -> Driver {
    let mut driver = Driver::new(Machine::new(plan.clone(), Action::Deploy, 1));
    let drifted = Arc::new(seen(EARLY, "OutOfSync"));
    let listed = Input::Listed { seen: vec![Some(drifted)], held: true, clock: Clock::default() };
    let Output { effects, .. } = driver.step(Time::START, listed).unwrap();
    let [Effect::Refresh { app, number }] = effects[..] else { unreachable!("{effects:?}") };
    let answer = Input::Answered { app, answer: Answer::Refreshed { number } };
    driver.step(Time::START, answer).unwrap();
    assert!(driver.machine().step(app).is_in_progress());
    driver
}

fn texts(texts: &[Arc<str>]) -> Vec<&str> {
    texts.iter().map(|text| &**text).collect()
}

fn result(request: ProbeRequest, unmet: &[&str], lagging: &[&str]) -> ProbeResult {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
    let generations = request.generations.map(|applied| (applied, own(lagging)));
    ProbeResult { app: request.app, unmet: own(unmet), generations }
}

#[test]
fn criteria_are_not_met_until_they_have_been_asked_and_are_asked_again() {
    let plan = plan();
    let machine = Machine::new(plan.clone(), Action::Deploy, 1);
    let mut schedule = ProbeSchedule::new(plan.clone(), Action::Deploy, ProbeScope::CriteriaOnly);
    let app = AppIx::new(0);
    let (step, now) = (machine.step(app), Instant::now());
    let mut look = seen(EARLY, "Synced");
    schedule.complete(app, step, &mut look);
    assert_eq!(texts(&look.unmet), ["tcp a:1: not checked yet"]);
    let request = schedule.first(app, step, &look).unwrap();
    schedule.plan(now, app, step, &look);
    assert_eq!(schedule.wake_at(), None, "it is being asked");
    schedule.take(result(request, &[], &[]));
    schedule.complete(app, step, &mut look);
    assert!(look.unmet.is_empty() && look.lagging.is_empty());
    schedule.plan(now, app, step, &look);
    schedule.plan(now + SOON, app, step, &look);
    assert_eq!(schedule.wake_at(), Some(now + CALM), "updates do not put it off");
    // It has begun, so somebody waits for it now.
    let driver = in_progress(&plan);
    schedule.plan(now, app, driver.machine().step(app), &look);
    assert_eq!(schedule.wake_at(), Some(now + SOON));
    assert_eq!((schedule.due(now), schedule.due(now + SOON)), (None, Some(app)));
    assert_eq!(schedule.wake_at(), None);
}

#[test]
fn generations_are_looked_at_once_for_each_operation() {
    let plan = plan();
    let driver = in_progress(&plan);
    let mut schedule = ProbeSchedule::new(plan.clone(), Action::Deploy, ProbeScope::Everything);
    let app = AppIx::new(0);
    let (step, now) = (driver.machine().step(app), Instant::now());
    let lagging = |schedule: &ProbeSchedule, finished_at: &str, sync: &str| {
        let mut look = seen(finished_at, sync);
        schedule.complete(app, step, &mut look);
        texts(&look.lagging).iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()
    };
    assert!(lagging(&schedule, EARLY, "OutOfSync").is_empty(), "it is not about to be Done");
    assert_eq!(lagging(&schedule, EARLY, "Synced"), ["its resources"]);
    let look = seen(EARLY, "Synced");
    schedule.plan(now, app, step, &look);
    assert_eq!(schedule.due(now), Some(app), "at once");
    let request = schedule.begin(app, step, &look);
    schedule.take(result(request, &[], &["Kafka/k"]));
    assert_eq!(lagging(&schedule, EARLY, "Synced"), ["Kafka/k"]);
    schedule.plan(now, app, step, &look);
    assert_eq!(schedule.wake_at(), Some(now + SOON));
    assert_eq!(schedule.due(now + SOON), Some(app));
    let request = schedule.begin(app, step, &look);
    schedule.take(result(request, &[], &[]));
    assert!(lagging(&schedule, EARLY, "Synced").is_empty());
    assert_eq!(schedule.begin(app, step, &look).generations, None, "it is settled");
    assert_eq!(lagging(&schedule, LATE, "Synced"), ["its resources"], "another operation");
}

/// A look that failed would make the run sync an app that is as it should be.
#[test]
fn generations_that_are_not_known_are_looked_at_before_the_turn_comes() {
    let plan = plan();
    let machine = Machine::new(plan.clone(), Action::Deploy, 1);
    let mut schedule = ProbeSchedule::new(plan.clone(), Action::Deploy, ProbeScope::Everything);
    let app = AppIx::new(0);
    let (step, now) = (machine.step(app), Instant::now());
    let look = seen(EARLY, "Synced");
    schedule.plan(now, app, step, &look);
    assert_eq!(schedule.wake_at(), Some(now + SOON), "it has become as it should be");
    let request = schedule.first(app, step, &look).unwrap();
    schedule.take(result(request, &[], &["its resources (cannot read them: no)"]));
    schedule.plan(now, app, step, &look);
    assert_eq!(schedule.due(now + SOON), Some(app));
    let request = schedule.begin(app, step, &look);
    schedule.take(result(request, &[], &[]));
    schedule.plan(now, app, step, &look);
    assert_eq!(schedule.wake_at(), Some(now + CALM), "only its criterion is left");
}

#[test]
fn generations_of_what_argo_cd_judges_by_them_are_looked_at_only_after_a_sync() {
    let plan = plan();
    let mut schedule = ProbeSchedule::new(plan.clone(), Action::Deploy, ProbeScope::Everything);
    let app = AppIx::new(0);
    let look = seen(EARLY, "Synced");
    let waiting = Machine::new(plan.clone(), Action::Deploy, 1);
    let waiting = waiting.step(app);
    for (kind, expected) in [("Deployment", false), ("ControllerRevision", true)] {
        let resource = json!({ "group": "apps", "kind": kind, "name": "a" });
        let application = json!({
            "metadata": { "name": "a" },
            "spec": { "project": "p" },
            "status": { "resources": [resource] },
        });
        schedule.note(app, &serde_json::from_value(application).unwrap());
        let request = schedule.begin(app, waiting, &look);
        assert_eq!(request.generations.is_some(), expected, "{kind}");
        let driver = in_progress(&plan);
        let request = schedule.begin(app, driver.machine().step(app), &look);
        assert!(request.generations.is_some(), "{kind}");
    }
}

#[test]
fn what_is_removed_need_not_be_well() {
    let plan = plan();
    let schedule = ProbeSchedule::new(plan.clone(), Action::Teardown, ProbeScope::Everything);
    let machine = Machine::new(plan, Action::Teardown, 1);
    let mut look = seen(EARLY, "Synced");
    schedule.complete(AppIx::new(0), machine.step(AppIx::new(0)), &mut look);
    assert!(look.unmet.is_empty() && look.lagging.is_empty());
}
