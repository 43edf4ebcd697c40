//! One simulated Application: what is written on it, and what is really so.

use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{Health, OperationId};
use tiphys_run::{Observation, OperationPhase, RequestNumber, Revisions, Stamp};

use crate::chance::Chance;
use crate::controller::Job;
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

/// What somebody who looks is shown, and what was so at that moment.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) version: u64,
    /// `None`: it does not exist.
    pub(crate) seen: Option<Arc<Observation>>,
    pub(crate) truth: Truth,
}

/// A request for a refresh that has not been answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiter {
    pub(crate) number: RequestNumber,
    /// Which driver asked.
    pub(crate) epoch: u64,
}

/// Whether automated sync is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Held,
    /// Not yet held, or not any more.
    Lifted,
    /// It is held again when its operation has ended.
    Thawing,
    /// The run that holds the platform has given it back.
    HandedOff,
}

pub(crate) struct SimApp {
    pub(crate) exists: bool,
    /// The object as the API server has it.
    pub(crate) object: Observation,
    /// What watchers and readers are handed at one version, shared.
    shown: Option<Look>,
    /// What they were handed before that.
    before: Option<Look>,
    /// What the source is at.
    pub(crate) source: Revisions,
    /// What has been applied.
    pub(crate) live: Option<Revisions>,
    /// What an assessment would find.
    pub(crate) health: Health,
    /// The object shows the health of before, until it is reconciled.
    pub(crate) stale: bool,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) hold: Hold,
    /// What an automated operation does next, once the hold lets it.
    pub(crate) frozen: Option<Job>,
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
        let mut object = Observation::unsynced(version, source.clone(), now);
        // Every third follows a branch.
        object.pinned = !version.is_multiple_of(3);
        SimApp {
            exists: true,
            object,
            shown: None,
            before: None,
            source,
            live: None,
            health: Health::Missing,
            stale: false,
            lifecycle,
            hold: Hold::Held,
            frozen: None,
            faults: Vec::new(),
            serial: 0,
            refresh_waiters: Vec::new(),
        }
    }

    /// The object as it is now.
    pub(crate) fn look(&mut self) -> Look {
        let (version, truth) = (self.object.version, self.truth());
        match &mut self.shown {
            Some(shown) if shown.version == version => {
                // What is really so can change without a word on the object.
                shown.truth = truth;
                shown.clone()
            }
            shown => {
                let seen = self.exists.then(|| Arc::new(self.object.clone()));
                let look = Look { version, seen, truth };
                self.before = shown.replace(look.clone());
                look
            }
        }
    }

    /// The object as a reader may still see it who does not ask for the newest.
    pub(crate) fn look_back(&mut self) -> Look {
        let now = self.look();
        self.before.clone().unwrap_or(now)
    }

    pub(crate) fn truth(&self) -> Truth {
        Truth {
            healthy: self.exists && self.health == Health::Healthy,
            current: self.exists && self.live.as_ref() == Some(&self.source),
        }
    }

    /// Whether another driver has applied the same plan's operation at this very revision, so
    /// that the first attempt of this one is a repetition. What has drifted since may be repeated.
    pub(crate) fn has_applied(&self, id: &OperationId) -> bool {
        let Some(last) = &self.object.last else { return false };
        let same_plan = |other: &OperationId| other.plan == id.plan && other.epoch != id.epoch;
        last.phase == OperationPhase::Succeeded
            && last.revisions == self.source
            && self.live.as_ref() == Some(&self.source)
            && last.operation.id.as_ref().is_some_and(same_plan)
            && self.object.drifted.is_empty()
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
