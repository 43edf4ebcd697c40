//! What was seen when a step failed, as far as it explains anything.

use tiphys_model::Health;
use tiphys_run::{Drifted, Evidence, LastOperation, Observation, Operation, OperationPhase, Stamp};

use crate::run::{fresh, revisions};

fn after(phase: OperationPhase, message: &str) -> Observation {
    let last = LastOperation {
        operation: Operation { id: None, by: "alice".into() },
        phase,
        finished_at: Some(Stamp(1)),
        revisions: revisions("r1"),
        message: message.into(),
    };
    Observation { last: Some(last), ..fresh() }
}

fn message(seen: &Observation) -> Option<String> {
    Evidence::from_observation(seen).message.map(|message| message.to_string())
}

#[test]
fn the_message_of_an_operation_explains_something_unless_it_succeeded() {
    assert_eq!(message(&after(OperationPhase::Failed, "denied")).as_deref(), Some("denied"));
    assert_eq!(message(&after(OperationPhase::Error, "lost")).as_deref(), Some("lost"));
    assert_eq!(message(&after(OperationPhase::Succeeded, "synced")), None);
    assert_eq!(message(&after(OperationPhase::Failed, "")), None, "nothing was said");
    assert_eq!(message(&fresh()), None);
}

#[test]
fn what_health_says_comes_first() {
    let health_message = Some("1 of 3 Pods are ready".into());
    let seen = Observation { health_message, ..after(OperationPhase::Failed, "denied") };
    assert_eq!(message(&seen).as_deref(), Some("1 of 3 Pods are ready"));
}

#[test]
fn what_drifted_is_named_with_its_fields_if_they_are_known() {
    let drifted = |resource: &str, fields: &[&str]| Drifted {
        resource: resource.into(),
        fields: fields.iter().map(|field| (*field).into()).collect(),
    };
    let seen = Observation {
        health: Health::Degraded,
        drifted: vec![
            drifted("Deployment/web", &["spec.replicas", "spec.paused"]),
            drifted("Secret/web", &[]),
        ],
        ..fresh()
    };
    let evidence = Evidence::from_observation(&seen);
    assert_eq!(evidence.health, Some(Health::Degraded));
    assert_eq!(evidence.drifted, ["Deployment/web: spec.replicas, spec.paused", "Secret/web"]);
}
