//! A step whose operation has ended: the stale states that Argo CD really shows, and failures.

use tiphys_model::{Health, SyncStatus};

use super::{FINISHED, Look, by_alice, drifted, of_another_app, of_another_plan, ours, revisions};
use crate::cause::Cause;
use crate::gate::{Applied, Missing, Suspicion};
use crate::observation::{ConditionKind, OperationPhase, Revisions};
use crate::time::Stamp;

type Case = (&'static str, Look, Applied);

fn check(cases: impl IntoIterator<Item = Case>) {
    for (name, look, expected) in cases {
        assert_eq!(look.applied(), expected, "{name}");
    }
}

fn not_yet(missing: Missing) -> Applied {
    Applied::NotYet(missing)
}

#[test]
fn health_counts_only_if_it_was_assessed_after_the_operation() {
    let well = Look::well;
    let unassessed = || not_yet(Missing::Assessment);
    check([
        ("assessed in a later second", well(), Applied::Done),
        ("still the health of before the sync", well().reconciled(FINISHED - 90), unassessed()),
        ("assessed one second too early", well().reconciled(FINISHED - 1), unassessed()),
        ("assessed within the same second", well().reconciled(FINISHED), unassessed()),
        ("never assessed", well().with(|seen| seen.reconciled_at = None), unassessed()),
        ("no stamp of its end", well().with_last(|last| last.finished_at = None), unassessed()),
        (
            "same second, and our refresh returned",
            well().reconciled(FINISHED).refreshed(),
            Applied::Done,
        ),
        (
            "an older comparison took our refresh along",
            well().reconciled(FINISHED - 1).refreshed(),
            unassessed(),
        ),
        (
            "Degraded, but perhaps only before the sync",
            well().reconciled(FINISHED).health(Health::Degraded),
            unassessed(),
        ),
        (
            "OutOfSync, but perhaps only before the sync",
            well().reconciled(FINISHED).out_of_sync(&["Deployment/web"]),
            unassessed(),
        ),
    ]);
}

#[test]
fn only_our_own_operation_counts_and_only_once_it_has_ended() {
    let well = Look::well;
    let unassessed = || not_yet(Missing::Assessment);
    let replaced = |by: &str| Applied::Replaced { by: by.into() };
    check([
        (
            "a retry is awaited: Running with a stamp of its end",
            well().with_last(|last| last.phase = OperationPhase::Running),
            unassessed(),
        ),
        (
            "being stopped",
            well().with_last(|last| last.phase = OperationPhase::Terminating),
            unassessed(),
        ),
        ("shown as running once more", well().running(ours()), unassessed()),
        ("the state was reset", well().without_last(), unassessed()),
        ("alice syncs now", well().running(by_alice()), replaced("alice")),
        (
            "another plan syncs now",
            well().running(of_another_plan()),
            replaced("tiphys of yesterday"),
        ),
        (
            "alice has synced since",
            well().with_last(|last| last.operation = by_alice()),
            replaced("alice"),
        ),
        (
            "another plan has synced since",
            well().with_last(|last| last.operation = of_another_plan()),
            replaced("tiphys of yesterday"),
        ),
        (
            "the id of another app",
            well().with_last(|last| last.operation = of_another_app()),
            replaced("a copy"),
        ),
    ]);
}

/// It follows a branch, a tag or a range.
fn moving() -> Look {
    Look::well().with(|seen| seen.pinned = false)
}

#[test]
fn what_moves_by_itself_is_done_where_it_is_synced() {
    let at = |look: Look, revision: &str| look.with(|seen| seen.revisions = revisions(revision));
    let applied_newer = || moving().with_last(|last| last.revisions = revisions("r2"));
    check([
        ("applied what was planned", moving(), Applied::Done),
        ("applied a newer one", at(applied_newer(), "r2"), Applied::Done),
        ("moved on without a change", at(moving(), "r2"), Applied::Done),
        (
            "moved on with a change",
            at(moving(), "r2").out_of_sync(&["Deployment/web"]),
            Applied::Moved { to: revisions("r2") },
        ),
        (
            "moved on with a change that is tolerated",
            at(moving(), "r2").out_of_sync(&["Secret/ca"]).tolerating(&["Secret/ca"]),
            Applied::Done,
        ),
    ]);
}

#[test]
fn only_the_revisions_of_the_run_count() {
    let well = Look::well;
    let moved = |to: Revisions| Applied::Moved { to };
    let two = || Revisions(["r1".into(), "r2".into()].into());
    check([
        (
            "applied another",
            well().with_last(|l| l.revisions = revisions("r2")),
            moved(revisions("r2")),
        ),
        ("applied one more", well().with_last(|l| l.revisions = two()), moved(two())),
        (
            "applied nothing",
            well().with_last(|l| l.revisions = Revisions::default()),
            moved(Revisions::default()),
        ),
        (
            "compared with another",
            well().with(|s| s.revisions = revisions("r2")),
            moved(revisions("r2")),
        ),
        (
            "compared with another before it ended",
            well().reconciled(FINISHED).with(|s| s.revisions = revisions("r2")),
            not_yet(Missing::Assessment),
        ),
        (
            "compared with an older spec",
            well().with(|s| s.compared_to_spec = false),
            not_yet(Missing::Comparison),
        ),
        (
            "compared with another revision of an older spec",
            well().with(|s| {
                s.compared_to_spec = false;
                s.revisions = revisions("r2");
            }),
            not_yet(Missing::Comparison),
        ),
    ]);
}

#[test]
fn healthy_is_not_enough_while_something_is_out_of_sync() {
    let well = Look::well;
    let out_of_sync = || not_yet(Missing::OutOfSync);
    let suspect = |resources: &[&str]| {
        let drifted = resources.iter().map(|resource| drifted(resource)).collect();
        Applied::Suspect(Suspicion::OutOfSync { drifted }, Missing::OutOfSync)
    };
    let mixed = || well().out_of_sync(&["Secret/ca", "Deployment/web"]).tolerating(&["Secret/ca"]);
    check([
        (
            "a resource is missing, not refreshed yet",
            well().out_of_sync(&["Deployment/web"]),
            out_of_sync(),
        ),
        (
            "a resource is missing, after a refresh",
            well().out_of_sync(&["Deployment/web"]).refreshed(),
            suspect(&["Deployment/web"]),
        ),
        (
            "tolerated drift",
            well().out_of_sync(&["Secret/ca"]).tolerating(&["Secret/ca"]),
            Applied::Done,
        ),
        (
            "tolerated drift, after a refresh",
            well().out_of_sync(&["Secret/ca"]).tolerating(&["Secret/ca"]).refreshed(),
            Applied::Done,
        ),
        ("tolerated and other drift", mixed(), out_of_sync()),
        (
            "tolerated and other drift, after a refresh",
            mixed().refreshed(),
            suspect(&["Deployment/web"]),
        ),
        (
            "OutOfSync without saying what",
            well().out_of_sync(&[]).tolerating(&["Secret/ca"]),
            out_of_sync(),
        ),
        (
            "another kind of the tolerated name",
            well().out_of_sync(&["ConfigMap/ca"]).tolerating(&["Secret/ca"]),
            out_of_sync(),
        ),
        (
            "not known whether it is in sync",
            well().with(|s| s.sync = SyncStatus::Unknown),
            out_of_sync(),
        ),
        (
            "not known whether it is in sync, after a refresh",
            well().with(|s| s.sync = SyncStatus::Unknown).refreshed(),
            out_of_sync(),
        ),
        (
            "OutOfSync is found before it is unhealthy",
            well().out_of_sync(&["Deployment/web"]).health(Health::Progressing),
            out_of_sync(),
        ),
    ]);
}

#[test]
fn what_takes_its_time_is_named() {
    let well = Look::well;
    let lagging = || well().with(|s| s.lagging = vec!["CephCluster/main".into(), "Pool/a".into()]);
    let unmet = |look: Look| look.with(|s| s.unmet = vec!["vault:8200 is closed".into()]);
    let generation = not_yet(Missing::Generation { resource: "CephCluster/main".into() });
    check([
        (
            "Progressing",
            well().health(Health::Progressing),
            not_yet(Missing::Health(Health::Progressing)),
        ),
        (
            "Suspended",
            well().health(Health::Suspended),
            not_yet(Missing::Health(Health::Suspended)),
        ),
        ("Missing", well().health(Health::Missing), not_yet(Missing::Health(Health::Missing))),
        ("Unknown", well().health(Health::Unknown), not_yet(Missing::Health(Health::Unknown))),
        ("a controller lags behind", lagging(), generation.clone()),
        ("lagging is found before a criterion", unmet(lagging()), generation),
        (
            "a criterion",
            unmet(well()),
            not_yet(Missing::Criterion { unmet: "vault:8200 is closed".into() }),
        ),
        (
            "unhealthy is found before lagging",
            lagging().health(Health::Progressing),
            not_yet(Missing::Health(Health::Progressing)),
        ),
    ]);
}

#[test]
fn failures_are_called_so_at_once_or_suspected_first() {
    let well = Look::well;
    let unknown = || well().with(|seen| seen.sync = SyncStatus::Unknown);
    let comparison = |message: &str, missing| {
        Applied::Suspect(Suspicion::Comparison { message: message.into() }, missing)
    };
    let invalid = Applied::Failed(Cause::InvalidSpec { message: "no such project".into() });
    let degraded = |message: Option<&str>| {
        let suspicion = Suspicion::Degraded { message: message.map(Into::into) };
        Applied::Suspect(suspicion, Missing::Health(Health::Degraded))
    };
    let operation_failed =
        || Applied::Failed(Cause::OperationFailed { message: "successfully synced".into() });
    check([
        (
            "InvalidSpecError, whatever else is well",
            well().condition(ConditionKind::InvalidSpec, "no such project"),
            invalid.clone(),
        ),
        (
            "InvalidSpecError while alice syncs",
            well().running(by_alice()).condition(ConditionKind::InvalidSpec, "no such project"),
            invalid,
        ),
        (
            "ComparisonError",
            unknown().condition(ConditionKind::Comparison, "no such path"),
            comparison("no such path", Missing::OutOfSync),
        ),
        (
            "ComparisonError, which outweighs being OutOfSync after a refresh",
            well()
                .out_of_sync(&["Deployment/web"])
                .refreshed()
                .condition(ConditionKind::Comparison, "no such path"),
            comparison("no such path", Missing::OutOfSync),
        ),
        (
            "UnknownError",
            unknown().condition(ConditionKind::Unknown, "cache is not ready"),
            comparison("cache is not ready", Missing::OutOfSync),
        ),
        (
            "SyncError of an earlier sync",
            well().condition(ConditionKind::Sync, "failed last week"),
            Applied::Done,
        ),
        (
            "SyncError beside something that takes its time",
            well().condition(ConditionKind::Sync, "failed last week").health(Health::Progressing),
            not_yet(Missing::Health(Health::Progressing)),
        ),
        ("Degraded", well().health(Health::Degraded), degraded(None)),
        (
            "Degraded with a reason, also after a refresh",
            well().health(Health::Degraded).refreshed().with(|seen| {
                seen.health_message = Some("back-off".into());
            }),
            degraded(Some("back-off")),
        ),
        (
            "being deleted, whatever else is well",
            well().deleting(),
            Applied::Failed(Cause::BeingDeleted),
        ),
        (
            "being deleted while alice syncs",
            well().deleting().running(by_alice()),
            Applied::Failed(Cause::BeingDeleted),
        ),
        (
            "the operation failed",
            well().with_last(|last| last.phase = OperationPhase::Failed),
            operation_failed(),
        ),
        (
            "the operation broke off",
            well().with_last(|last| {
                last.phase = OperationPhase::Error;
                last.finished_at = Some(Stamp(FINISHED + 5));
            }),
            operation_failed(),
        ),
    ]);
}
