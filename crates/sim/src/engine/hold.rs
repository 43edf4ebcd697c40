//! The hold, as an engine keeps it: taken with a delay, set again after somebody has lifted it, and
//! let go for a while where it has frozen an operation.

use std::time::Duration;

use tiphys_model::AppIx;
use tiphys_run::{BlockedBy, Event, Initiator};

use super::{Happening, Simulation};
use crate::controller::Job;

impl Simulation {
    /// The run takes the hold; Argo CD sees it a moment later.
    pub(super) fn take_hold(&mut self) {
        for app in self.plan.graph.apps() {
            self.controller.take_back(app);
        }
        let delay = self.hold_chance.millis(0, 2_000);
        self.schedule(self.now + delay, Happening::Hold(self.run));
    }

    pub(super) fn hold(&mut self) {
        for app in self.plan.graph.apps() {
            self.controller.hold(app);
        }
    }

    /// Somebody lifts the hold. Argo CD, which is not woken by that, happens to look at half of the
    /// apps before the engine has set it again.
    pub(super) fn lift_hold(&mut self) {
        let noticed = self.hold_chance.millis(3_000, 10_000);
        for app in self.plan.graph.apps() {
            self.controller.let_go(self.now, app);
            let at = self.now + self.hold_chance.millis(0, 2 * 10_000);
            if at < self.now + noticed {
                self.schedule(at, Happening::Job(app, Job::Reconcile));
            }
        }
        self.schedule(self.now + noticed, Happening::Hold(self.run));
    }

    /// An automated operation is in the way of a step: if the hold has frozen it, it may end.
    pub(super) fn thaw_what_is_frozen(&mut self, event: &Event) {
        if let Event::Blocked { app, why: BlockedBy::Operation { by: Initiator::Automated } } =
            event
        {
            let delay: Duration = self.network.request();
            self.schedule(self.now + delay, Happening::Thaw(*app, self.epoch));
        }
    }

    pub(super) fn thaw(&mut self, app: AppIx) {
        self.controller.thaw(self.now, app);
    }
}
