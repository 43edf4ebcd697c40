//! What becomes of an app once it is applied, and how Argo CD comes to know it.

use std::time::Duration;

use tiphys_model::{AppIx, Health, SyncStatus};
use tiphys_run::{Condition, ConditionKind, Drifted, Initiator, Time};

use super::{Controller, Job, stamp};
use crate::application::{Hold, SimApp};
use crate::fault::FaultKind;

impl Controller {
    pub(super) fn converge(&mut self, now: Time, app: AppIx) {
        let sim = self.app(app);
        let (delay, serial) = (sim.lifecycle.converge, sim.serial);
        if sim.has(FaultKind::NeverHealthy) {
            return;
        }
        let to = if sim.has(FaultKind::Degraded) { Health::Degraded } else { Health::Healthy };
        self.schedule(now, delay, app, Job::HealthTurns { serial, to });
    }

    /// The resources have changed: Argo CD rewrites health, but not `reconciledAt`.
    pub(super) fn turn(&mut self, now: Time, app: AppIx, to: Health) {
        let noticed = to != Health::Healthy || !self.app_mut(app).spend(FaultKind::MissedHealth);
        self.write(app, |sim| {
            sim.health = to;
            // Health is only rewritten once the new state has been compared.
            let valid = !sim.has(FaultKind::InvalidSpec);
            if sim.object.revisions == sim.source && !sim.stale && valid && noticed {
                sim.object.health = to;
                sim.object.health_message =
                    (to == Health::Degraded).then(|| "back-off restarting failed container".into());
            }
        });
        let serial = self.app(app).serial;
        if to == Health::Healthy && self.app_mut(app).spend(FaultKind::DegradeLater) {
            let delay = self.chance.millis(1_000, 60_000);
            self.schedule(now, delay, app, Job::HealthTurns { serial, to: Health::Degraded });
        }
        if to == Health::Healthy && self.app_mut(app).spend(FaultKind::Flap) {
            let mut delay = Duration::ZERO;
            for turn in 0..6 {
                delay += self.chance.millis(200, 12_000);
                let to = if turn % 2 == 0 { Health::Degraded } else { Health::Healthy };
                self.schedule(now, delay, app, Job::HealthTurns { serial, to });
            }
        }
    }

    pub(super) fn reconcile(&mut self, now: Time, app: AppIx) {
        let waiters = std::mem::take(&mut self.app_mut(app).refresh_waiters);
        self.write(app, |sim| match trouble(sim) {
            Some(condition) => {
                // What cannot be compared gets no stamp, and the revisions stay those of before.
                sim.object.sync = SyncStatus::Unknown;
                if condition.kind == ConditionKind::InvalidSpec {
                    sim.object.health = Health::Unknown;
                }
                sim.object.conditions = vec![condition];
            }
            None => compare(sim, now),
        });
        if !waiters.is_empty() {
            self.refreshed.push((app, waiters));
        }
        let sim = self.app(app);
        let free = sim.object.operation.is_none() && sim.object.deleting.is_none();
        let outdated = sim.object.sync == SyncStatus::OutOfSync && !sim.truth().current;
        if outdated && sim.hold != Hold::Held && free {
            // Automated sync, as soon as nobody denies it. It cannot be refused: it is free.
            self.sync(now, app, None, Initiator::Automated).unwrap_or_default();
        }
    }
}

fn compare(sim: &mut SimApp, now: Time) {
    let applied = sim.live.as_ref() == Some(&sim.source);
    let drifts = applied && sim.has(FaultKind::OutOfSync);
    let synced = applied && !drifts;
    let drifted =
        Drifted { resource: "Deployment/web".into(), fields: vec!["spec.replicas".into()] };
    sim.object.sync = if synced { SyncStatus::Synced } else { SyncStatus::OutOfSync };
    sim.object.drifted = if drifts { vec![drifted] } else { Vec::new() };
    sim.object.revisions = sim.source.clone();
    sim.object.compared_to_spec = true;
    sim.object.conditions.clear();
    sim.object.health = sim.health;
    sim.object.reconciled_at = Some(stamp(now));
    sim.stale = false;
}

/// What keeps Argo CD from comparing an app.
fn trouble(sim: &SimApp) -> Option<Condition> {
    let condition = |kind, message: &str| Some(Condition { kind, message: message.into() });
    if sim.has(FaultKind::InvalidSpec) {
        return condition(ConditionKind::InvalidSpec, "application destination can't be empty");
    }
    let fails = sim.has(FaultKind::ComparisonError) || sim.has(FaultKind::BriefComparisonError);
    let message = "failed to generate manifests: helm template failed";
    if fails { condition(ConditionKind::Comparison, message) } else { None }
}
