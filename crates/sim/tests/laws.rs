//! The ten laws hold on random platforms with random faults. A failure names the law, the seed,
//! and the smallest scenario that still breaks it.

#![expect(clippy::panic, reason = "in the helpers of a test, a panic is the report")]

use std::ops::Range;

use tiphys_sim::{run_seed, shrink};

fn check(seeds: Range<u64>) {
    for seed in seeds {
        if let Err(finding) = run_seed(seed) {
            panic!("{finding}\n--- smallest:\n{}", shrink(finding.clone()));
        }
    }
}

// Four parts, so that the cores share the work.

#[test]
fn laws_1_to_10_hold_for_seeds_from_0() {
    check(0..1000);
}

#[test]
fn laws_1_to_10_hold_for_seeds_from_1000() {
    check(1000..2000);
}

#[test]
fn laws_1_to_10_hold_for_seeds_from_2000() {
    check(2000..3000);
}

#[test]
fn laws_1_to_10_hold_for_seeds_from_3000() {
    check(3000..4000);
}
