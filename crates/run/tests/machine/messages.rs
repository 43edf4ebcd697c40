//! Events as lines, so that a test reads like the log of a run.

use tiphys_model::{AppIx, Plan};
use tiphys_run::{Because, BlockedBy, Event, FailState, How, SparedBy, Time, WaitingOn};

/// `10s vault retrying at 30s: the sync failed: denied`
pub(crate) fn words(plan: &Plan, at: Time, event: &Event) -> String {
    format!("{} {}", seconds(at), what(plan, event))
}

fn seconds(at: Time) -> String {
    format!("{}s", at.as_millis() / 1000)
}

fn what(plan: &Plan, event: &Event) -> String {
    let of = |app: &AppIx, what: &str| format!("{} {what}", plan.app(*app).app.name);
    let name = |app: &AppIx| plan.app(*app).app.name.clone();
    match event {
        Event::Begun => "begun".to_owned(),
        Event::Held => "held".to_owned(),
        Event::Waiting { app, on: WaitingOn::Prerequisites } => of(app, "waits"),
        Event::Waiting { app, on: WaitingOn::Unhealthy(other) } => {
            of(app, &format!("waits for {} to be well", name(other)))
        }
        Event::RefreshAsked { app } => of(app, "refresh asked"),
        Event::RefreshSpared { app, by: SparedBy::Witness(witness) } => {
            of(app, &format!("spared a refresh by {}", name(witness)))
        }
        Event::RefreshSpared { app, by: SparedBy::Comparison } => of(app, "to be compared"),
        Event::Vouched { app } => of(app, "vouched for"),
        Event::RefreshWanted { app } => of(app, "refresh wanted"),
        Event::Refreshed { app } => of(app, "refreshed"),
        Event::Admitted { app } => of(app, "admitted"),
        Event::Blocked { app, why: BlockedBy::Operation { by } } => {
            of(app, &format!("held up by {by}"))
        }
        Event::Blocked { app, why: BlockedBy::NotCompared } => of(app, "held up: not compared"),
        Event::Unblocked { app } => of(app, "freed"),
        Event::Syncing { app, attempt } => {
            let adopted = if attempt.adopted.is_some() { " adopted" } else { "" };
            let revisions = &attempt.revisions;
            of(app, &format!("syncing {} at {revisions}{adopted}", attempt.operation.attempt))
        }
        Event::Accepted { app, .. } => of(app, "accepted"),
        Event::Unanswered { app, message } => of(app, &format!("unanswered: {message}")),
        Event::ReadReturned { app } => of(app, "look returned"),
        Event::Resent { app } => of(app, "resent"),
        Event::Postponed { app, until } => of(app, &format!("postponed to {}", seconds(*until))),
        Event::Converging { app } => of(app, "converging"),
        Event::RevisionMoved { app, from, to } => of(app, &format!("moved from {from} to {to}")),
        Event::Retrying { app, cause, until } => {
            of(app, &format!("retrying at {}: {cause}", seconds(*until)))
        }
        Event::Suspected { app, suspicion } => {
            of(app, &format!("suspected: {}", suspicion.cause()))
        }
        Event::Cleared { app } => of(app, "cleared"),
        Event::Done { app, how: How::Applied } => of(app, "done: applied"),
        Event::Done { app, how: How::AlreadyCurrent } => of(app, "done: already current"),
        Event::Ailing { app, health } => {
            of(app, &format!("ails: {}", health.map_or("there again", |health| health.as_str())))
        }
        Event::Recovered { app } => of(app, "recovered"),
        Event::Failed { app, state, cause, .. } => {
            let state = match state {
                FailState::Failed => "failed",
                FailState::Errored => "errored",
                FailState::TimedOut => "timed out",
            };
            of(app, &format!("{state}: {cause}"))
        }
        Event::Skipped { app, because } => {
            let because = match because {
                Because::App(other) => format!("{} was lost", name(other)),
                Because::Unhealthy(other) => format!("{} stayed unhealthy", name(other)),
                Because::Outside(other) => format!("{} outside the scope", name(other)),
                Because::Deadline => "deadline".to_owned(),
            };
            of(app, &format!("skipped: {because}"))
        }
        Event::Removing { app } => of(app, "removing"),
        Event::Removed { app } => of(app, "removed"),
        Event::HandOffAsked { app } => of(app, "hand-off asked"),
        Event::HandedOff { app } => of(app, "handed off"),
        Event::TerminateAsked { app } => of(app, "terminate asked"),
        Event::Terminated { app } => of(app, "terminated"),
        Event::ReadAsked { app } => of(app, "looked at"),
        Event::Interrupted { signal } => format!("interrupted: {signal:?}"),
        Event::Finished { verdict, .. } => format!("finished: {}", verdict.as_str()),
    }
}
