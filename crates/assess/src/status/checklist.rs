//! The seven questions of the gate, each with what was seen, for who asks why.

use serde::Serialize;
use tiphys_model::platform::App;
use tiphys_model::{Health, SyncStatus};

use super::judge::is_assessed;
use tiphys_run::{Observation, OperationPhase};

/// One question of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub question: &'static str,
    pub answer: Answer,
    pub seen: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Yes,
    No,
    /// Nobody has looked.
    Unknown,
}

impl Answer {
    fn of(holds: bool) -> Self {
        if holds { Answer::Yes } else { Answer::No }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unknown => "?",
        }
    }
}

/// What was read besides the Application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The resources themselves, without which nobody knows about generations.
    pub resources: bool,
    /// Which health criteria the platform has for the app.
    pub criteria: bool,
}

/// Asks all seven, whatever the first answers are.
#[must_use]
pub fn checklist(app: &App, seen: &Observation, known: Known) -> [Check; 7] {
    let check = |question, answer, seen| Check { question, answer, seen };
    let (operation, ended) = operation(seen);
    let (applied, revisions) = revisions(seen);
    let (compared, sync) = comparison(app, seen);
    let health = match &seen.health_message {
        Some(message) => format!("{}: {message}", seen.health),
        None => seen.health.to_string(),
    };
    let (generation, lagging) = match seen.lagging.first() {
        Some(resource) => (Answer::No, format!("not for {resource}")),
        None if known.resources => (Answer::Yes, "all resources that report one".to_owned()),
        None => (Answer::Unknown, "the resources were not read".to_owned()),
    };
    let (criteria, unmet) = criteria(app, seen, known);
    [
        check("did the last operation succeed, and is no other running?", operation, ended),
        check("did it apply the current revision of the source?", applied, revisions),
        check(
            "was health assessed after it ended?",
            Answer::of(is_assessed(seen)),
            assessment(seen),
        ),
        check("is it Synced, compared with its current spec?", compared, sync),
        check("is it Healthy?", Answer::of(seen.health == Health::Healthy), health),
        check("have controllers seen the newest generation?", generation, lagging),
        check("are the platform's own health criteria met?", criteria, unmet),
    ]
}

fn operation(seen: &Observation) -> (Answer, String) {
    if let Some(operation) = &seen.operation {
        return (Answer::No, format!("an operation by {} is running", operation.by));
    }
    let Some(last) = &seen.last else {
        return (Answer::Yes, "no operation yet".to_owned());
    };
    let by = &last.operation.by;
    match last.phase {
        OperationPhase::Succeeded => (Answer::Yes, format!("the operation by {by} succeeded")),
        OperationPhase::Running => (Answer::No, format!("the operation by {by} is running")),
        OperationPhase::Terminating => {
            (Answer::No, format!("the operation by {by} is being stopped"))
        }
        OperationPhase::Failed | OperationPhase::Error => {
            (Answer::No, format!("the operation by {by} failed: {}", last.message))
        }
    }
}

fn revisions(seen: &Observation) -> (Answer, String) {
    match &seen.last {
        None if seen.sync == SyncStatus::Synced => (Answer::Yes, "nothing to do".to_owned()),
        None => (Answer::No, "nothing has been applied".to_owned()),
        Some(last) if last.phase != OperationPhase::Succeeded => {
            (Answer::No, "the operation has not succeeded".to_owned())
        }
        Some(last) if last.revisions == seen.revisions => (Answer::Yes, last.revisions.to_string()),
        // A commit that changes nothing of it: a run would not sync it either.
        Some(last) if seen.sync == SyncStatus::Synced && !last.revisions.0.is_empty() => {
            (Answer::Yes, format!("{}; unchanged at {}", last.revisions, seen.revisions))
        }
        Some(last) => {
            let applied = last.revisions.to_string();
            let applied = if applied.is_empty() { "nothing" } else { &applied };
            (Answer::No, format!("{applied}, but the source is at {}", seen.revisions))
        }
    }
}

fn assessment(seen: &Observation) -> String {
    let finished = seen.last.as_ref().and_then(|last| last.finished_at);
    match (seen.reconciled_at, finished) {
        (None, _) => "never".to_owned(),
        (Some(_), None) => "no operation has ended".to_owned(),
        (Some(reconciled), Some(finished)) => match reconciled.0 - finished.0 {
            0 => "in the same second".to_owned(),
            later @ 1.. => format!("{later} s after its end"),
            earlier => format!("{} s before its end", -earlier),
        },
    }
}

fn comparison(app: &App, seen: &Observation) -> (Answer, String) {
    if let Some(trouble) = tiphys_run::gate::comparison_trouble(seen) {
        return (Answer::No, trouble.cause().to_string());
    }
    if !seen.compared_to_spec {
        return (Answer::No, "it was compared with a different spec".to_owned());
    }
    let synced = Answer::of(seen.is_synced(&app.tolerate_drift));
    let word = match seen.sync {
        SyncStatus::Synced => "Synced",
        SyncStatus::OutOfSync => "OutOfSync",
        SyncStatus::Unknown => "Unknown",
    };
    let drifted: Vec<&str> = seen.drifted.iter().map(|drifted| &*drifted.resource).collect();
    let tolerated = if synced == Answer::Yes { " (tolerated)" } else { "" };
    if drifted.is_empty() {
        return (synced, word.to_owned());
    }
    (synced, format!("{word}: {}{tolerated}", drifted.join(", ")))
}

fn criteria(app: &App, seen: &Observation, known: Known) -> (Answer, String) {
    if !known.criteria {
        let unknown = "the deployed graph does not contain them; pass the platform file";
        return (Answer::Unknown, unknown.to_owned());
    }
    match (app.health.len(), seen.unmet.first()) {
        (_, Some(unmet)) => match seen.unmet.len() {
            1 => (Answer::No, unmet.to_string()),
            more => (Answer::No, format!("{unmet}; and {} more", more - 1)),
        },
        (0, None) => (Answer::Yes, "none defined".to_owned()),
        (1, None) => (Answer::Yes, "the only one is met".to_owned()),
        (count, None) => (Answer::Yes, format!("all {count} are met")),
    }
}
