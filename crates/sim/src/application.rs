//! One simulated Application: what is written on it, and what is really so.

use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{Health, OperationId};
use tiphys_run::{Observation, OperationPhase, RequestNumber, Revisions, Stamp};

use crate::chance::Chance;
use crate::fault::FaultKind;

/// How long the app takes for what it does, drawn once for each seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifecycle {
    /// From the start of an operation to its end.
    pub sync: Duration,
    /// From the end of an operation to Healthy.
    pub converge: Duration,
    /// From the request to be deleted to being gone.
    pub remove: Duration,
}

impl Lifecycle {
    /// Around the typical time, rarely above it: platforms are tuned so that timeouts fit. A
    /// twentieth of it is the sync.
    #[must_use]
    pub fn draw(typical: Duration, chance: &mut Chance) -> Self {
        let millis = u64::try_from(typical.as_millis()).unwrap_or(u64::MAX / 200);
        let total = millis * chance.between(80, 105) / 100;
        let sync = (total / 20).clamp(total.min(500), 10_000);
        Lifecycle {
            sync: Duration::from_millis(sync),
            converge: Duration::from_millis(total - sync),
            remove: Duration::from_millis(total / 5 + chance.between(200, 1500)),
        }
    }

    /// What a deployment cannot be quicker than.
    #[must_use]
    pub fn deploy(self) -> Duration {
        self.sync + self.converge
    }
}

/// What is really so, whatever the Application shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) healthy: bool,
    /// What runs is what the source says.
    pub(crate) current: bool,
}

/// A request for a refresh that has not been answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiter {
    pub(crate) number: RequestNumber,
    /// Which driver asked.
    pub(crate) epoch: u64,
}

pub(crate) struct SimApp {
    pub(crate) exists: bool,
    /// The object as the API server has it.
    pub(crate) object: Observation,
    /// What watchers and readers are handed: the object at one version, shared.
    shown: Option<Arc<Observation>>,
    /// What the source is at.
    pub(crate) source: Revisions,
    /// What has been applied.
    pub(crate) live: Option<Revisions>,
    /// What an assessment would find.
    pub(crate) health: Health,
    /// The object shows the health of before, until it is reconciled.
    pub(crate) stale: bool,
    pub(crate) lifecycle: Lifecycle,
    /// Automated sync is denied.
    pub(crate) held: bool,
    pub(crate) faults: Vec<FaultKind>,
    /// Counts operations and health changes, so that jobs of an earlier one are void.
    pub(crate) serial: u64,
    /// Refreshes that somebody waits for.
    pub(crate) refresh_waiters: Vec<Waiter>,
}

impl SimApp {
    /// Fresh from the root app: nothing applied, and compared once.
    pub(crate) fn new(lifecycle: Lifecycle, version: u64, now: Stamp) -> Self {
        let source = revision(1);
        SimApp {
            exists: true,
            object: Observation::unsynced(version, source.clone(), now),
            shown: None,
            source,
            live: None,
            health: Health::Missing,
            stale: false,
            lifecycle,
            held: true,
            faults: Vec::new(),
            serial: 0,
            refresh_waiters: Vec::new(),
        }
    }

    /// The object as it is now; `None`: it does not exist.
    pub(crate) fn show(&mut self) -> Option<Arc<Observation>> {
        if self.shown.as_ref().is_none_or(|shown| shown.version != self.object.version) {
            self.shown = Some(Arc::new(self.object.clone()));
        }
        self.shown.clone().filter(|_| self.exists)
    }

    pub(crate) fn truth(&self) -> Truth {
        Truth {
            healthy: self.exists && self.health == Health::Healthy,
            current: self.exists && self.live.as_ref() == Some(&self.source),
        }
    }

    /// Whether another driver has applied the same plan's operation at this very revision, so
    /// that the first attempt of this one is a repetition.
    pub(crate) fn has_applied(&self, id: &OperationId) -> bool {
        let Some(last) = &self.object.last else { return false };
        let same_plan = |other: &OperationId| other.plan == id.plan && other.epoch != id.epoch;
        last.phase == OperationPhase::Succeeded
            && last.revisions == self.source
            && self.live.as_ref() == Some(&self.source)
            && last.operation.id.as_ref().is_some_and(same_plan)
            && id.attempt == 1
    }

    pub(crate) fn has(&self, fault: FaultKind) -> bool {
        self.faults.contains(&fault)
    }

    /// A fault that happens once.
    pub(crate) fn spend(&mut self, fault: FaultKind) -> bool {
        let at = self.faults.iter().position(|known| *known == fault);
        if let Some(at) = at {
            self.faults.swap_remove(at);
        }
        at.is_some()
    }
}

pub(crate) fn revision(number: u32) -> Revisions {
    Revisions([Arc::from(format!("r{number}"))].into())
}
