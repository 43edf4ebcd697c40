//! What state an app is in, and why, if it is not well.

use std::sync::Arc;

use serde::Serialize;
use tiphys_model::platform::App;
use tiphys_model::{Health, Role, SyncStatus};

use tiphys_run::Cause;
use tiphys_run::gate;
use tiphys_run::{LastOperation, Observation, OperationPhase};

/// Where an app is, in the words of the events where they have one. The worst come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its last operation failed, its spec is invalid, or it cannot be compared with its source.
    Failed,
    /// Applied, and not Healthy.
    Unhealthy,
    /// Applied, and not as the source says.
    Drifted,
    /// There is no Application.
    Absent,
    /// It is being deleted.
    Removing,
    /// Applied; its health is not known yet, or is on its way.
    Converging,
    /// An operation is under way.
    Syncing,
    /// What the source says has not been applied yet.
    Waiting,
    /// As it should be.
    Done,
}

impl State {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Failed => "failed",
            State::Unhealthy => "unhealthy",
            State::Drifted => "drifted",
            State::Absent => "absent",
            State::Removing => "removing",
            State::Converging => "converging",
            State::Syncing => "syncing",
            State::Waiting => "waiting",
            State::Done => "done",
        }
    }
}

/// A state, and what speaks against the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub state: State,
    pub cause: Option<String>,
}

impl Judgement {
    fn new(state: State, cause: &(impl ToString + ?Sized)) -> Self {
        Judgement { state, cause: Some(cause.to_string()) }
    }

    pub(super) fn is_well(&self) -> bool {
        self.state == State::Done
    }
}

/// The questions of the gate, asked of an app of which no run has to be known.
pub(super) fn judge(app: &App, seen: Option<&Observation>, held: bool, role: Role) -> Judgement {
    let Some(seen) = seen else { return Judgement::new(State::Absent, &Cause::NoApplication) };
    if let Some(cause) = gate::hopeless(seen) {
        let state = if seen.deleting.is_some() { State::Removing } else { State::Failed };
        return Judgement::new(state, &cause);
    }
    // Of what cannot be compared, health says nothing.
    let incomparable = gate::comparison_trouble(seen);
    if role == Role::Verify && seen.health_in_full() == Health::Healthy && incomparable.is_none() {
        // Outside the scope nothing else is asked for.
        return Judgement { state: State::Done, cause: None };
    }
    if let Some(why) = under_way(seen) {
        return Judgement::new(State::Syncing, &why);
    }
    if let Some(trouble) = incomparable {
        return Judgement::new(State::Failed, &trouble.cause());
    }
    let last = seen.last.as_ref();
    if let Some(last) = last.filter(|last| last.phase != OperationPhase::Succeeded) {
        return Judgement::new(
            State::Failed,
            &Cause::OperationFailed { message: last.message.clone() },
        );
    }
    let synced = seen.is_synced(&app.tolerate_drift);
    let applied = last.is_some_and(|last| last.revisions == seen.revisions);
    if !synced && held && !applied {
        return Judgement::new(State::Waiting, "a run must sync it: automated sync is held");
    }
    if !synced && last.is_none() && seen.compared_to_spec {
        return Judgement::new(State::Waiting, "it has never been synced");
    }
    settled(app, seen, synced, applied)
}

/// What remains to be asked once nothing is under way and nothing has failed.
fn settled(app: &App, seen: &Observation, synced: bool, applied: bool) -> Judgement {
    if !is_assessed(seen) {
        return Judgement::new(State::Converging, &gate::Missing::Assessment);
    }
    if !seen.compared_to_spec {
        return Judgement::new(State::Converging, &gate::Missing::Comparison);
    }
    let unhealthy = unhealthy(seen);
    if !synced {
        let mut reasons = vec![out_of_sync(app, seen, applied)];
        // Without any resource there is nothing that could be healthy.
        if seen.health != Health::Missing {
            reasons.extend(unhealthy.map(|judgement| judgement.cause.unwrap_or_default()));
        }
        return Judgement::new(State::Drifted, &reasons.join("; "));
    }
    if let Some(judgement) = unhealthy {
        return judgement;
    }
    match gate::missing(seen, &app.tolerate_drift) {
        Some(missing) => Judgement::new(State::Converging, &missing),
        None => Judgement { state: State::Done, cause: None },
    }
}

/// Not before the end of its last operation. A later look of Argo CD's may fall in the same
/// second, and stands there for minutes; only a run can afford to ask for a newer one.
pub(super) fn is_assessed(seen: &Observation) -> bool {
    let Some(last) = &seen.last else { return seen.reconciled_at.is_some() };
    match (seen.reconciled_at, last.finished_at) {
        (Some(reconciled), Some(finished)) => reconciled >= finished,
        (None, _) | (_, None) => false,
    }
}

fn unhealthy(seen: &Observation) -> Option<Judgement> {
    let state = match seen.health {
        Health::Healthy => return None,
        Health::Progressing => State::Converging,
        Health::Suspended | Health::Missing | Health::Degraded | Health::Unknown => {
            State::Unhealthy
        }
    };
    Some(Judgement::new(state, &with_message("it is", seen.health, seen.health_message.as_ref())))
}

fn out_of_sync(app: &App, seen: &Observation, applied: bool) -> String {
    if seen.sync == SyncStatus::Unknown {
        return "its sync status is unknown".to_owned();
    }
    let names: Vec<&str> = seen.untolerated(&app.tolerate_drift).map(|d| &*d.resource).collect();
    let what = if applied { "still OutOfSync after its sync" } else { "it is OutOfSync" };
    if names.is_empty() { what.to_owned() } else { format!("{what}: {}", names.join(", ")) }
}

/// An operation that has been asked for or has not ended.
fn under_way(seen: &Observation) -> Option<String> {
    let running = |last: &&LastOperation| !last.phase.is_over();
    let last = seen.last.as_ref().filter(running);
    let operation = seen.operation.as_ref().or_else(|| last.map(|last| &last.operation))?;
    let mut text = match &operation.id {
        Some(_) => "an operation by a run is running".to_owned(),
        None => format!("an operation by {} is running", operation.by),
    };
    // Argo CD tries again by itself: what it says is why the last attempt failed.
    if let Some(last) = last.filter(|last| last.finished_at.is_some() && !last.message.is_empty()) {
        text = format!("{text}: {}", last.message);
    }
    Some(text)
}

fn with_message(verb: &str, health: Health, message: Option<&Arc<str>>) -> String {
    match message {
        Some(message) => format!("{verb} {health}: {message}"),
        None => format!("{verb} {health}"),
    }
}
