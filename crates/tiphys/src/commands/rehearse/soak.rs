//! `tiphys rehearse --seeds N`: the laws, on random platforms with random faults.

use std::time::Instant;

use tiphys_model::Exit;
use tiphys_sim::{run_seed, shrink};

use crate::failure::Failure;
use crate::output;

/// How often progress is told.
const TOLD_EVERY: u64 = 10_000;

pub(super) fn run(first: u64, count: u64) -> Result<Exit, Failure> {
    let began = Instant::now();
    for done in 0..count {
        let seed = first.saturating_add(done);
        if let Err(finding) = run_seed(seed) {
            let smallest = shrink(finding.clone());
            output::text(|out| {
                writeln!(out, "{finding}\n\nsmallest platform that still shows it:\n{smallest}\n")?;
                writeln!(out, "to repeat: tiphys rehearse --seeds 1 --seed {seed}")
            })?;
            return Ok(Exit::Failed);
        }
        let checked = done + 1;
        if checked % TOLD_EVERY == 0 && checked < count {
            let rate = u128::from(checked) * 1000 / began.elapsed().as_millis().max(1);
            output::note(&format!("{checked} seeds checked, no violation, {rate} per second"));
        }
    }
    output::text(|out| writeln!(out, "{count} seeds from {first}: every invariant held"))?;
    Ok(Exit::Done)
}
