//! `tiphys configure`: the platform's part of an Argo CD that is there.

use std::io::{self, Write};

use serde_json::Value;
use tiphys_install::configure::{Change, Configured, Mode, Outcome, configure};
use tiphys_report::difference;

use crate::args::{ConfigureArgs, DocumentFormat};
use crate::failure::Failure;
use crate::written::{self, Written};
use crate::{input, output, runtime, target};

pub(crate) fn run(args: &ConfigureArgs) -> Result<(), Failure> {
    let (platform, files) = input::with_files(&args.setup.file)?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Apply };
    let access = args.setup.cluster.access();
    let mounted = args.setup.credentials.read()?;
    target::tell(&access)?;
    let Configured { changes, left_out, given_token } = runtime::block_on(async {
        let client = access.client().await?;
        Ok(configure(&client, &platform, &files, &mounted, mode).await?)
    })?;
    if mode == Mode::DryRun && args.output == DocumentFormat::Text {
        output::text(|out| write_differences(out, &changes))?;
    }
    let objects: Vec<Written> = changes.iter().map(Written::from).collect();
    written::print(&objects, args.output)?;
    for object in left_out {
        output::note(&object.to_string());
    }
    if let Some(given) = given_token {
        output::note(&given.to_string());
    }
    if mode == Mode::DryRun {
        output::note("dry run: nothing was changed");
    }
    Ok(())
}

fn write_differences(out: &mut dyn Write, changes: &[Change]) -> io::Result<()> {
    for change in changes.iter().filter(|change| change.outcome != Outcome::Unchanged) {
        let before = change.before.as_ref().map(yaml).transpose()?.unwrap_or_default();
        let after = if change.after.is_null() { String::new() } else { yaml(&change.after)? };
        writeln!(out, "{}", difference(&Written::from(change).line(), &before, &after))?;
    }
    Ok(())
}

fn yaml(object: &Value) -> io::Result<String> {
    serde_saphyr::to_string(object).map_err(io::Error::other)
}
