//! How a step begins, from a look that was taken after a refresh of this run.

use tiphys_model::{Health, OperationId};

use super::{FINISHED, Look, by_alice, of_another_app, of_another_plan, our_id, ours, revisions};
use crate::cause::Cause;
use crate::gate::{Start, Suspicion};
use crate::observation::{ConditionKind, OperationPhase};

type Case = (&'static str, Look, Start);

fn check(cases: impl IntoIterator<Item = Case>) {
    for (name, look, expected) in cases {
        assert_eq!(look.start(), expected, "{name}");
    }
}

fn sync() -> Start {
    Start::Sync { revisions: revisions("r1") }
}

fn adopt(ended: bool) -> Start {
    Start::Adopt { operation: our_id(), revisions: revisions("r1"), ended }
}

#[test]
fn what_is_current_and_well_is_left_alone() {
    let well = Look::well;
    let last_ended = |phase| well().with_last(|last| last.phase = phase);
    check([
        ("our last sync succeeded", well(), Start::AlreadyCurrent),
        ("never synced", well().without_last(), Start::AlreadyCurrent),
        (
            "alice's last sync succeeded",
            well().with_last(|last| last.operation = by_alice()),
            Start::AlreadyCurrent,
        ),
        (
            "its drift is tolerated",
            well().out_of_sync(&["Secret/ca"]).tolerating(&["Secret/ca"]),
            Start::AlreadyCurrent,
        ),
        (
            "a SyncError of long ago",
            well().condition(ConditionKind::Sync, "failed last week"),
            Start::AlreadyCurrent,
        ),
        ("an operation ended since", well().reconciled(FINISHED - 1), Start::NotYet),
        ("one ended within the same second", well().reconciled(FINISHED), Start::NotYet),
        ("the last sync failed", last_ended(OperationPhase::Failed), sync()),
        ("the last sync broke off", last_ended(OperationPhase::Error), sync()),
    ]);
}

#[test]
fn what_is_not_as_the_source_says_is_synced() {
    let well = Look::well;
    let drifted = || well().out_of_sync(&["Deployment/web"]);
    check([
        ("OutOfSync", drifted(), sync()),
        ("OutOfSync and never synced", drifted().without_last(), sync()),
        ("OutOfSync and unhealthy", drifted().health(Health::Degraded), sync()),
        ("some drift is not tolerated", drifted().tolerating(&["Secret/ca"]), sync()),
        (
            "at the revision that was compared, not at the one that was applied",
            drifted().with(|seen| seen.revisions = revisions("r2")),
            Start::Sync { revisions: revisions("r2") },
        ),
        ("unhealthy and never synced", well().without_last().health(Health::Degraded), sync()),
        (
            "unhealthy after alice's sync",
            well().with_last(|last| last.operation = by_alice()).health(Health::Progressing),
            sync(),
        ),
        (
            "unhealthy after a sync of another plan",
            well().with_last(|last| last.operation = of_another_plan()).health(Health::Progressing),
            sync(),
        ),
        (
            "unhealthy after a sync for another app",
            well().with_last(|last| last.operation = of_another_app()).health(Health::Progressing),
            sync(),
        ),
        (
            "unhealthy after a sync of ours that failed",
            well()
                .with_last(|last| last.phase = OperationPhase::Failed)
                .health(Health::Progressing),
            sync(),
        ),
        (
            "unhealthy after a sync of ours at another revision",
            well().with_last(|last| last.revisions = revisions("r0")).health(Health::Progressing),
            sync(),
        ),
    ]);
}

#[test]
fn an_operation_of_this_plan_is_taken_over_and_never_repeated() {
    let well = Look::well;
    let of_an_earlier_run = OperationId { epoch: 1, attempt: 2, ..our_id() };
    let mut earlier = ours();
    earlier.id = Some(of_an_earlier_run.clone());
    check([
        ("under way", well().running(ours()), adopt(false)),
        (
            "under way, whatever health says",
            well().running(ours()).health(Health::Degraded),
            adopt(false),
        ),
        (
            "under way, sent by an earlier run",
            well().running(earlier),
            Start::Adopt { operation: of_an_earlier_run, revisions: revisions("r1"), ended: false },
        ),
        (
            "under way, but being stopped",
            well().running(ours()).with_last(|last| last.phase = OperationPhase::Terminating),
            Start::Foreign { by: "tiphys".into() },
        ),
        ("applied, health is awaited", well().health(Health::Progressing), adopt(true)),
        ("applied, and Degraded so far", well().health(Health::Degraded), adopt(true)),
        (
            "applied, a controller lags behind",
            well().with(|seen| seen.lagging.push("CephCluster/main".into())),
            adopt(true),
        ),
        (
            "applied, a criterion is awaited",
            well().with(|seen| seen.unmet.push("vault:8200 is closed".into())),
            adopt(true),
        ),
    ]);
}

#[test]
fn nothing_is_sent_while_somebody_elses_operation_runs() {
    let well = Look::well;
    let foreign = |by: &str| Start::Foreign { by: by.into() };
    check([
        ("alice's", well().running(by_alice()), foreign("alice")),
        (
            "alice's, although it is OutOfSync",
            well().running(by_alice()).out_of_sync(&["Deployment/web"]),
            foreign("alice"),
        ),
        ("of another plan", well().running(of_another_plan()), foreign("tiphys of yesterday")),
        ("for another app", well().running(of_another_app()), foreign("a copy")),
        (
            "alice's, although it cannot be compared",
            well().running(by_alice()).condition(ConditionKind::Comparison, "no such path"),
            foreign("alice"),
        ),
    ]);
}

#[test]
fn what_cannot_be_judged_is_neither_synced_nor_done() {
    let well = Look::well;
    let suspect = |message: &str| Start::Suspect(Suspicion::Comparison { message: message.into() });
    let not_compared = || well().with(|seen| seen.compared_to_spec = false);
    check([
        ("compared with an older spec", not_compared(), Start::NotYet),
        (
            "compared with an older spec, and OutOfSync with that",
            not_compared().out_of_sync(&["Deployment/web"]),
            Start::NotYet,
        ),
        (
            "ComparisonError",
            well().condition(ConditionKind::Comparison, "no such path"),
            suspect("no such path"),
        ),
        (
            "UnknownError",
            well().condition(ConditionKind::Unknown, "cache is not ready"),
            suspect("cache is not ready"),
        ),
        (
            "ComparisonError, compared with an older spec",
            not_compared().condition(ConditionKind::Comparison, "no such path"),
            suspect("no such path"),
        ),
        (
            "InvalidSpecError",
            well().condition(ConditionKind::InvalidSpec, "no such project"),
            Start::Failed(Cause::InvalidSpec { message: "no such project".into() }),
        ),
        ("being deleted", well().deleting(), Start::Failed(Cause::BeingDeleted)),
        (
            "being deleted while alice syncs",
            well().deleting().running(by_alice()),
            Start::Failed(Cause::BeingDeleted),
        ),
    ]);
}
