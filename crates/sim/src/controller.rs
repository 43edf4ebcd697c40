//! The simulated Argo CD: what its API server and its controller write on Applications, in the
//! order in which the real ones do.
//!
//! One sync, as a watcher sees it: `operation` is set and the last operation's state cleared;
//! phase Running; phase Succeeded with `operation` cleared *and the health of before*; then a
//! reconciliation writes sync status, health and `reconciledAt`; later, as resources change,
//! health alone.

mod disturb;
mod hold;
mod operation;
mod reconcile;

use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{AppIx, Health, OperationId};
use tiphys_run::{Deleting, OperationPhase, Stamp, Time};

use crate::application::{SimApp, Truth, Waiter, revision};
use crate::chance::Chance;
use crate::fault::FaultKind;
use crate::objects::Objects;

pub(crate) use operation::Refusal;

/// Something the controller will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    OperationStart {
        serial: u64,
    },
    OperationEnd {
        serial: u64,
    },
    /// It has been terminated.
    OperationStopped {
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
    DeletedByOthers,
    MadeAnew,
    ComparisonWorks,
}

/// What has really happened, for the laws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// An operation was set.
    OperationSet { app: AppIx, id: Option<OperationId> },
    /// Somebody has made the Application anew: it knows of no operation.
    MadeAnew { app: AppIx },
    /// A driver set one although another driver of the same plan had applied the same.
    Repeated { app: AppIx },
    /// Deletion was asked for while these dependants still existed.
    Deleted { app: AppIx, dependants: Vec<AppIx> },
    /// An object went that somebody keeps, or that is somebody else's.
    OthersRemoved { object: String },
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
    /// What the apps bring; not every simulation has it.
    objects: Option<Objects>,
}

/// The year 2000 began at this stamp; virtual time is counted from there.
const YEAR_2000: i64 = 946_684_800;

pub(crate) fn stamp(now: Time) -> Stamp {
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
            objects: None,
        }
    }

    pub(crate) fn app(&self, app: AppIx) -> &SimApp {
        &self.apps[app.position()]
    }

    pub(crate) fn app_mut(&mut self, app: AppIx) -> &mut SimApp {
        &mut self.apps[app.position()]
    }

    pub(crate) fn give_objects(&mut self, objects: Objects) {
        self.objects = Some(objects);
    }

    /// The objects of the cluster, if there are any; what goes of others' is noted.
    pub(crate) fn with_objects<T: Default>(
        &mut self,
        now: Time,
        change: impl FnOnce(&mut Objects) -> T,
    ) -> T {
        let Some(objects) = &mut self.objects else { return T::default() };
        let result = change(objects);
        let lost = objects.take_lost().into_iter();
        self.facts.extend(lost.map(|object| (now, Fact::OthersRemoved { object })));
        result
    }

    pub(crate) fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
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

    fn reconcile_soon(&mut self, now: Time, app: AppIx) {
        let delay = self.soon();
        self.schedule(now, delay, app, Job::Reconcile);
    }

    /// The controller takes notice of something.
    fn soon(&mut self) -> Duration {
        self.chance.millis(20, 250)
    }

    pub(crate) fn refresh(&mut self, now: Time, app: AppIx, waiter: Waiter) {
        if !self.app(app).exists {
            self.refreshed.push((app, vec![waiter]));
            return;
        }
        self.app_mut(app).refresh_waiters.push(waiter);
        // The annotation: a new version in which nothing else has changed.
        self.write(app, |_| {});
        self.reconcile_soon(now, app);
    }

    pub(crate) fn delete(&mut self, now: Time, app: AppIx, dependants: Vec<AppIx>) -> bool {
        if !self.app(app).exists {
            return false;
        }
        // Argo CD does not begin to delete before an operation has ended, so who deletes stops it.
        self.let_go(now, app);
        self.terminate(now, app);
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
        let (serial, exists, deleting) = (sim.serial, sim.exists, sim.object.deleting.is_some());
        let unwell = sim.live.is_some() && sim.health != Health::Healthy;
        let phase = sim.object.last.as_ref().map(|last| last.phase);
        let next = sim.object.operation.as_ref().map(|_| match phase {
            None => Job::OperationStart { serial },
            Some(OperationPhase::Terminating) => Job::OperationStopped { serial },
            Some(_) => Job::OperationEnd { serial },
        });
        if !exists {
            return;
        }
        let delay = self.chance.millis(1_000, 20_000);
        if deleting {
            self.schedule(now, delay, app, Job::Gone);
        }
        if let Some(job) = next {
            self.schedule(now, delay, app, job);
        } else if unwell && !deleting {
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
        if self.app(app).exists == (job == Job::MadeAnew) {
            return;
        }
        let serial_now = self.app(app).serial;
        match job {
            // Of an operation that has been replaced since.
            Job::OperationStart { serial }
            | Job::OperationEnd { serial }
            | Job::OperationStopped { serial }
            | Job::HealthTurns { serial, .. }
                if serial != serial_now => {}
            Job::OperationStart { .. }
            | Job::OperationEnd { .. }
            | Job::OperationStopped { .. }
                if self.is_frozen(app) =>
            {
                self.app_mut(app).frozen = Some(job);
            }
            Job::OperationStart { .. } => self.start_operation(now, app),
            Job::OperationEnd { .. } => self.end_operation(now, app),
            Job::OperationStopped { .. } => self.stop_operation(now, app),
            Job::Reconcile => self.reconcile(now, app),
            Job::HealthTurns { to, .. } => self.turn(now, app, to),
            Job::Gone if self.app(app).object.operation.is_some() => {
                self.schedule(now, Duration::from_secs(1), app, Job::Gone);
            }
            Job::Gone => {
                self.with_objects(now, |objects| objects.cascade(app));
                self.write(app, |sim| sim.exists = false);
            }
            Job::DeletedByOthers => self.delete_by_others(now, app),
            Job::MadeAnew => self.make_anew(now, app),
            Job::ComparisonWorks => {
                self.app_mut(app).spend(FaultKind::BriefComparisonError);
                self.reconcile_soon(now, app);
            }
        }
    }
}
