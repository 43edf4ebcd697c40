//! What can be seen of a simulation from outside.

use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{AppIx, Plan, Role};
use tiphys_run::{Driver, OperationPhase, Time};

use super::{Recorded, Simulation};
use crate::application::Lifecycle;
use crate::controller::Fact;
use crate::fault::Fault;
use crate::objects::Objects;

impl Simulation {
    #[must_use]
    pub fn records(&self) -> &[Recorded] {
        &self.records
    }

    #[must_use]
    pub fn facts(&self) -> &[(Time, Fact)] {
        &self.controller.facts
    }

    /// Pairs of an app that started and a dependency of it that was not Healthy and current
    /// when the look was taken that the driver relied on.
    #[must_use]
    pub fn unready(&self) -> &[(AppIx, AppIx)] {
        &self.unready
    }

    /// Whether the app exists, is what its source says, and is Healthy.
    #[must_use]
    pub fn is_well(&self, app: AppIx) -> bool {
        let truth = self.controller.app(app).truth();
        truth.healthy && truth.current
    }

    /// Whether there is nothing left to do for it: it is well, and its last operation was.
    #[must_use]
    pub fn is_done(&self, app: AppIx) -> bool {
        let last = self.controller.app(app).object.last.as_ref();
        let failed = last.is_some_and(|last| last.phase != OperationPhase::Succeeded);
        self.is_well(app) && !failed
    }

    /// Whether it was well when the look was taken that the driver had last.
    #[must_use]
    pub fn was_told_well(&self, app: AppIx) -> bool {
        let (_, truth) = self.told[app.position()];
        truth.healthy && truth.current
    }

    #[must_use]
    pub fn exists(&self, app: AppIx) -> bool {
        self.controller.app(app).exists
    }

    /// The faults that have not struck.
    pub fn unstruck(&self) -> impl Iterator<Item = &Fault> {
        let struck = self.faults.iter().zip(&self.struck);
        struck.filter(|(_, struck)| !**struck).map(|(fault, _)| fault)
    }

    /// What a teardown that succeeded should not have left in the cluster.
    #[must_use]
    pub fn left_over(&self) -> Vec<String> {
        self.controller.objects().map(Objects::left_over).unwrap_or_default()
    }

    #[must_use]
    pub fn driver(&self) -> Option<&Driver> {
        self.driver.as_ref()
    }

    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the next thing happens.
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        self.agenda.first_key_value().map(|((at, _), _)| *at)
    }

    /// When the driver of today began, or the one that was killed.
    #[must_use]
    pub fn began(&self) -> Time {
        self.began
    }

    /// How many effects drivers have asked for.
    #[must_use]
    pub fn effects(&self) -> usize {
        self.effects
    }

    #[must_use]
    pub fn lifecycle(&self, app: AppIx) -> Lifecycle {
        self.controller.app(app).lifecycle
    }

    /// What no deployment of this platform can be quicker than: the longest chain of what its
    /// apps take, as drawn for this seed.
    #[must_use]
    pub fn critical_path(&self) -> Duration {
        let mut ends = vec![Duration::ZERO; self.plan.apps.len()];
        // Plan order is topological.
        for app in self.plan.graph.apps() {
            let start = self.plan.graph.dependencies(app).iter().map(|d| ends[d.position()]).max();
            let own = match self.plan.app(app).role {
                Role::Act => self.lifecycle(app).deploy(),
                Role::Verify => Duration::ZERO,
            };
            ends[app.position()] = start.unwrap_or_default() + own;
        }
        ends.into_iter().max().unwrap_or_default()
    }
}
