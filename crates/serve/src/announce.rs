//! The root app shows what deployments have come to, so that Argo CD's notifications can tell people.

use kube::Client;
use serde_json::json;
use tiphys_assess::deploy_loop::Next;
use tiphys_assess::deploy_loop::outcome::Outcome;
use tiphys_cluster::RequestError;
use tiphys_cluster::names::{OUTCOME, OUTCOME_MESSAGE, OUTCOME_REVISION};
use tiphys_model::Scope;
use tiphys_run::{Action, EventKind, LogLine, Verdict};
use tiphys_state::deploy_loop::LoopState;
use tiphys_state::records::RecordStore;

use crate::look::{Root, annotate_root};

/// A message is read on a phone.
const LONGEST_CAUSE: usize = 500;

/// Writes it where it is new.
pub(crate) async fn announce(
    client: &Client,
    state: &LoopState,
    root: &Root,
    next: &Next,
) -> Result<(), RequestError> {
    let shows = root.shows.as_ref().map(|(outcome, revision)| (*outcome, revision.as_str()));
    let Some((outcome, revision)) = next.outcome(shows) else { return Ok(()) };
    let message = match outcome {
        Outcome::Succeeded | Outcome::Recovered => format!("{revision} is deployed"),
        Outcome::Failed => match cause(client, state).await? {
            Some(cause) => format!("{revision} is not deployed: {cause}"),
            None => format!("{revision} is not deployed; `tiphys runs` lists the attempts"),
        },
    };
    let annotations = json!({
        OUTCOME: outcome.as_str(), OUTCOME_REVISION: revision, OUTCOME_MESSAGE: message,
    });
    annotate_root(client, state, annotations).await
}

/// What failed first in the last deployment of the whole platform, if its record says so.
pub(crate) async fn cause(
    client: &Client,
    state: &LoopState,
) -> Result<Option<String>, RequestError> {
    let records = RecordStore::new(client);
    let found = records.list(&state.argocd, Some(&state.platform)).await?;
    let last = found.iter().find(|found| {
        let head = &found.head;
        head.action == Action::Deploy && head.scope == Scope::Platform && head.finished.is_some()
    });
    let failed = |verdict| matches!(verdict, Verdict::Failed | Verdict::Deadline);
    let last =
        last.filter(|last| last.head.finished.as_ref().is_some_and(|end| failed(end.verdict)));
    let Some(last) = last else { return Ok(None) };
    Ok(first_failure(&records.lines_after(last, 0).await?))
}

/// Lines that cannot be read say nothing here.
fn first_failure(lines: &str) -> Option<String> {
    lines.lines().find_map(|line| match serde_json::from_str(line) {
        Ok(LogLine::Event(line)) => match line.kind {
            EventKind::StepFailed { app, cause, .. } => {
                let cause: String = cause.chars().take(LONGEST_CAUSE).collect();
                Some(format!("{app}: {cause}"))
            }
            _ => None,
        },
        Ok(LogLine::Unknown { .. }) | Err(_) => None,
    })
}
