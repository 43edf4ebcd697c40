//! The driver is killed before and after each of its effects, and starts again knowing nothing
//! but the cluster.

use std::collections::BTreeMap;

use tiphys_model::AppIx;
use tiphys_run::{Action, Verdict};
use tiphys_sim::{Crash, Fact, Simulation, Stop};

use crate::{plan, run};

const SEED: u64 = 1;

/// How often each app was synced by a run of this plan.
fn syncs(simulation: &Simulation) -> BTreeMap<AppIx, usize> {
    let mut syncs = BTreeMap::new();
    for (_, fact) in simulation.facts() {
        if let Fact::OperationSet { app, id: Some(_) } = fact {
            *syncs.entry(*app).or_default() += 1;
        }
    }
    syncs
}

#[test]
fn a_deployment_survives_being_killed_anywhere_and_syncs_every_app_once() {
    let plan = plan();
    let once: BTreeMap<AppIx, usize> = plan.graph.apps().map(|app| (app, 1)).collect();
    let mut undisturbed = Simulation::new(plan.clone(), SEED, Vec::new());
    run(&mut undisturbed, Action::Deploy);
    // At least a refresh, a sync and a hand-off for each app.
    assert!(undisturbed.effects() >= 3 * plan.apps.len());
    for effect in 0..undisturbed.effects() {
        for crash in [Crash::BeforeEffect(effect), Crash::AfterEffect(effect)] {
            let mut simulation = Simulation::new(plan.clone(), SEED, Vec::new()).with_crash(crash);
            let stop = run(&mut simulation, Action::Deploy);
            assert_eq!(stop, Stop::Finished(Verdict::Succeeded), "{crash:?}");
            let epochs = simulation.records().iter().map(|record| record.epoch);
            assert!(epochs.max() > Some(1), "{crash:?}: nobody was killed");
            let unwell: Vec<AppIx> =
                plan.graph.apps().filter(|app| !simulation.is_well(*app)).collect();
            assert_eq!(unwell, [], "{crash:?}");
            assert_eq!(syncs(&simulation), once, "{crash:?}");
        }
    }
}

#[test]
fn a_teardown_survives_being_killed_anywhere_and_removes_every_app_once() {
    let plan = plan();
    let deployed = |crash: Option<Crash>| {
        let simulation = Simulation::new(plan.clone(), SEED, Vec::new());
        let mut simulation = match crash {
            Some(crash) => simulation.with_crash(crash),
            None => simulation,
        };
        run(&mut simulation, Action::Deploy);
        let before = simulation.effects();
        (run(&mut simulation, Action::Teardown), before, simulation)
    };
    let (_, before, undisturbed) = deployed(None);
    assert!(undisturbed.effects() >= before + plan.apps.len());
    for effect in before..undisturbed.effects() {
        for crash in [Crash::BeforeEffect(effect), Crash::AfterEffect(effect)] {
            let (stop, _, simulation) = deployed(Some(crash));
            assert_eq!(stop, Stop::Finished(Verdict::Succeeded), "{crash:?}");
            let mut removed: Vec<AppIx> = simulation
                .facts()
                .iter()
                .filter_map(|(_, fact)| match fact {
                    Fact::Deleted { app, .. } => Some(*app),
                    _ => None,
                })
                .collect();
            removed.sort();
            assert_eq!(removed, plan.graph.apps().collect::<Vec<_>>(), "{crash:?}");
        }
    }
}
