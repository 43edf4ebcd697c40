//! Operations: how one begins, what it does, and how it ends.

use std::time::Duration;

use tiphys_model::{AppIx, Health, OperationId, SyncStatus};
use tiphys_run::{Initiator, LastOperation, Operation, OperationPhase, Revisions, Time};

use super::{Controller, Fact, Job, stamp};
use crate::fault::FaultKind;

/// Why a sync request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Gone,
    Busy,
}

impl Controller {
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

    /// Asks for the end of an operation. Argo CD takes its time; what the hold has frozen does not
    /// end before the app is let go.
    pub(crate) fn terminate(&mut self, now: Time, app: AppIx) {
        let sim = self.app(app);
        let phase = sim.object.last.as_ref().map(|last| last.phase);
        if sim.object.operation.is_none() || phase == Some(OperationPhase::Terminating) {
            return;
        }
        self.write(app, |sim| {
            sim.serial += 1;
            match &mut sim.object.last {
                Some(last) => last.phase = OperationPhase::Terminating,
                None => sim.object.operation = None,
            }
        });
        let (delay, serial) = (self.chance.millis(100, 20_000), self.app(app).serial);
        self.schedule(now, delay, app, Job::OperationStopped { serial });
    }

    pub(super) fn stop_operation(&mut self, now: Time, app: AppIx) {
        self.write(app, |sim| {
            sim.object.operation = None;
            if let Some(last) = &mut sim.object.last {
                last.phase = OperationPhase::Failed;
                last.finished_at = Some(stamp(now));
                last.message = "operation terminated".into();
            }
        });
        self.operation_is_over(app);
    }

    pub(super) fn start_operation(&mut self, now: Time, app: AppIx) {
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

    pub(super) fn end_operation(&mut self, now: Time, app: AppIx) {
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
        if !refused {
            self.with_objects(now, |objects| objects.apply(app));
        }
        if !refused && self.app(app).health == Health::Progressing {
            self.converge(now, app);
        }
        self.operation_is_over(app);
        // Argo CD asks itself for a refresh; with the fault, it is the one of three minutes.
        let delay = if stale && ours { Duration::from_secs(180) } else { self.soon() };
        self.schedule(now, delay, app, Job::Reconcile);
    }
}
