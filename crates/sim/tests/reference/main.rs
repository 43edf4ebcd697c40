//! The reference platform of 43 apps, deployed on the simulated engine.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod crash_points;
mod determinism;
mod faults;
mod makespan;

use std::sync::Arc;

use tiphys_model::{AppIx, Plan, Scope};
use tiphys_run::{Action, Event, FailState};
use tiphys_sim::{Part, Simulation, Stop, check};
use tiphys_spec::{Source, Sources};

const PLATFORM: &str = include_str!("../../../../examples/reference/platform.yaml");

fn plan() -> Arc<Plan> {
    let Ok(source) = Source::new("platform.yaml", PLATFORM.into()) else { unreachable!() };
    let platform = tiphys_spec::platform(&Sources::new(vec![source]));
    let Ok(platform) = platform else { unreachable!("the reference platform is valid") };
    let plan = Arc::new(tiphys_plan::plan(&platform, &Scope::Platform).unwrap());
    assert_eq!(plan.apps.len(), 43);
    plan
}

fn app(plan: &Plan, name: &str) -> AppIx {
    plan.graph.apps().find(|app| plan.app(*app).app.name.as_str() == name).unwrap()
}

/// Runs an action to its end; all laws must hold for it.
fn run(simulation: &mut Simulation, action: Action) -> Stop {
    let before = Part::since(&Part::nothing(), simulation);
    simulation.begin(action);
    let stop = simulation.run();
    let part = Part::since(&before, simulation);
    assert_eq!(check(simulation, action, &part, &stop), []);
    stop
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    None,
    Done,
    Failed(FailState),
    Skipped,
    Removed,
}

/// How each step ended, as the log of the last driver tells it.
fn ends(simulation: &Simulation) -> Vec<End> {
    let mut ends = vec![End::None; simulation.plan().apps.len()];
    let last = simulation.records().last().map(|record| record.epoch);
    for record in simulation.records().iter().filter(|record| Some(record.epoch) == last) {
        match &record.event {
            Event::Done { app, .. } => ends[app.position()] = End::Done,
            Event::Failed { app, state, .. } => ends[app.position()] = End::Failed(*state),
            Event::Skipped { app, .. } => ends[app.position()] = End::Skipped,
            Event::Removed { app } => ends[app.position()] = End::Removed,
            _ => {}
        }
    }
    ends
}

/// Everything that depends on an app, directly or not.
fn dependants(plan: &Plan, app: AppIx) -> Vec<AppIx> {
    let mut found = vec![app];
    let mut next = 0;
    while let Some(at) = found.get(next) {
        let more = plan.graph.dependants(*at);
        found.extend(more.iter().filter(|more| !found.contains(more)).collect::<Vec<_>>());
        next += 1;
    }
    found.remove(0);
    found.sort();
    found
}
