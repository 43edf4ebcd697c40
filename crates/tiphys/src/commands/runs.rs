//! `tiphys runs`: what the cluster has recorded. It changes nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use tiphys_cluster::Client;
use tiphys_model::{Exit, PlatformName};
use tiphys_report::{RunLine, RunState, RunsTable};
use tiphys_state::lease;
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

/// What came of each. The Leases are read only for runs that have not said how they ended.
async fn with_states(
    client: &Client,
    argocd: &str,
    found: Vec<Found>,
) -> Result<Vec<(Found, RunState)>, Failure> {
    let mut holders: BTreeMap<PlatformName, Option<String>> = BTreeMap::new();
    let mut states = Vec::new();
    for found in found {
        let platform = &found.head.platform;
        if found.head.finished.is_none() && !holders.contains_key(platform) {
            holders.insert(platform.clone(), holder(client, argocd, platform).await?);
        }
        let state = state(&found.head, holders.get(platform).and_then(Option::as_deref));
        states.push((found, state));
    }
    Ok(states)
}

/// Who holds a platform now.
pub(crate) async fn holder(
    client: &Client,
    argocd: &str,
    platform: &PlatformName,
) -> Result<Option<String>, Failure> {
    let lease = lease::seen(client, argocd, platform).await?;
    Ok(lease.filter(|lease| !lease.expired).map(|lease| lease.holder))
}

/// What came of a run, where this is who holds its platform.
pub(crate) fn state(head: &RunHead, holder: Option<&str>) -> RunState {
    match &head.finished {
        Some(finished) => RunState::Ended {
            verdict: finished.verdict.as_str().to_owned(),
            well: finished.exit() == Exit::Done,
        },
        None if holder == Some(&*head.by) => RunState::Running,
        None => RunState::Lost,
    }
}
