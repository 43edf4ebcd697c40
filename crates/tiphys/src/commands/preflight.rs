//! `tiphys preflight`: Phase 0. It changes nothing.

use std::path::Path;

use tiphys_assess::preflight::{Outcome, Readiness, Report, Section};
use tiphys_cluster::Access;
use tiphys_engine::Signals;
use tiphys_inspect::preflight::{Preflight, Rendering};
use tiphys_install::bootstrap::Adoption;
use tiphys_model::{Exit, Platform};
use tiphys_report::{JunitReport, PreflightReport, SkippedChecks};
use tiphys_run::Signal;

use crate::args::{PreflightArgs, PreflightFormat};
use crate::failure::Failure;
use crate::{input, output, runtime};

pub(crate) fn run(args: &PreflightArgs) -> Result<Exit, Failure> {
    let platform = input::platform(Some(&args.setup.file))?;
    let access = args.setup.cluster.access();
    let report = look(Preflight {
        platform: &platform,
        access: &access,
        credentials: &args.setup.credentials.credentials,
        strict: args.strict,
        rendering: Rendering::Asked,
    })?;
    let report = match report {
        Ok(report) => report,
        Err(interrupted) => return Ok(interrupted),
    };
    match args.output {
        PreflightFormat::Json => output::data(|mut out| {
            serde_json::to_writer_pretty(&mut out, &report)?;
            writeln!(out)
        })?,
        PreflightFormat::Junit => output::data(|out| write!(out, "{}", JunitReport(&report)))?,
        PreflightFormat::Table => {
            let skipped = if args.all { SkippedChecks::Shown } else { SkippedChecks::Counted };
            let width = output::terminal_width();
            let table = PreflightReport { report: &report, skipped, width };
            output::text(|out| write!(out, "{table}"))?;
        }
    }
    Ok(report.readiness.exit())
}

/// The same as the first step of something else: how that ends, if something is in the way.
pub(crate) fn first(
    platform: &Platform,
    access: &Access,
    credentials: &Path,
    adoption: Adoption,
) -> Result<Option<Exit>, Failure> {
    output::note("checking the prerequisites (changes nothing)");
    let rendering = Rendering::LeftOut;
    let report = match look(Preflight { platform, access, credentials, strict: false, rendering })?
    {
        Ok(report) => report,
        Err(interrupted) => return Ok(Some(interrupted)),
    };
    // With --adopt, existing primitives are no problem.
    let mut report = match adoption {
        Adoption::Allowed => report.without(Section::Absence),
        Adoption::Refused => report,
    };
    // `tiphys preflight` tells the rest.
    report.checks.retain(|check| !matches!(check.outcome, Outcome::Pass | Outcome::Skipped));
    if report.readiness != Readiness::Ready {
        let skipped = SkippedChecks::Counted;
        let table = PreflightReport { report: &report, skipped, width: output::terminal_width() };
        output::aside(&table.to_string());
        return Ok(Some(report.readiness.exit()));
    }
    for check in &report.checks {
        output::warning(&format!("{}: {}", check.name, check.found));
    }
    Ok(None)
}

/// An interrupt still removes the temporary files of keys.
fn look(preflight: Preflight<'_>) -> Result<Result<Report, Exit>, Failure> {
    let ended = runtime::block_on(async {
        let mut signals = Signals::listen()?;
        Ok(tokio::select! {
            report = preflight.run() => Ok(report),
            signal = signals.next() => Err(signal),
        })
    })?;
    Ok(ended.map_err(|signal| match signal {
        Signal::Interrupt => Exit::Interrupted,
        Signal::Terminate => Exit::Terminated,
    }))
}
