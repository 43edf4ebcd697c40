//! What is measured: from the bytes of a platform file to a plan with its digest.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use tiphys_model::{Plan, Scope};
use tiphys_spec::{Source, Sources};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Bytes to a checked platform.
    pub(crate) read: Duration,
    /// Platform to a plan with its digest.
    pub(crate) plan: Duration,
}

impl Times {
    pub(crate) fn total(self) -> Duration {
        self.read + self.plan
    }
}

pub(crate) fn timed(bytes: Vec<u8>) -> Result<(Plan, Times), Box<dyn Error>> {
    let start = Instant::now();
    let source = Source::new("generated", bytes).map_err(|error| error.found)?;
    let sources = Sources::new(vec![source]);
    let platform = tiphys_spec::platform(&sources).map_err(|problems| {
        problems.into_sorted().first().map_or_else(String::new, |problem| problem.title.clone())
    })?;
    let read = start.elapsed();
    let start = Instant::now();
    let plan = tiphys_plan::plan(&platform, &Scope::Platform)?;
    Ok((plan, Times { read, plan: start.elapsed() }))
}

/// One reading and planning in a process of its own, which then knows its peak memory.
pub(crate) fn once(file: &Path) -> Result<(), Box<dyn Error>> {
    let (plan, _) = timed(std::fs::read(file)?)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|rest| rest.split_whitespace().next()).ok_or("no VmHWM in /proc")?;
    println!("{} {kib}", plan.digest.as_str());
    Ok(())
}
