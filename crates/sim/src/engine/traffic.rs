//! What passes between the driver and the cluster: requests, answers, and news of the watch.

use tiphys_model::{AppIx, OperationId};
use tiphys_run::{Answer, Effect, SyncAnswer};

use super::{Happening, Simulation};
use crate::application::Waiter;
use crate::controller::Refusal;

impl Simulation {
    /// A request reaches the API server.
    pub(super) fn arrive(&mut self, effect: Effect, epoch: u64) {
        let app = effect.app();
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
                self.show(app, epoch);
                Some(Answer::Looked { number })
            }
            Effect::Terminate { .. } => {
                self.controller.terminate(app);
                Some(Answer::Terminated)
            }
            Effect::HandOff { .. } => {
                self.controller.release(self.now, app);
                Some(Answer::HandedOff)
            }
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
                self.reply(app, &answer, epoch);
            }
        }
    }

    fn arrive_sync(&mut self, app: AppIx, operation: &OperationId) -> SyncAnswer {
        let lost = self.network.loses();
        // Half of what is lost was lost on the way here, half on the way back.
        if lost && !self.network.loses_answer() {
            return SyncAnswer::Unanswered { message: "request timed out".into() };
        }
        self.strike_at_sync(app);
        let result = self.controller.sync(self.now, app, Some(operation.clone()), "tiphys".into());
        match result {
            _ if lost => SyncAnswer::Unanswered { message: "request timed out".into() },
            Ok(version) => SyncAnswer::Accepted { version },
            Err(Refusal::Busy) => SyncAnswer::Conflict,
            Err(Refusal::Gone) => SyncAnswer::Refused { message: "the Application is gone".into() },
        }
    }

    fn reply(&mut self, app: AppIx, answer: &Answer, epoch: u64) {
        for delay in self.network.deliveries() {
            self.schedule(self.now + delay, Happening::Answer(app, answer.clone(), epoch));
        }
    }

    /// One look, sent before its answer.
    fn show(&mut self, app: AppIx, epoch: u64) {
        let sim = self.controller.app_mut(app);
        let told = Happening::Told {
            app,
            version: sim.object.version,
            seen: sim.show(),
            truth: sim.truth(),
            epoch,
        };
        self.schedule(self.now, told);
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
            let seen = self.controller.app_mut(written.app).show();
            let delay = self.network.watch();
            self.schedule(
                self.now + delay,
                Happening::Told {
                    app: written.app,
                    version: written.version,
                    seen,
                    truth: written.truth,
                    epoch,
                },
            );
        }
        for (app, waiters) in std::mem::take(&mut self.controller.refreshed) {
            self.show(app, epoch);
            for Waiter { number, epoch } in waiters {
                if self.network.loses() {
                    continue;
                }
                self.reply(app, &Answer::Refreshed { number }, epoch);
            }
        }
    }
}
