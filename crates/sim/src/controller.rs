//! The simulated Argo CD: what its API server and its controller write on Applications, in the
//! order in which the real ones do.
//!
//! One sync, as a watcher sees it: `operation` is set and the last operation's state cleared;
//! phase Running; phase Succeeded with `operation` cleared *and the health of before*; then a
//! reconciliation writes sync status, health and `reconciledAt`; later, as resources change,
//! health alone.

use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{AppIx, Health, OperationId, SyncStatus};
use tiphys_run::{
    Deleting, Initiator, LastOperation, Operation, OperationPhase, Revisions, Stamp, Time,
};

use crate::application::{SimApp, Truth, Waiter, revision};
use crate::chance::Chance;
use crate::fault::FaultKind;

/// Something the controller will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    OperationStart {
        serial: u64,
    },
    OperationEnd {
        serial: u64,
    },
    /// Compare, assess, write everything.
    Reconcile,
    /// The app's resources have come to this health.
    HealthTurns {
        serial: u64,
        to: Health,
    },
    Gone,
}

/// What has really happened, for the laws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// An operation was set.
    OperationSet { app: AppIx, id: Option<OperationId> },
    /// A driver set one although another driver of the same plan had applied the same.
    Repeated { app: AppIx },
    /// Deletion was asked for while these dependants still existed.
    Deleted { app: AppIx, dependants: Vec<AppIx> },
}

/// A write that watchers will be told of.
pub(crate) struct Written {
    pub(crate) app: AppIx,
    pub(crate) version: u64,
    pub(crate) truth: Truth,
}

pub(crate) struct Controller {
    pub(crate) apps: Vec<SimApp>,
    pub(crate) version: u64,
    chance: Chance,
    /// Jobs to do, and when.
    pub(crate) jobs: Vec<(Time, AppIx, Job)>,
    pub(crate) written: Vec<Written>,
    pub(crate) facts: Vec<(Time, Fact)>,
    /// Refreshes that have completed, with who waited for each.
    pub(crate) refreshed: Vec<(AppIx, Vec<Waiter>)>,
}

/// The year 2000 began at this stamp; virtual time is counted from there.
const YEAR_2000: i64 = 946_684_800;

fn stamp(now: Time) -> Stamp {
    Stamp(YEAR_2000 + i64::try_from(now.as_millis() / 1000).unwrap_or(i64::MAX - YEAR_2000))
}

impl Controller {
    pub(crate) fn new(lifecycles: impl Iterator<Item = crate::Lifecycle>, chance: Chance) -> Self {
        let apps: Vec<SimApp> =
            (1..).zip(lifecycles).map(|(v, l)| SimApp::new(l, v, stamp(Time::START))).collect();
        Controller {
            version: apps.len() as u64,
            apps,
            chance,
            jobs: Vec::new(),
            written: Vec::new(),
            facts: Vec::new(),
            refreshed: Vec::new(),
        }
    }

    pub(crate) fn app(&self, app: AppIx) -> &SimApp {
        &self.apps[app.position()]
    }

    pub(crate) fn app_mut(&mut self, app: AppIx) -> &mut SimApp {
        &mut self.apps[app.position()]
    }

    /// Changes an object, which gets a new version that watchers are told of.
    fn write(&mut self, app: AppIx, change: impl FnOnce(&mut SimApp)) -> u64 {
        self.version += 1;
        let version = self.version;
        let sim = &mut self.apps[app.position()];
        change(sim);
        sim.object.version = version;
        self.written.push(Written { app, version, truth: sim.truth() });
        version
    }

    fn schedule(&mut self, now: Time, delay: Duration, app: AppIx, job: Job) {
        self.jobs.push((now + delay, app, job));
    }

    /// The controller takes notice of something.
    fn soon(&mut self) -> Duration {
        self.chance.millis(20, 250)
    }

    /// A sync request has arrived; the version with the operation in it, or why not.
    pub(crate) fn sync(
        &mut self,
        now: Time,
        app: AppIx,
        id: Option<OperationId>,
        by: Initiator,
    ) -> Result<u64, Refusal> {
        let sim = self.app(app);
        if !sim.exists || sim.object.deleting.is_some() {
            return Err(Refusal::Gone);
        }
        if sim.object.operation.is_some() {
            return Err(Refusal::Busy);
        }
        if id.as_ref().is_some_and(|id| sim.has_applied(id)) {
            self.facts.push((now, Fact::Repeated { app }));
        }
        self.facts.push((now, Fact::OperationSet { app, id: id.clone() }));
        let operation = Operation { id, by };
        let version = self.write(app, |sim| {
            sim.serial += 1;
            sim.object.operation = Some(operation);
            sim.object.last = None;
        });
        let (delay, serial) = (self.soon(), self.app(app).serial);
        self.schedule(now, delay, app, Job::OperationStart { serial });
        Ok(version)
    }

    pub(crate) fn refresh(&mut self, now: Time, app: AppIx, waiter: Waiter) {
        if !self.app(app).exists {
            self.refreshed.push((app, vec![waiter]));
            return;
        }
        self.app_mut(app).refresh_waiters.push(waiter);
        // The annotation: a new version in which nothing else has changed.
        self.write(app, |_| {});
        let delay = self.soon();
        self.schedule(now, delay, app, Job::Reconcile);
    }

    pub(crate) fn terminate(&mut self, app: AppIx) {
        if self.app(app).object.operation.is_none() {
            return;
        }
        self.write(app, |sim| {
            sim.serial += 1;
            sim.object.operation = None;
            if let Some(last) = &mut sim.object.last {
                last.phase = OperationPhase::Failed;
                last.message = "operation terminated".into();
            }
        });
    }

    pub(crate) fn release(&mut self, now: Time, app: AppIx) {
        self.app_mut(app).held = false;
        let delay = self.soon();
        self.schedule(now, delay, app, Job::Reconcile);
    }

    pub(crate) fn delete(&mut self, now: Time, app: AppIx, dependants: Vec<AppIx>) -> bool {
        if !self.app(app).exists {
            return false;
        }
        if self.app(app).object.deleting.is_none() {
            self.facts.push((now, Fact::Deleted { app, dependants }));
            let since = stamp(now);
            let finalizers = vec![Arc::from("resources-finalizer.argocd.argoproj.io")];
            self.write(app, |sim| sim.object.deleting = Some(Deleting { since, finalizers }));
            if !self.app(app).has(FaultKind::StuckFinalizer) {
                let delay = self.app(app).lifecycle.remove;
                self.schedule(now, delay, app, Job::Gone);
            }
        }
        true
    }

    /// Whatever a fault has done to the app mends within a minute.
    pub(crate) fn mend(&mut self, now: Time, app: AppIx) {
        let sim = self.app_mut(app);
        sim.faults.clear();
        // Whatever was still to come of the faults is void.
        sim.serial += 1;
        let started = sim.object.last.is_some();
        let (serial, exists) = (sim.serial, sim.exists);
        let (running, deleting) = (sim.object.operation.is_some(), sim.object.deleting.is_some());
        let unwell = sim.live.is_some() && sim.health != Health::Healthy;
        if !exists {
            return;
        }
        let delay = self.chance.millis(1_000, 20_000);
        if deleting {
            self.schedule(now, delay, app, Job::Gone);
        } else if running {
            let job =
                if started { Job::OperationEnd { serial } } else { Job::OperationStart { serial } };
            self.schedule(now, delay, app, job);
        } else if unwell {
            self.schedule(now, delay, app, Job::HealthTurns { serial, to: Health::Healthy });
        }
        self.schedule(now, delay * 2, app, Job::Reconcile);
    }

    /// The app's source moves to another revision.
    pub(crate) fn move_source(&mut self, app: AppIx) {
        let sim = self.app_mut(app);
        let number = sim.source.0.first().and_then(|r| r[1..].parse::<u32>().ok()).unwrap_or(0);
        sim.source = revision(number + 1);
    }

    pub(crate) fn work(&mut self, now: Time, app: AppIx, job: Job) {
        if !self.app(app).exists {
            return;
        }
        match job {
            Job::OperationStart { serial } if serial == self.app(app).serial => {
                self.start_operation(now, app);
            }
            Job::OperationEnd { serial } if serial == self.app(app).serial => {
                self.end_operation(now, app);
            }
            Job::Reconcile => self.reconcile(now, app),
            Job::HealthTurns { serial, to } if serial == self.app(app).serial => {
                self.turn(now, app, to);
            }
            // Of an operation that has been replaced since.
            Job::OperationStart { .. } | Job::OperationEnd { .. } | Job::HealthTurns { .. } => {}
            Job::Gone => {
                self.write(app, |sim| sim.exists = false);
            }
        }
    }

    fn start_operation(&mut self, now: Time, app: AppIx) {
        let Some(operation) = self.app(app).object.operation.clone() else { return };
        self.write(app, |sim| {
            sim.object.last = Some(LastOperation {
                operation,
                phase: OperationPhase::Running,
                finished_at: None,
                revisions: Revisions::default(),
                message: "".into(),
            });
        });
        if self.app_mut(app).spend(FaultKind::Stolen) {
            self.steal(now, app);
            return;
        }
        if self.app_mut(app).spend(FaultKind::RevisionMoved) {
            // Half the time before the manifests are rendered, half after.
            if self.chance.once_in(2) {
                self.move_source(app);
            } else {
                let delay = self.app(app).lifecycle.sync;
                let serial = self.app(app).serial;
                self.app_mut(app).faults.push(FaultKind::RevisionMoved);
                self.schedule(now, delay, app, Job::OperationEnd { serial });
                return;
            }
        }
        if !self.app(app).has(FaultKind::Hang) {
            let (delay, serial) = (self.app(app).lifecycle.sync, self.app(app).serial);
            self.schedule(now, delay, app, Job::OperationEnd { serial });
        }
    }

    /// Somebody else's operation takes the place of the one that is running.
    fn steal(&mut self, now: Time, app: AppIx) {
        self.facts.push((now, Fact::OperationSet { app, id: None }));
        self.write(app, |sim| {
            sim.serial += 1;
            sim.object.operation = Some(Operation { id: None, by: "alice".into() });
            sim.object.last = None;
        });
        let (delay, serial) = (self.soon(), self.app(app).serial);
        self.schedule(now, delay, app, Job::OperationStart { serial });
    }

    fn end_operation(&mut self, now: Time, app: AppIx) {
        let refused = self.app(app).has(FaultKind::Refuse);
        let finished_at = Some(stamp(now));
        let stale = !refused && self.app_mut(app).spend(FaultKind::StaleHealth);
        let ours = self.app(app).object.operation.as_ref().is_some_and(|o| o.id.is_some());
        self.write(app, |sim| {
            sim.object.operation = None;
            let Some(last) = &mut sim.object.last else { return };
            last.finished_at = finished_at;
            if refused {
                last.phase = OperationPhase::Failed;
                last.message = "one or more objects failed to apply: admission webhook \
                    \"validate.kyverno.svc\" denied the request"
                    .into();
                return;
            }
            last.phase = OperationPhase::Succeeded;
            last.message = "successfully synced (all tasks run)".into();
            last.revisions = sim.source.clone();
            // What runs already, and well, is left alone.
            if sim.live.as_ref() != Some(&sim.source) || sim.health != Health::Healthy {
                sim.live = Some(sim.source.clone());
                sim.health = Health::Progressing;
            }
            if stale {
                // The trap: everything looks well, within the same second.
                sim.stale = true;
                sim.object.sync = SyncStatus::Synced;
                sim.object.revisions = sim.source.clone();
                sim.object.health = Health::Healthy;
                sim.object.reconciled_at = finished_at;
            }
        });
        if self.app_mut(app).spend(FaultKind::RevisionMoved) {
            self.move_source(app);
        }
        if !refused && self.app(app).health == Health::Progressing {
            self.converge(now, app);
        }
        // Argo CD asks itself for a refresh; with the fault, it is the one of three minutes.
        let delay = if stale && ours { Duration::from_secs(180) } else { self.soon() };
        self.schedule(now, delay, app, Job::Reconcile);
    }

    fn converge(&mut self, now: Time, app: AppIx) {
        let sim = self.app(app);
        let (delay, serial) = (sim.lifecycle.converge, sim.serial);
        if sim.has(FaultKind::NeverHealthy) {
            return;
        }
        let to = if sim.has(FaultKind::Degraded) { Health::Degraded } else { Health::Healthy };
        self.schedule(now, delay, app, Job::HealthTurns { serial, to });
    }

    /// The resources have changed: Argo CD rewrites health, but not `reconciledAt`.
    fn turn(&mut self, now: Time, app: AppIx, to: Health) {
        self.write(app, |sim| {
            sim.health = to;
            // Health is only rewritten once the new state has been compared.
            if sim.object.revisions == sim.source && !sim.stale {
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

    fn reconcile(&mut self, now: Time, app: AppIx) {
        let waiters = std::mem::take(&mut self.app_mut(app).refresh_waiters);
        self.write(app, |sim| {
            let synced = sim.live.as_ref() == Some(&sim.source);
            sim.object.sync = if synced { SyncStatus::Synced } else { SyncStatus::OutOfSync };
            sim.object.revisions = sim.source.clone();
            sim.object.compared_to_spec = true;
            sim.object.health = sim.health;
            sim.object.reconciled_at = Some(stamp(now));
            sim.stale = false;
        });
        if !waiters.is_empty() {
            self.refreshed.push((app, waiters));
        }
        let sim = self.app(app);
        let free = sim.object.operation.is_none() && sim.object.deleting.is_none();
        if sim.object.sync == SyncStatus::OutOfSync && !sim.held && free {
            // Automated sync, as soon as nobody denies it. It cannot be refused: it is free.
            self.sync(now, app, None, Initiator::Automated).unwrap_or_default();
        }
    }
}

/// Why a sync request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Gone,
    Busy,
}
