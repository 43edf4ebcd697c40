//! The laws hold on random platforms with random faults.

use tiphys_sim::{run_seed, shrink};

#[test]
fn laws_hold_for_two_thousand_seeds() {
    for seed in 0..2000 {
        if let Err(finding) = run_seed(seed) {
            panic!("{finding}\n--- smallest:\n{}", shrink(finding.clone()));
        }
    }
}
