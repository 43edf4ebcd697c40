//! `tiphys deploy --dry-run`: what a run would find to do, without touching anything.

use serde_json::{Value, json};
use tiphys_cluster::Access;
use tiphys_inspect::{Forecast, forecast};
use tiphys_model::{Exit, Plan, Platform};
use tiphys_report::one_line;

use crate::args::RunFormat;
use crate::failure::Failure;
use crate::{output, runtime};

pub(super) fn run(
    access: &Access,
    platform: &Platform,
    plan: &Plan,
    format: RunFormat,
) -> Result<Exit, Failure> {
    let found = runtime::block_on(async {
        let client = access.client().await?;
        Ok(forecast(&client, platform, plan).await?)
    })?;
    let Forecast { root, apps } = found;
    if format == RunFormat::Jsonl {
        let apps = apps.iter().map(|(app, would)| json!({ "app": app, "would": would }));
        let apps: Vec<Value> = apps.collect();
        let forecast = json!({ "kind": "forecast", "root": root, "apps": apps });
        output::data(|out| writeln!(out, "{forecast}"))?;
        return Ok(Exit::Done);
    }
    output::text(|out| {
        if let Some(root) = root {
            writeln!(out, "{}", one_line(&root))?;
        }
        let width = apps.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        apps.iter().try_for_each(|(name, what)| writeln!(out, "{name:<width$}  {}", one_line(what)))
    })?;
    Ok(Exit::Done)
}
