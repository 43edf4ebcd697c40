//! The gate, case by case: each row states only what it is about, on top of an Application for
//! which all seven questions are answered with yes.

mod applied_cases;
mod every_combination;
mod start_cases;

use tiphys_model::operation::PlanTag;
use tiphys_model::{AppName, Health, OperationId, SyncStatus};

use super::{Applied, Expectation, OperationProgress, Start, applied, operation, start};
use crate::observation::{
    Condition, ConditionKind, Deleting, Drifted, LastOperation, Observation, Operation,
    OperationPhase,
};
use crate::testkit::{FINISHED, revisions, synced};
use crate::time::Stamp;

/// An Application, and what the step that looks at it knows besides.
#[derive(Debug, Clone)]
struct Look {
    seen: Observation,
    refreshed: bool,
    tolerated: Vec<String>,
}

impl Look {
    /// Our operation has succeeded, health was assessed after it, and all is well.
    fn well() -> Self {
        Look { seen: synced(ours()), refreshed: false, tolerated: Vec::new() }
    }

    fn with(mut self, change: impl FnOnce(&mut Observation)) -> Self {
        change(&mut self.seen);
        self
    }

    fn with_last(self, change: impl FnOnce(&mut LastOperation)) -> Self {
        self.with(|seen| change(seen.last.as_mut().expect("it had an operation")))
    }

    fn without_last(self) -> Self {
        self.with(|seen| seen.last = None)
    }

    fn running(self, operation: Operation) -> Self {
        self.with(|seen| seen.operation = Some(operation))
    }

    fn health(self, health: Health) -> Self {
        self.with(|seen| seen.health = health)
    }

    fn reconciled(self, stamp: i64) -> Self {
        self.with(|seen| seen.reconciled_at = Some(Stamp(stamp)))
    }

    fn condition(self, kind: ConditionKind, message: &str) -> Self {
        self.with(|seen| seen.conditions.push(Condition { kind, message: message.into() }))
    }

    fn out_of_sync(self, resources: &[&str]) -> Self {
        self.with(|seen| {
            seen.sync = SyncStatus::OutOfSync;
            seen.drifted = resources.iter().map(|resource| drifted(resource)).collect();
        })
    }

    fn deleting(self) -> Self {
        let finalizers = vec!["resources-finalizer.argocd.argoproj.io".into()];
        self.with(|seen| seen.deleting = Some(Deleting { since: Stamp(FINISHED), finalizers }))
    }

    /// A refresh that was asked for after the end of the operation was seen has completed.
    fn refreshed(mut self) -> Self {
        self.refreshed = true;
        self
    }

    fn tolerating(mut self, resources: &[&str]) -> Self {
        self.tolerated = resources.iter().map(|resource| (*resource).to_owned()).collect();
        self
    }

    fn applied(&self) -> Applied {
        let expected = Expectation {
            operation: &our_id(),
            revisions: &revisions("r1"),
            pinned: self.seen.pinned,
            refreshed: self.refreshed,
            tolerate_drift: &self.tolerated,
        };
        applied(&self.seen, expected)
    }

    fn start(&self) -> Start {
        start(&self.seen, our_id().plan, &our_id().app, &self.tolerated)
    }
}

fn tag(text: &str) -> PlanTag {
    text.parse().expect("twelve digits are a tag")
}

fn our_id() -> OperationId {
    let app = AppName::parse("vault").expect("a word is a name");
    OperationId { plan: tag("0123456789ab"), app, epoch: 3, attempt: 1 }
}

fn ours() -> Operation {
    Operation { id: Some(our_id()), by: "tiphys".into() }
}

/// The same app and attempt, of another plan.
fn of_another_plan() -> Operation {
    let id = OperationId { plan: tag("ba9876543210"), ..our_id() };
    Operation { id: Some(id), by: "tiphys of yesterday".into() }
}

/// The same plan, for another app: a copied Application, say.
fn of_another_app() -> Operation {
    let app = AppName::parse("vault-copy").expect("a word is a name");
    Operation { id: Some(OperationId { app, ..our_id() }), by: "a copy".into() }
}

fn by_alice() -> Operation {
    Operation { id: None, by: "alice".into() }
}

fn drifted(resource: &str) -> Drifted {
    Drifted { resource: resource.into(), fields: vec!["spec.replicas".into()] }
}

#[test]
fn an_operation_is_followed_by_its_id_and_phase_alone() {
    let last = |look: &Look| look.seen.last.clone().expect("it had an operation");
    let phase = |phase| Look::well().with_last(|last| last.phase = phase);
    let succeeded = Look::well();
    let by = |by: &str| OperationProgress::Replaced { by: by.into() };
    let failed = OperationProgress::Failed { message: "successfully synced".into() };
    let cases: [(&str, Look, OperationProgress<'_>); 11] = [
        ("succeeded", Look::well(), OperationProgress::Succeeded(&last(&succeeded))),
        ("nothing to be seen", Look::well().without_last(), OperationProgress::Unseen),
        ("requested", Look::well().without_last().running(ours()), OperationProgress::Running),
        ("running", phase(OperationPhase::Running), OperationProgress::Running),
        ("being stopped", phase(OperationPhase::Terminating), OperationProgress::Running),
        ("failed", phase(OperationPhase::Failed), failed.clone()),
        ("broken off", phase(OperationPhase::Error), failed),
        ("alice asked since", Look::well().running(by_alice()), by("alice")),
        (
            "another plan asked since",
            Look::well().running(of_another_plan()),
            by("tiphys of yesterday"),
        ),
        ("alice's came after", Look::well().with_last(|l| l.operation = by_alice()), by("alice")),
        (
            "our next attempt came after",
            Look::well().with_last(|l| {
                l.operation.id = Some(OperationId { attempt: 2, ..our_id() });
            }),
            by("tiphys"),
        ),
    ];
    for (name, look, expected) in cases {
        assert_eq!(operation(&look.seen, &our_id()), expected, "{name}");
    }
}
