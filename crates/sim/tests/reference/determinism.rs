//! Chance comes from the seed and from nowhere else.

use tiphys_run::Action;
use tiphys_sim::Simulation;

use crate::{plan, run};

/// The log as text: two logs are the same if no byte differs.
fn log(seed: u64) -> String {
    let faults = ["*=slow-api", "*=crash@10m", "vault=flap", "loki=stolen"];
    let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let mut simulation = Simulation::new(plan(), seed, faults);
    run(&mut simulation, Action::Deploy);
    simulation.records().iter().map(|record| format!("{record:?}\n")).collect()
}

#[test]
fn the_same_seed_gives_the_same_log_and_another_seed_another() {
    let logs: Vec<String> = (0..8).map(log).collect();
    let again: Vec<String> = (0..8).map(log).collect();
    assert_eq!(logs, again);
    let mut distinct = logs;
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 8);
}
