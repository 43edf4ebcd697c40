//! `tiphys health test`: the cases of a tree of scripts.

use std::io::{self, Write};

use tiphys_health::{Evaluator, Limits, Outcome, TreeReport};
use tiphys_model::Exit;
use tiphys_report::{Notice, one_line};

use crate::args::{DocumentFormat, HealthTestArgs};
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &HealthTestArgs) -> Result<Exit, Failure> {
    let tree = super::tree(&args.directory, !args.no_open_libs)?;
    let report = tree.test(&mut Evaluator::new(Limits::default())).map_err(|error| {
        Failure::Health(Notice {
            what: "cannot run the tests".to_owned(),
            place: Some(args.directory.display().to_string()),
            why: Some(error.to_string()),
            next: Some("fix or remove the file".to_owned()),
        })
    })?;
    match args.output {
        DocumentFormat::Text => output::text(|out| write(out, &report))?,
        DocumentFormat::Json => output::data(|mut out| {
            serde_json::to_writer_pretty(&mut out, &report)?;
            writeln!(out)
        })?,
    }
    Ok(if report.agrees() { Exit::Done } else { Exit::Failed })
}

fn write(out: &mut dyn Write, report: &TreeReport) -> io::Result<()> {
    for difference in &report.differences {
        writeln!(out, "{} {}", one_line(&difference.script), one_line(&difference.input))?;
        writeln!(out, "  expected {}", one_line(&shown(&difference.expected)))?;
        writeln!(out, "  found    {}", one_line(&shown(&difference.found)))?;
    }
    for script in &report.untested {
        writeln!(out, "{} has no health_test.yaml", one_line(script))?;
    }
    let agree = report.cases - report.differences.len();
    let differ = report.differences.len();
    let scripts = counted(report.scripts, "script");
    let cases = counted(report.cases, "case");
    writeln!(out, "{scripts}, {cases}: {agree} agree, {differ} differ")
}

fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn shown(outcome: &Outcome) -> String {
    match &outcome.error {
        Some(error) => format!("an error: {error}"),
        None if outcome.status.is_empty() => "no status".to_owned(),
        None if outcome.message.is_empty() => outcome.status.clone(),
        None => format!("{} {:?}", outcome.status, outcome.message),
    }
}
