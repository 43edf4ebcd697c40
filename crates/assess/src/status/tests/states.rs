//! The state of one app, and the seven questions about it.

use tiphys_model::{Health, SyncStatus};

use super::{Case, by, ours, revisions, well};
use crate::status::{Answer, Known, State, checklist};
use tiphys_run::Stamp;
use tiphys_run::{Condition, ConditionKind, Deleting, Drifted, Observation, OperationPhase};

fn drifted(resource: &str) -> Vec<Drifted> {
    vec![Drifted { resource: resource.into(), fields: Vec::new() }]
}

fn condition(seen: &mut Observation, kind: ConditionKind) {
    seen.conditions = vec![Condition { kind, message: "boom".into() }];
}

fn last(seen: &mut Observation, phase: OperationPhase, message: &str) {
    let last = seen.last.as_mut().unwrap();
    (last.phase, last.message) = (phase, message.into());
}

/// Created by the root app, and never synced.
fn fresh(seen: &mut Observation) {
    (seen.last, seen.sync, seen.health) = (None, SyncStatus::OutOfSync, Health::Missing);
    seen.drifted = drifted("ConfigMap/db");
}

type Change = fn(&mut Observation);

/// What is different, whether it is held, and what comes of it.
const CASES: [(&str, Change, bool, State, &str); 23] = [
    ("well", |_| {}, false, State::Done, ""),
    ("well and held", |_| {}, true, State::Done, ""),
    ("never synced, nothing to do", |seen| seen.last = None, false, State::Done, ""),
    ("same second", |seen| seen.reconciled_at = Some(Stamp(100)), false, State::Done, ""),
    (
        "assessed before the end",
        |seen| seen.reconciled_at = Some(Stamp(99)),
        false,
        State::Converging,
        "its health has not been assessed since the sync",
    ),
    (
        "another spec",
        |seen| seen.compared_to_spec = false,
        false,
        State::Converging,
        "it has not been compared with its current spec",
    ),
    (
        "progressing",
        |seen| {
            seen.health = Health::Progressing;
            seen.health_message = Some("1 of 3 are ready".into());
        },
        true,
        State::Converging,
        "it is Progressing: 1 of 3 are ready",
    ),
    ("degraded", |seen| seen.health = Health::Degraded, false, State::Unhealthy, "it is Degraded"),
    ("missing", |seen| seen.health = Health::Missing, false, State::Unhealthy, "it is Missing"),
    (
        "running",
        |seen| seen.operation = Some(by("alice")),
        false,
        State::Syncing,
        "an operation by alice is running",
    ),
    (
        "ours, running",
        |seen| seen.operation = Some(ours()),
        false,
        State::Syncing,
        "an operation by a run is running",
    ),
    (
        "tried again by Argo CD",
        |seen| last(seen, OperationPhase::Running, "denied. Retrying"),
        false,
        State::Syncing,
        "an operation by a run is running: denied. Retrying",
    ),
    (
        "failed",
        |seen| last(seen, OperationPhase::Failed, "denied"),
        true,
        State::Failed,
        "the sync failed: denied",
    ),
    (
        "invalid",
        |seen| condition(seen, ConditionKind::InvalidSpec),
        false,
        State::Failed,
        "its spec is invalid: boom",
    ),
    (
        "not comparable",
        |seen| condition(seen, ConditionKind::Comparison),
        false,
        State::Failed,
        "Argo CD cannot compare it with its source: boom",
    ),
    ("an old error", |seen| condition(seen, ConditionKind::Sync), false, State::Done, ""),
    (
        "being deleted",
        |seen| seen.deleting = Some(Deleting { since: Stamp(1), finalizers: Vec::new() }),
        false,
        State::Removing,
        "it is being deleted",
    ),
    (
        "held and not yet its turn",
        fresh,
        true,
        State::Waiting,
        "a run must sync it: automated sync is held",
    ),
    (
        "a new revision that is held",
        |seen| {
            seen.sync = SyncStatus::OutOfSync;
            seen.revisions = revisions("r2");
        },
        true,
        State::Waiting,
        "a run must sync it: automated sync is held",
    ),
    ("never synced and not held", fresh, false, State::Waiting, "it has never been synced"),
    (
        "changed by somebody",
        |seen| {
            seen.sync = SyncStatus::OutOfSync;
            seen.drifted = drifted("ConfigMap/db");
            seen.revisions = revisions("r2");
        },
        false,
        State::Drifted,
        "it is OutOfSync: ConfigMap/db",
    ),
    (
        "out of sync for ever",
        |seen| {
            (seen.sync, seen.health) = (SyncStatus::OutOfSync, Health::Degraded);
            seen.drifted = drifted("Deployment/db");
        },
        true,
        State::Drifted,
        "still OutOfSync after its sync: Deployment/db; it is Degraded",
    ),
    (
        "tolerated",
        |seen| {
            seen.sync = SyncStatus::OutOfSync;
            seen.drifted = drifted("Secret/noise");
        },
        false,
        State::Done,
        "",
    ),
];

#[test]
fn each_state_has_its_cause() {
    for (what, change, held, state, cause) in CASES {
        let case = Case::new().change("db", change).hold(if held { &["db"] } else { &[] });
        let status = case.status();
        let db = status.apps.iter().find(|app| app.name.as_str() == "db").unwrap();
        let found = (db.state, db.cause.as_deref().unwrap_or_default());
        assert_eq!(found, (state, cause), "{what}");
        assert_eq!(status.is_well(), state == State::Done, "{what}");
    }
}

#[test]
fn tolerated_drift_is_shown() {
    let case = Case::new().change("db", |seen| {
        seen.sync = SyncStatus::OutOfSync;
        seen.drifted = drifted("Secret/noise");
    });
    let status = case.status();
    let db = status.apps.iter().find(|app| app.name.as_str() == "db").unwrap();
    assert_eq!(db.tolerated, ["Secret/noise".into()]);
}

#[test]
fn a_commit_that_changes_nothing_of_an_app_needs_no_sync() {
    let mut seen = well();
    seen.revisions = revisions("r2");
    let known = Known { resources: true, criteria: true };
    let checks = checklist(&super::app("db", &[]), &seen, known);
    assert_eq!((checks[1].answer, &*checks[1].seen), (Answer::Yes, "r1; unchanged at r2"));
}

#[test]
fn all_seven_questions_are_asked() {
    let app = super::app("db", &[]);
    let all = Known { resources: true, criteria: true };
    let answers =
        |known| checklist(&app, &well(), known).map(|check| check.answer.as_str()).concat();
    assert_eq!(answers(all), "yesyesyesyesyesyesyes");
    assert_eq!(answers(Known { resources: false, ..all }), "yesyesyesyesyes?yes");
    assert_eq!(answers(Known { criteria: false, ..all }), "yesyesyesyesyesyes?");
    let cases: [(Change, usize, &str); 8] = [
        (|seen| seen.operation = Some(by("alice")), 1, "an operation by alice is running"),
        (
            |seen| last(seen, OperationPhase::Failed, "denied"),
            1,
            "the operation by tiphys failed: denied",
        ),
        (
            |seen| {
                seen.revisions = revisions("r2");
                seen.sync = SyncStatus::OutOfSync;
            },
            2,
            "r1, but the source is at r2",
        ),
        (|seen| seen.reconciled_at = Some(Stamp(98)), 3, "2 s before its end"),
        (|seen| seen.compared_to_spec = false, 4, "it was compared with a different spec"),
        (|seen| seen.health = Health::Degraded, 5, "Degraded"),
        (|seen| seen.lagging = vec!["Deployment/db".into()], 6, "not for Deployment/db"),
        (|seen| seen.unmet = vec!["phase is Creating".into()], 7, "phase is Creating"),
    ];
    for (change, number, found) in cases {
        let mut seen = well();
        change(&mut seen);
        let checks = checklist(&app, &seen, all);
        let no: Vec<usize> =
            (0..7).filter(|at| checks[*at].answer == Answer::No).map(|at| at + 1).collect();
        let expected = match found {
            // What has not succeeded has applied nothing for certain.
            _ if found.contains("failed") => vec![1, 2],
            // Otherwise its source has changed nothing.
            _ if found.contains("but the source") => vec![2, 4],
            _ => vec![number],
        };
        assert_eq!((no, &*checks[number - 1].seen), (expected, found));
    }
}
