//! Measures what Tiphys costs. `docs/benchmarks.md` keeps the results.
//!
//! Milliseconds are printed for people. Only the growth of instruction counts can fail, because
//! only that is the same on a busy machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "tables and errors for people")]

mod cli;
mod cold_build;
mod curve;
mod generate;
mod health;
mod instructions;
mod plan;
mod sim;
mod upstream;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: tiphys-bench plan-curve              time and memory of reading and planning, by size
       tiphys-bench plan-instructions       instructions under callgrind; 1 if not near-linear
       tiphys-bench sim-curve               time of simulated deployments, by size
       tiphys-bench sim-instructions        instructions of a transition; 1 if they grow
       tiphys-bench health                  health scripts evaluated per second
       tiphys-bench health-ratio            likewise, beside Argo CD's own evaluator; needs Go
       tiphys-bench cli TIPHYS [PLATFORM]   start-up, plan and size of a tiphys binary
       tiphys-bench cold-build              seconds from an empty target folder to a rehearsal
       tiphys-bench generate APPS           prints a generated platform
       tiphys-bench plan-once FILE          reads and plans FILE once, prints its peak memory
       tiphys-bench sim-once APPS LIMIT     deploys once; LIMIT 0: all at once
       tiphys-bench sim-setup APPS LIMIT    only sets that up";

/// A tool that a measurement needs is missing.
const UNAVAILABLE: u8 = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["plan-curve"] => curve::run().map(|()| ExitCode::SUCCESS),
        ["plan-instructions"] => instructions::run(),
        ["sim-curve"] => sim::curve().map(|()| ExitCode::SUCCESS),
        ["sim-instructions"] => sim::instructions(),
        ["sim-once", apps, limit] => sim::once(apps, limit, true).map(|()| ExitCode::SUCCESS),
        ["sim-setup", apps, limit] => sim::once(apps, limit, false).map(|()| ExitCode::SUCCESS),
        ["health"] => health::run().map(|()| ExitCode::SUCCESS),
        ["health-ratio"] => upstream::run(),
        ["cli", tiphys] => cli::run(Path::new(tiphys), Path::new(cli::REFERENCE)),
        ["cli", tiphys, platform] => cli::run(Path::new(tiphys), Path::new(platform)),
        ["cold-build"] => cold_build::run().map(|()| ExitCode::SUCCESS),
        ["generate", apps] => generate(apps),
        ["plan-once", file] => plan::once(Path::new(file)).map(|()| ExitCode::SUCCESS),
        _ => Err(USAGE.into()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}

fn generate(apps: &str) -> Result<ExitCode, Box<dyn Error>> {
    print!("{}", generate::platform(apps.parse()?));
    Ok(ExitCode::SUCCESS)
}
