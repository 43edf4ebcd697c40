//! The hold: which operations it keeps from starting, and which it freezes.
//!
//! Argo CD looks at the window at each pass of an automated operation. One that was under way when
//! the hold came neither goes on nor can it be stopped until the app is let go.

use tiphys_model::AppIx;
use tiphys_run::{Initiator, Time};

use super::Controller;
use crate::application::Hold;

impl Controller {
    pub(super) fn is_frozen(&self, app: AppIx) -> bool {
        self.app(app).hold == Hold::Held && self.is_automated(app)
    }

    fn is_automated(&self, app: AppIx) -> bool {
        let operation = self.app(app).object.operation.as_ref();
        operation.is_some_and(|operation| operation.by == Initiator::Automated)
    }

    /// A run takes the hold anew: what an earlier one has handed off counts no more.
    pub(crate) fn take_back(&mut self, app: AppIx) {
        self.change_hold(app, Hold::HandedOff, Hold::Lifted);
    }

    /// Holds the app, unless it has been handed off or is being thawed.
    pub(crate) fn hold(&mut self, app: AppIx) {
        self.change_hold(app, Hold::Lifted, Hold::Held);
    }

    /// The app is in Argo CD's own care again, which looks at it.
    pub(crate) fn hand_off(&mut self, now: Time, app: AppIx) {
        self.let_go(now, app);
        self.app_mut(app).hold = Hold::HandedOff;
        self.reconcile_soon(now, app);
    }

    /// The hold does not cover the app any more. That alone wakes nobody but what was frozen.
    pub(crate) fn let_go(&mut self, now: Time, app: AppIx) {
        self.change_hold(app, Hold::Held, Hold::Lifted);
        if let Some(job) = self.app_mut(app).frozen.take() {
            let delay = self.soon();
            self.schedule(now, delay, app, job);
        }
    }

    /// Lets the app go until its automated operation has ended.
    pub(crate) fn thaw(&mut self, now: Time, app: AppIx) {
        if self.is_automated(app) {
            self.let_go(now, app);
            self.change_hold(app, Hold::Lifted, Hold::Thawing);
        }
    }

    pub(super) fn operation_is_over(&mut self, app: AppIx) {
        self.change_hold(app, Hold::Thawing, Hold::Held);
    }

    fn change_hold(&mut self, app: AppIx, from: Hold, to: Hold) {
        let hold = &mut self.app_mut(app).hold;
        if *hold == from {
            *hold = to;
        }
    }
}
