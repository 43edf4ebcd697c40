//! Faults that do something to an app when they strike. The others lie in wait for what happens to
//! it.

use tiphys_model::{AppIx, Health};
use tiphys_run::{Initiator, Observation, Time};

use super::{Controller, Fact, Job, stamp};
use crate::fault::FaultKind;

impl Controller {
    /// A fault strikes an app.
    pub(crate) fn disturb(&mut self, now: Time, app: AppIx, fault: FaultKind) {
        self.app_mut(app).faults.push(fault);
        match fault {
            FaultKind::FrozenOperation => {
                // If another operation is under way, Argo CD does not begin one.
                self.sync(now, app, None, Initiator::Automated).unwrap_or_default();
            }
            FaultKind::Recreated => {
                let delay = self.chance.millis(500, 3_000);
                self.schedule(now, delay, app, Job::DeletedByOthers);
            }
            FaultKind::SpecChanged => self.change_spec(now, app),
            FaultKind::BriefComparisonError => {
                let delay = self.chance.millis(20_000, 50_000);
                self.schedule(now, delay, app, Job::ComparisonWorks);
                self.reconcile_soon(now, app);
            }
            FaultKind::ComparisonError | FaultKind::InvalidSpec | FaultKind::OutOfSync => {
                self.reconcile_soon(now, app);
            }
            _ => {}
        }
    }

    /// Whoever generates the Application is late: its spec changes now, and Argo CD takes its time
    /// to compare. What has been applied already is left alone.
    fn change_spec(&mut self, now: Time, app: AppIx) {
        if self.app(app).truth().current || !self.app(app).exists {
            return;
        }
        self.move_source(app);
        self.write(app, |sim| sim.object.compared_to_spec = false);
        let delay = self.chance.millis(5_000, 60_000);
        self.schedule(now, delay, app, Job::Reconcile);
    }

    /// Somebody deletes the Application, with all that it has applied, and makes it anew.
    pub(super) fn delete_by_others(&mut self, now: Time, app: AppIx) {
        let free = self.app(app).object.deleting.is_none();
        if !self.app_mut(app).spend(FaultKind::Recreated) || !free {
            return;
        }
        self.with_objects(now, |objects| objects.cascade(app));
        self.write(app, |sim| sim.exists = false);
        let delay = self.chance.millis(1_000, 10_000);
        self.schedule(now, delay, app, Job::MadeAnew);
    }

    pub(super) fn make_anew(&mut self, now: Time, app: AppIx) {
        self.write(app, |sim| {
            sim.exists = true;
            sim.object = Observation::unsynced(0, sim.source.clone(), stamp(now));
            sim.live = None;
            sim.health = Health::Missing;
            sim.stale = false;
            sim.frozen = None;
            sim.serial += 1;
        });
        self.facts.push((now, Fact::MadeAnew { app }));
        self.reconcile_soon(now, app);
    }
}
