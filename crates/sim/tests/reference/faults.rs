//! Each fault alone, and what becomes of the run.

use tiphys_model::{AppIx, Plan};
use tiphys_run::{Action, FailState, Verdict};
use tiphys_sim::{FaultKind, Simulation, Stop};

use crate::{End, app, dependants, ends, plan, run};

const SEEDS: u64 = 5;

/// How a run ends: its verdict, the app that the fault is about, what depends on that app, and
/// all the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    verdict: Verdict,
    target: End,
    dependants: End,
    others: End,
}

/// The fault is overcome.
const OVERCOME: Outcome = Outcome {
    verdict: Verdict::Succeeded,
    target: End::Done,
    dependants: End::Done,
    others: End::Done,
};

/// The app fails, what depends on it is skipped, and the rest is deployed.
const fn lost(state: FailState) -> Outcome {
    Outcome {
        verdict: Verdict::Failed,
        target: End::Failed(state),
        dependants: End::Skipped,
        others: End::Done,
    }
}

/// What is documented for each fault.
fn documented(kind: FaultKind) -> Outcome {
    match kind {
        FaultKind::Refuse
        | FaultKind::Degraded
        | FaultKind::ComparisonError
        | FaultKind::OutOfSync
        | FaultKind::InvalidSpec
        | FaultKind::Recreated => lost(FailState::Failed),
        FaultKind::DenySync => lost(FailState::Errored),
        FaultKind::Hang | FaultKind::NeverHealthy => lost(FailState::TimedOut),
        // It was Done, its dependants had started, and at the end it is unhealthy.
        FaultKind::DegradeLater => Outcome { verdict: Verdict::Failed, ..OVERCOME },
        FaultKind::LeaseLost => Outcome {
            verdict: Verdict::LeaseLost,
            target: End::None,
            dependants: End::None,
            others: End::None,
        },
        FaultKind::Flap
        | FaultKind::StaleHealth
        | FaultKind::MissedHealth
        | FaultKind::Stolen
        | FaultKind::RevisionMoved
        | FaultKind::StuckFinalizer
        | FaultKind::BriefComparisonError
        | FaultKind::DenyHandOff
        | FaultKind::SpecChanged
        | FaultKind::FrozenOperation
        | FaultKind::LiftedHold
        | FaultKind::StaleReads
        | FaultKind::LostWatch
        | FaultKind::DuplicateAnswer
        | FaultKind::SlowApi
        | FaultKind::Crash => OVERCOME,
    }
}

/// Deploys with one fault.
fn deploy(plan: &std::sync::Arc<Plan>, seed: u64, fault: Option<&str>) -> (Stop, Simulation) {
    let faults = fault.iter().map(|fault| fault.parse().unwrap()).collect();
    let mut simulation = Simulation::new(plan.clone(), seed, faults);
    let stop = run(&mut simulation, Action::Deploy);
    (stop, simulation)
}

/// What the steps of a plan are expected to come to.
fn expected(plan: &Plan, target: AppIx, outcome: Outcome) -> Vec<End> {
    let dependants = dependants(plan, target);
    let end = |app: AppIx| match app {
        app if app == target => outcome.target,
        app if dependants.contains(&app) => outcome.dependants,
        _ => outcome.others,
    };
    plan.graph.apps().map(end).collect()
}

#[test]
fn every_fault_ends_as_documented() {
    let plan = plan();
    let vault = app(&plan, "vault");
    for kind in FaultKind::ALL {
        let target = if kind.is_of_the_run() { "*" } else { "vault" };
        let fault = format!("{target}={}", kind.as_str());
        for seed in 0..SEEDS {
            let (stop, simulation) = deploy(&plan, seed, Some(&fault));
            let outcome = documented(kind);
            assert_eq!(stop, Stop::Finished(outcome.verdict), "{fault}, seed {seed}");
            assert_eq!(ends(&simulation), expected(&plan, vault, outcome), "{fault}, seed {seed}");
            let (_, undisturbed) = deploy(&plan, seed, None);
            let traceless = simulation.records() == undisturbed.records();
            // Only a teardown shows a finalizer that sticks.
            assert_eq!(traceless, kind == FaultKind::StuckFinalizer, "{fault}, seed {seed}");
        }
    }
}

#[test]
fn a_degraded_ceph_cluster_skips_all_that_needs_storage_and_nothing_else() {
    let plan = plan();
    let ceph = app(&plan, "ceph-cluster");
    let (stop, simulation) = deploy(&plan, 1, Some("ceph-cluster=degraded"));
    assert_eq!(stop, Stop::Finished(Verdict::Failed));
    assert_eq!(ends(&simulation), expected(&plan, ceph, lost(FailState::Failed)));
    let skipped = ends(&simulation).iter().filter(|end| **end == End::Skipped).count();
    assert_eq!(skipped, 28);
}

#[test]
fn a_finalizer_that_sticks_keeps_all_that_the_app_depends_on() {
    let plan = plan();
    let vault = app(&plan, "vault");
    let (_, mut simulation) = deploy(&plan, 1, Some("vault=stuck-finalizer"));
    let stop = run(&mut simulation, Action::Teardown);
    assert_eq!(stop, Stop::Finished(Verdict::Failed));
    let needed_by = |app: AppIx| dependants(&plan, app).contains(&vault);
    let end = |app: AppIx| match app {
        app if app == vault => End::Failed(FailState::TimedOut),
        app if needed_by(app) => End::Skipped,
        _ => End::Removed,
    };
    assert_eq!(ends(&simulation), plan.graph.apps().map(end).collect::<Vec<_>>());
    let kept = plan.graph.apps().filter(|app| simulation.exists(*app)).count();
    assert_eq!(kept, 1 + plan.graph.apps().filter(|app| needed_by(*app)).count());
}
