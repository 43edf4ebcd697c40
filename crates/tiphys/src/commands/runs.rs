//! `tiphys runs`: what the cluster has recorded. It changes nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use tiphys_cluster::Client;
use tiphys_inspect::status;
use tiphys_model::{Exit, PlatformName};
use tiphys_report::{RunLine, RunState, RunsTable};
use tiphys_state::records::{Found, RecordStore, RunHead};

use crate::args::{DocumentFormat, RunsArgs};
use crate::commands::validate::json;
use crate::failure::Failure;
use crate::{output, runtime};

/// For programs.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    head: &'a RunHead,
    state: &'a str,
}

pub(crate) fn run(args: &RunsArgs) -> Result<(), Failure> {
    let access = args.cluster.access();
    let runs = runtime::block_on(async {
        let client = access.client().await?;
        let found = RecordStore::new(&client).list(&args.namespace, args.name.as_ref()).await?;
        with_states(&client, &args.namespace, found).await
    })?;
    if args.output == DocumentFormat::Json {
        let documents: Vec<Document<'_>> = runs
            .iter()
            .map(|(found, state)| Document { head: &found.head, state: state.as_str() })
            .collect();
        return json(&documents);
    }
    if runs.is_empty() {
        output::note("no run is recorded in this cluster");
        return Ok(());
    }
    let lines: Vec<RunLine> = runs.into_iter().map(|(found, state)| line(found, state)).collect();
    output::text(|out| write!(out, "{}", RunsTable(&lines)))
}

fn line(Found { head, .. }: Found, state: RunState) -> RunLine {
    RunLine {
        run: head.run,
        platform: head.platform.to_string(),
        started: head.started.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        action: head.action.as_str().to_owned(),
        scope: head.scope.to_string(),
        took_ms: head.finished.as_ref().map(|finished| finished.makespan_ms),
        state,
        by: head.by,
    }
}

/// What came of each. Whether one goes on that has not said its end, the Lease tells.
pub(crate) async fn with_states(
    client: &Client,
    argocd: &str,
    found: Vec<Found>,
) -> Result<Vec<(Found, RunState)>, Failure> {
    let mut holders: BTreeMap<PlatformName, Option<String>> = BTreeMap::new();
    let mut states = Vec::new();
    for found in found {
        let RunHead { platform, by, finished, .. } = &found.head;
        let state = if let Some(finished) = finished {
            let verdict = finished.verdict.as_str().to_owned();
            RunState::Ended { verdict, well: finished.exit() == Exit::Done }
        } else {
            if !holders.contains_key(platform) {
                let lease = status::lease(client, argocd, platform).await?;
                let holder = lease.filter(|lease| !lease.expired).map(|lease| lease.holder);
                holders.insert(platform.clone(), holder);
            }
            let holds = holders.get(platform).is_some_and(|held| held.as_ref() == Some(by));
            if holds { RunState::Running } else { RunState::Lost }
        };
        states.push((found, state));
    }
    Ok(states)
}
