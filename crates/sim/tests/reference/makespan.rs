//! A run takes as long as the longest chain of what its apps take, and hardly more.

use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{Plan, Scope};
use tiphys_run::{Action, Time, Verdict};
use tiphys_sim::generate::{Shape, platform};
use tiphys_sim::{Chance, Simulation, Stop};

use crate::{plan, run};

/// How much longer than its critical path a deployment took, in parts of a thousand.
fn overhead(plan: Arc<Plan>, seed: u64) -> u128 {
    let mut simulation = Simulation::new(plan, seed, Vec::new());
    let stop = run(&mut simulation, Action::Deploy);
    assert_eq!(stop, Stop::Finished(Verdict::Succeeded));
    let took: Duration = simulation.now() - Time::START;
    let path = simulation.critical_path();
    let more = took.checked_sub(path).expect("nothing is quicker than its critical path");
    more.as_millis() * 1000 / path.as_millis()
}

#[test]
fn the_reference_platform_takes_its_critical_path_and_no_percent_more() {
    let plan = plan();
    for seed in 0..50 {
        let overhead = overhead(plan.clone(), seed);
        assert!(overhead < 10, "seed {seed}: {overhead} parts of a thousand");
    }
}

#[test]
fn random_platforms_without_limits_take_their_critical_path_and_no_percent_more() {
    for seed in 0..1000 {
        let mut chance = Chance::stream(seed, 20);
        let apps = usize::try_from(chance.between(50, 150)).unwrap();
        let platform = platform(Shape { apps, unlimited: true }, &mut chance);
        let plan = Arc::new(tiphys_plan::plan(&platform, &Scope::Platform).unwrap());
        let overhead = overhead(plan, seed);
        assert!(overhead < 10, "seed {seed}: {overhead} parts of a thousand");
    }
}
