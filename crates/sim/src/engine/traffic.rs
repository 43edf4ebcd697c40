//! What passes between the driver and the cluster: requests, answers, and news of the watch.

use std::time::Duration;

use tiphys_model::{AppIx, OperationId};
use tiphys_run::{Action, Answer, Effect, SyncAnswer};

use super::{Happening, Simulation};
use crate::application::{Look, Waiter};
use crate::controller::{Refusal, Written};
use crate::fault::FaultKind;

impl Simulation {
    /// A request reaches the API server.
    pub(super) fn arrive(&mut self, effect: Effect, epoch: u64) {
        let app = effect.app();
        let mut lag = Duration::ZERO;
        let answer = match effect {
            Effect::Sync { operation, number, .. } => {
                let answer = self.arrive_sync(app, &operation);
                Some(Answer::Sync { number, answer })
            }
            Effect::Refresh { number, .. } => {
                self.controller.refresh(self.now, app, Waiter { number, epoch });
                None
            }
            Effect::Read { number, .. } => {
                lag = self.network.read_lag();
                let look = self.controller.app_mut(app).look();
                self.schedule(self.now + lag, told(app, look, epoch));
                Some(Answer::Looked { number })
            }
            Effect::Terminate { .. } => {
                self.controller.terminate(self.now, app);
                Some(Answer::Terminated)
            }
            Effect::HandOff { .. } => self.arrive_hand_off(app),
            Effect::Delete { .. } => {
                let exists = |app: &AppIx| self.controller.app(*app).exists;
                let dependants: Vec<AppIx> =
                    self.plan.graph.dependants(app).iter().copied().filter(exists).collect();
                self.controller.delete(self.now, app, dependants);
                Some(Answer::DeleteAccepted)
            }
        };
        if let Some(answer) = answer {
            // A sync request knows that its answer was lost; the others just wait for it.
            let lost = !matches!(answer, Answer::Sync { .. }) && self.network.loses();
            if !lost {
                self.reply(app, &answer, epoch, lag);
            }
        }
    }

    /// What is refused is asked for again.
    fn arrive_hand_off(&mut self, app: AppIx) -> Option<Answer> {
        if self.controller.app_mut(app).spend(FaultKind::DenyHandOff) {
            return None;
        }
        self.controller.hand_off(self.now, app);
        Some(Answer::HandedOff)
    }

    fn arrive_sync(&mut self, app: AppIx, operation: &OperationId) -> SyncAnswer {
        let lost = self.network.loses();
        // Half of what is lost was lost on the way here, half on the way back.
        if lost && !self.network.loses_answer() {
            return SyncAnswer::Unanswered { message: "request timed out".into() };
        }
        self.strike_at_sync(app);
        if self.controller.app(app).has(FaultKind::DenySync) {
            return SyncAnswer::Refused { message: "permission denied: applications, sync".into() };
        }
        let result = self.controller.sync(self.now, app, Some(operation.clone()), "tiphys".into());
        match result {
            _ if lost => SyncAnswer::Unanswered { message: "request timed out".into() },
            Ok(version) => SyncAnswer::Accepted { version },
            Err(Refusal::Busy) => SyncAnswer::Conflict,
            Err(Refusal::Gone) => SyncAnswer::Refused { message: "the Application is gone".into() },
        }
    }

    fn reply(&mut self, app: AppIx, answer: &Answer, epoch: u64, lag: Duration) {
        for delay in self.network.deliveries() {
            self.schedule(self.now + lag + delay, Happening::Answer(app, answer.clone(), epoch));
        }
    }

    /// What a list shows of an app. What it does not show as it is, the watch tells soon after.
    /// Only what is new can be missing: a teardown finds what has been there for long.
    pub(super) fn listed(&mut self, app: AppIx) -> Look {
        let newest = self.controller.app_mut(app).look();
        let mut look = newest.clone();
        if self.network.lists_stale() {
            look = self.controller.app_mut(app).look_back();
        }
        if self.action == Action::Deploy && self.network.misses() {
            look = Look { seen: None, version: 0, ..look };
        }
        if look.version != newest.version {
            let delay = self.network.watch();
            self.schedule(self.now + delay, told(app, newest, self.epoch));
        }
        look
    }

    /// What the controller wrote goes to the watch; what it finished goes to who waits.
    pub(super) fn spread_news(&mut self) {
        for (at, app, job) in std::mem::take(&mut self.controller.jobs) {
            self.schedule(at, Happening::Job(app, job));
        }
        let epoch = self.epoch;
        for written in std::mem::take(&mut self.controller.written) {
            if self.network.is_silent(self.now) {
                continue;
            }
            let Look { seen, .. } = self.controller.app_mut(written.app).look();
            let Written { app, version, truth } = written;
            let delay = self.network.watch();
            let look = Look { version, seen, truth };
            self.schedule(self.now + delay, told(app, look, epoch));
        }
        for (app, waiters) in std::mem::take(&mut self.controller.refreshed) {
            let look = self.controller.app_mut(app).look();
            self.schedule(self.now, told(app, look, epoch));
            for Waiter { number, epoch } in waiters {
                if self.network.loses() {
                    continue;
                }
                self.reply(app, &Answer::Refreshed { number }, epoch, Duration::ZERO);
            }
        }
    }
}

fn told(app: AppIx, look: Look, epoch: u64) -> Happening {
    let Look { version, seen, truth } = look;
    Happening::Told { app, version, seen, truth, epoch }
}
