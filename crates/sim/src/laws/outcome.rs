//! Law 2: what failed, what was skipped for it, and what the verdict says of both.

use tiphys_model::{AppIx, Role};
use tiphys_run::{Action, Because, Event, Verdict};

use super::{Broken, Law};
use crate::engine::{Recorded, Simulation};

/// How a step ended, as the log tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    None,
    Done,
    Failed,
    Skipped(Because),
}

pub(super) fn check(
    simulation: &Simulation,
    action: Action,
    records: &[Recorded],
    verdict: Verdict,
) -> Vec<Broken> {
    let plan = simulation.plan();
    let mut ends = vec![End::None; plan.apps.len()];
    let mut ailed = vec![false; plan.apps.len()];
    for record in records {
        match &record.event {
            Event::Done { app, .. } | Event::Removed { app } => ends[app.position()] = End::Done,
            Event::Failed { app, .. } => ends[app.position()] = End::Failed,
            Event::Skipped { app, because } => ends[app.position()] = End::Skipped(*because),
            Event::Ailing { app, .. } => ailed[app.position()] = true,
            _ => {}
        }
    }
    let mut broken = Vec::new();
    let mut blame = |app: AppIx, what: &str| {
        let what = format!("{} {what}", plan.app(app).app.name);
        broken.push(Broken { law: Law::FailurePropagation, what });
    };
    let complete = matches!(verdict, Verdict::Succeeded | Verdict::Failed);
    for app in plan.graph.apps() {
        let prerequisites = match action {
            Action::Deploy => plan.graph.dependencies(app),
            Action::Teardown => plan.graph.dependants(app),
        };
        let lost = |app: &AppIx| matches!(ends[app.position()], End::Failed | End::Skipped(_));
        match ends[app.position()] {
            End::None if complete => blame(app, "has not ended although the run has"),
            End::Done | End::Failed if prerequisites.iter().any(lost) => {
                blame(app, "was attempted although a prerequisite failed or was skipped");
            }
            End::Skipped(Because::App(cause)) if !lost(&cause) => {
                blame(app, "was skipped because of an app that did not fail");
            }
            End::Skipped(Because::Unhealthy(cause)) if !ailed[cause.position()] => {
                blame(app, "was skipped because of an app that was never unhealthy");
            }
            _ => {}
        }
        if verdict == Verdict::Succeeded {
            let good = ends[app.position()] == End::Done && truly_good(simulation, action, app);
            if !good {
                blame(app, "is not in the state that a successful run must reach");
            }
        }
    }
    broken
}

/// What the cluster says, whatever the log does. News of the last moment may not have arrived.
fn truly_good(simulation: &Simulation, action: Action, app: AppIx) -> bool {
    match action {
        Action::Deploy => simulation.was_told_well(app),
        Action::Teardown => {
            !simulation.exists(app) || simulation.plan().app(app).role == Role::Verify
        }
    }
}
