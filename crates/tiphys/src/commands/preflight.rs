//! `tiphys preflight`: Phase 0. It changes nothing.

use tiphys_cluster::Signals;
use tiphys_cluster::preflight::Preflight;
use tiphys_model::Exit;
use tiphys_report::{JunitReport, PreflightReport};
use tiphys_run::Signal;

use crate::args::{PreflightArgs, PreflightFormat};
use crate::failure::Failure;
use crate::{input, output, runtime};

pub(crate) fn run(args: &PreflightArgs) -> Result<Exit, Failure> {
    let platform = input::platform(Some(&args.file))?;
    let access = args.cluster.access();
    let preflight = Preflight {
        platform: &platform,
        access: &access,
        credentials: &args.credentials.credentials,
        strict: args.strict,
    };
    // Whoever is interrupted still removes the files that it made for a key.
    let ended = runtime::block_on(async {
        let mut signals = Signals::listen()?;
        Ok(tokio::select! {
            report = preflight.run() => Ok(report),
            signal = signals.next() => Err(signal),
        })
    })?;
    let report = match ended {
        Ok(report) => report,
        Err(Signal::Interrupt) => return Ok(Exit::Interrupted),
        Err(Signal::Terminate) => return Ok(Exit::Terminated),
    };
    match args.output {
        PreflightFormat::Json => output::data(|mut out| {
            serde_json::to_writer_pretty(&mut out, &report)?;
            writeln!(out)
        })?,
        PreflightFormat::Junit => output::data(|out| write!(out, "{}", JunitReport(&report)))?,
        PreflightFormat::Table => output::text(|out| write!(out, "{}", PreflightReport(&report)))?,
    }
    Ok(report.verdict.exit())
}
