//! What is written right after an operation, against what was really so.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_argocd::{AppAddress, Application};
use tiphys_e2e::{Recording, Site, World, Written, count, figure, operation};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_run::gate::{Applied, Expectation, OperationProgress, applied};
use tiphys_run::{Observation, OperationPhase, Revisions};

/// Apps that are synced at the same time, and how often: a soak sets `TIPHYS_E2E_ROUNDS=20`.
const APPS: u32 = 10;
const ROUNDS: u32 = 3;

#[derive(Debug, Default)]
struct Tally {
    syncs: u32,
    /// Succeeded, with a health that is older than the operation.
    stale: u32,
    /// Of these: Healthy, though what was applied was not.
    wrongly_healthy: u32,
    /// `reconciledAt` equals `finishedAt` in some version after the end.
    equal_stamps: u32,
    /// Versions that the gate let pass.
    passed: u32,
}

pub(crate) async fn the_gate_is_never_wrong(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-stale").await;
    let names: Vec<String> = (0..APPS).map(|number| format!("fact-stale-{number}")).collect();
    let behaviour = Behaviour::Healthy { after: Duration::from_secs(1) };
    site.platform.apps = names.iter().map(|name| AppSource::new(name, behaviour.clone())).collect();
    site.commit("apps");
    site.configure().await;
    for name in &names {
        site.create_application(name, "main", false).await;
    }
    let rounds = count("TIPHYS_E2E_ROUNDS", ROUNDS);
    let mut tally = Tally::default();
    for round in 1..=rounds {
        for app in &mut site.platform.apps {
            app.generation = round;
        }
        let revision = site.commit("all apps changed");
        let revision = revision.as_str();
        let apps = site.objects("argoproj.io/v1alpha1", "Application", Some("argocd"));
        let apps = Recording::start(apps, None).await;
        let workloads = Recording::start(site.objects("apps/v1", "Deployment", None), None).await;
        let synced = names.iter().map(|name| sync(&site, name, revision, round));
        let refreshed = futures::future::join_all(synced).await;
        let (apps, workloads) = (apps.end(), workloads.end());
        for (name, refreshed) in names.iter().zip(refreshed) {
            let round = Round { number: round, revision, refreshed };
            judge(&mut tally, name, round, &apps, &workloads);
        }
    }
    figure(&format!("{tally:?}"));
    assert_eq!(tally.syncs, APPS * rounds);
    assert!(tally.stale > 0, "the race that the gate exists for was never seen: {tally:?}");
    assert!(tally.passed >= tally.syncs, "{tally:?}");
    site.close().await;
}

/// What the gate has to know of one sync.
#[derive(Debug, Clone, Copy)]
struct Round<'a> {
    number: u32,
    revision: &'a str,
    /// The version that a refresh came back with that was asked for after the end.
    refreshed: Option<u64>,
}

/// Syncs an app and waits until it is past the gate, as a run does: if the assessment does not
/// come by itself, it is asked for.
async fn sync(site: &Site, app: &str, revision: &str, round: u32) -> Option<u64> {
    site.sync(app, revision, round).await.expect("the sync is taken");
    let ended = site.until(app, "at the end of its operation", |application| {
        let seen = application.observe().expect("it can be read");
        let id = operation(app, round);
        matches!(tiphys_run::gate::operation(&seen, &id), OperationProgress::Succeeded(_))
    });
    // Argo CD can miss an operation, and then finds it with the next refresh.
    let nudged = async {
        loop {
            tokio::time::sleep(Duration::from_secs(15)).await;
            site.world
                .argocd
                .refresh(&AppAddress::own(app, &site.platform.project))
                .await
                .expect("a refresh");
        }
    };
    let ended = tokio::select! {
        ended = ended => ended,
        () = nudged => unreachable!("it goes on for ever"),
    };
    let mut known = Round { number: round, revision, refreshed: None };
    if !passes(&ended.observe().expect("it can be read"), app, known) {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let address = AppAddress::own(app, &site.platform.project);
        let refreshed = site.world.argocd.refresh(&address).await.expect("a refresh");
        known.refreshed = Some(refreshed.version().expect("it can be read"));
    }
    site.until(app, "past the gate", |application| {
        passes(&application.observe().expect("it can be read"), app, known)
    })
    .await;
    known.refreshed
}

/// As the gate sees one version.
fn passes(seen: &Observation, app: &str, round: Round<'_>) -> bool {
    let id = operation(app, round.number);
    let revisions = Revisions([round.revision.into()].into());
    let expected = Expectation {
        operation: &id,
        revisions: &revisions,
        pinned: true,
        refreshed: round.refreshed.is_some_and(|version| seen.version >= version),
        tolerate_drift: &[],
    };
    applied(seen, expected) == Applied::Done
}

/// Goes through the versions of one app in one round.
fn judge(tally: &mut Tally, app: &str, round: Round<'_>, apps: &[Written], workloads: &[Written]) {
    let of_app = |written: &&Written| written.object.metadata.name.as_deref() == Some(app);
    let mut stale = (false, false);
    let mut equal = false;
    for written in apps.iter().filter(of_app) {
        let value = serde_json::to_value(&written.object).expect("an object");
        let application: Application = serde_json::from_value(value).expect("an Application");
        let seen = application.observe().expect("it can be read");
        let Some(last) = seen.last.as_ref().filter(|last| {
            last.operation.id == Some(operation(app, round.number))
                && last.phase == OperationPhase::Succeeded
        }) else {
            continue;
        };
        let ready = is_ready(app, round.number, written.version, workloads);
        equal |= seen.reconciled_at == last.finished_at;
        if seen.reconciled_at < last.finished_at {
            stale.0 = true;
            stale.1 |= seen.health == tiphys_model::Health::Healthy && !ready;
        }
        if passes(&seen, app, round) {
            tally.passed += 1;
            assert!(
                ready,
                "the gate let {app} pass in round {} at version {}, and its Deployment was \
                 not ready:\n{application:#?}",
                round.number, written.version
            );
        }
    }
    tally.syncs += 1;
    tally.stale += u32::from(stale.0);
    tally.wrongly_healthy += u32::from(stale.1);
    tally.equal_stamps += u32::from(equal);
}

/// Whether the app's Deployment was rolled out at the generation of this round when the cluster
/// had come to a version.
fn is_ready(app: &str, round: u32, version: u64, workloads: &[Written]) -> bool {
    let before = workloads.iter().filter(|written| {
        written.version < version && written.object.metadata.name.as_deref() == Some(app)
    });
    let Some(workload) = before.max_by_key(|written| written.version) else { return false };
    let number = |pointer: &str| workload.object.data.pointer(pointer).and_then(Value::as_i64);
    let label = "/spec/template/metadata/labels/lab.tiphys.dev~1generation";
    let generation = workload.object.data.pointer(label).and_then(Value::as_str);
    generation == Some(round.to_string().as_str())
        && number("/status/observedGeneration") == workload.object.metadata.generation
        && number("/status/updatedReplicas") == Some(1)
        && number("/status/availableReplicas") == Some(1)
        && number("/status/replicas") == Some(1)
}
