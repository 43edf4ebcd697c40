//! Faults that strike, at their time or at a first sync.

use tiphys_model::{AppIx, Health};
use tiphys_run::{Illegal, Input};

use super::{Happening, SILENCE, Simulation};
use crate::controller::Job;
use crate::fault::{FaultKind, FaultTarget};

impl Simulation {
    pub(super) fn strike(&mut self, position: usize) -> Result<(), Illegal> {
        let Some(fault) = self.faults.get(position).cloned() else { return Ok(()) };
        self.struck[position] = true;
        match (&fault.target, fault.kind) {
            (FaultTarget::Run, FaultKind::Crash) => self.kill(),
            (FaultTarget::Run, FaultKind::LeaseLost) => self.tell(Input::LeaseLost)?,
            (FaultTarget::Run, FaultKind::LostWatch) => {
                self.network.silent_until = Some(self.now + SILENCE);
            }
            (FaultTarget::Run, FaultKind::SlowApi) => self.network.slow = true,
            (FaultTarget::Run, FaultKind::DuplicateAnswer) => self.network.duplicates = true,
            (FaultTarget::Run, FaultKind::StaleReads) => self.network.stale = true,
            (FaultTarget::Run, FaultKind::LiftedHold) => self.lift_hold(),
            (FaultTarget::Run, _) => {}
            (FaultTarget::App(name), kind) => {
                let found =
                    self.plan.graph.apps().find(|app| self.plan.app(*app).app.name == *name);
                if let Some(app) = found {
                    self.strike_app(app, kind);
                }
            }
        }
        Ok(())
    }

    fn strike_app(&mut self, app: AppIx, kind: FaultKind) {
        self.controller.disturb(self.now, app, kind);
        // What has become Healthy already turns now.
        let (serial, healthy) =
            (self.controller.app(app).serial, self.controller.app(app).truth().healthy);
        if healthy && matches!(kind, FaultKind::DegradeLater | FaultKind::Degraded) {
            let to = Health::Degraded;
            self.schedule(self.now, Happening::Job(app, Job::HealthTurns { serial, to }));
        }
    }

    /// The faults that wait for an app's first sync, or for the first sync of all.
    pub(super) fn strike_at_sync(&mut self, app: AppIx) {
        let first = !std::mem::replace(&mut self.first_sync_seen, true);
        let name = self.plan.app(app).app.name.clone();
        for position in 0..self.faults.len() {
            let fault = &self.faults[position];
            let meant = match &fault.target {
                FaultTarget::Run => first,
                FaultTarget::App(other) => *other == name,
            };
            if fault.at.is_some() || !meant || self.struck[position] {
                continue;
            }
            // Once in a simulation, not at each attempt.
            self.struck[position] = true;
            match fault.target {
                FaultTarget::Run => self.schedule(self.now, Happening::Fault(position, self.run)),
                FaultTarget::App(_) => {
                    let kind = fault.kind;
                    self.controller.disturb(self.now, app, kind);
                }
            }
        }
    }
}
