//! Why a step failed, in a person's words, and what to do next.

use tiphys_model::{AppName, Health};
use tiphys_run::gate::Missing;
use tiphys_run::{Cause, Pending};

use crate::run::revisions;

/// One of each kind.
fn causes() -> Vec<Cause> {
    let text = || "text".into();
    vec![
        Cause::OperationFailed { message: text() },
        Cause::Stolen { by: text() },
        Cause::ForeignOperation { by: text() },
        Cause::RevisionMoved { from: revisions("r1"), to: revisions("r2") },
        Cause::InvalidSpec { message: text() },
        Cause::Comparison { message: text() },
        Cause::Degraded { message: Some(text()) },
        Cause::Degraded { message: None },
        Cause::OutOfSync { drifted: Vec::new() },
        Cause::SyncTimeout,
        Cause::HealthTimeout { missing: Some(Missing::OutOfSync) },
        Cause::HealthTimeout { missing: None },
        Cause::NoApplication,
        Cause::BeingDeleted,
        Cause::UnhealthyOutside { health: Health::Degraded },
        Cause::DependantOutside,
        Cause::Refused { message: text() },
        Cause::Unreachable { message: text() },
        Cause::StuckDeletion { finalizers: vec![text()] },
        Cause::Deadline { before: Pending::Sync },
        Cause::TurnedUnhealthy { health: Health::Degraded, message: Some(text()) },
        Cause::TurnedUnhealthy { health: Health::Missing, message: None },
        Cause::CreatedAgain,
    ]
}

#[test]
fn every_cause_says_what_to_do_and_with_which_app_if_it_is_about_one() {
    let app = AppName::parse("vault").unwrap();
    for cause in causes() {
        let hint = cause.hint(&app);
        assert!(hint.starts_with(char::is_lowercase) && !hint.ends_with('.'), "{hint}");
        // Whoever corrects the account, the connection or the timeout does it for all apps.
        let about_all = matches!(
            cause,
            Cause::Refused { .. } | Cause::Unreachable { .. } | Cause::Deadline { .. }
        );
        assert_eq!(hint.contains("vault"), !about_all, "{hint}");
        assert!(hint.split(' ').count() > 4, "{hint:?} is no advice");
    }
}

#[test]
fn whoever_is_in_the_way_is_named_in_the_advice() {
    let app = AppName::parse("vault").unwrap();
    for cause in
        [Cause::Stolen { by: "alice".into() }, Cause::ForeignOperation { by: "alice".into() }]
    {
        assert!(cause.to_string().contains("alice") && cause.hint(&app).contains("alice"));
    }
}

#[test]
fn a_removal_names_what_it_waits_for_if_that_is_known() {
    let stuck = |finalizers: &[&str]| {
        let finalizers = finalizers.iter().map(|finalizer| (*finalizer).into()).collect();
        Cause::StuckDeletion { finalizers }.to_string()
    };
    assert_eq!(stuck(&[]), "it was not removed before the timeout");
    assert_eq!(
        stuck(&["foreground", "backup"]),
        "it was not removed before the timeout: waiting for foreground, backup"
    );
}
