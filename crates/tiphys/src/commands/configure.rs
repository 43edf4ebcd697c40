//! `tiphys configure`: the platform's part of an Argo CD that is there.

use std::io::{self, Write};

use serde_json::{Value, json};
use tiphys_cluster::Access;
use tiphys_cluster::configure::{Change, Mode, Outcome, configure};
use tiphys_report::{ObjectLine, ObjectState, difference, object_table};

use crate::args::{ConfigureArgs, ObjectsFormat};
use crate::failure::Failure;
use crate::{input, output, runtime};

pub(crate) fn run(args: &ConfigureArgs) -> Result<(), Failure> {
    let platform = input::platform(Some(&args.file))?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Apply };
    let cluster = args.cluster.clone();
    let access = Access { kubeconfig: cluster.kubeconfig, context: cluster.context };
    let mounted = args.credentials.read()?;
    let changes = runtime::block_on(async {
        let client = access.client().await?;
        configure(&client, &platform, &mounted.git, mode).await
    })?;
    match args.output {
        ObjectsFormat::Json => output::data(|out| write_json(out, &changes))?,
        ObjectsFormat::Text => output::text(|out| write_text(out, &changes, mode))?,
    }
    if mode == Mode::DryRun {
        output::note("this was a dry run: nothing was changed");
    }
    Ok(())
}

fn write_json(mut out: &mut dyn Write, changes: &[Change]) -> io::Result<()> {
    let list: Value = changes
        .iter()
        .map(|change| {
            json!({
                "kind": change.kind,
                "name": change.name,
                "namespace": change.namespace,
                "result": change.outcome.as_str(),
            })
        })
        .collect();
    serde_json::to_writer_pretty(&mut out, &list)?;
    writeln!(out)
}

fn write_text(out: &mut dyn Write, changes: &[Change], mode: Mode) -> io::Result<()> {
    let lines: Vec<ObjectLine> = changes
        .iter()
        .map(|change| ObjectLine {
            kind: &change.kind,
            name: &change.name,
            namespace: &change.namespace,
            state: match change.outcome {
                Outcome::Created => ObjectState::Created,
                Outcome::Changed => ObjectState::Changed,
                Outcome::Unchanged => ObjectState::Unchanged,
            },
        })
        .collect();
    if mode == Mode::DryRun {
        for (change, line) in changes.iter().zip(&lines) {
            if change.outcome != Outcome::Unchanged {
                let before = change.before.as_ref().map(yaml).transpose()?.unwrap_or_default();
                let after = yaml(&change.after)?;
                writeln!(out, "{}", difference(line, &before, &after))?;
            }
        }
    }
    write!(out, "{}", object_table(&lines))
}

fn yaml(object: &Value) -> io::Result<String> {
    serde_saphyr::to_string(object).map_err(io::Error::other)
}
