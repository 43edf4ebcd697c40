//! How far a platform is, and who decides about it.

use serde::{Serialize, Serializer};
use tiphys_model::Plan;
use tiphys_model::platform::Hold as HoldPolicy;

use super::{Installed, Situation};
use tiphys_run::Action;

/// The phases of a platform's life. In documents they are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PlatformPhase {
    /// There is no Argo CD.
    PreBootstrap = 0,
    /// What runs need is not all there.
    Bootstrap = 1,
    /// Runs decide.
    Orchestration = 2,
    SteadyState = 3,
    Teardown = 4,
}

impl PlatformPhase {
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PlatformPhase::PreBootstrap => "pre-bootstrap",
            PlatformPhase::Bootstrap => "bootstrap",
            PlatformPhase::Orchestration => "orchestration",
            PlatformPhase::SteadyState => "steady state",
            PlatformPhase::Teardown => "teardown",
        }
    }
}

impl Serialize for PlatformPhase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

/// Who decides what is applied. There is always exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Authority {
    /// Whoever sets up what runs need.
    Bootstrap,
    /// Runs, in dependency order.
    Orchestration,
    /// Argo CD's automated sync.
    ArgoCd,
    Teardown,
}

impl Authority {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Authority::Bootstrap => "bootstrap",
            Authority::Orchestration => "orchestration",
            Authority::ArgoCd => "argocd",
            Authority::Teardown => "teardown",
        }
    }
}

/// The first of these that holds: 0 no Applications, 1 no projects or root app, 4 a teardown has
/// the Lease or an app is being deleted, 2 a deployment has it or an app is missing or held; 3.
pub(super) fn phase(plan: &Plan, situation: &Situation) -> PlatformPhase {
    match situation.installed {
        Installed::Nothing => return PlatformPhase::PreBootstrap,
        Installed::ArgoCd => return PlatformPhase::Bootstrap,
        Installed::Platform => {}
    }
    let holds = |action: Action| {
        let lease = situation.lease.as_ref().filter(|lease| !lease.expired);
        lease.is_some_and(|lease| lease.action == action.as_str())
    };
    let mut looks = situation.seen.iter().flatten();
    if holds(Action::Teardown) || looks.any(|seen| seen.observation.deleting.is_some()) {
        return PlatformPhase::Teardown;
    }
    let missing = (0..plan.apps.len()).any(|at| situation.seen.get(at).is_none_or(Option::is_none));
    let held = plan.policies.hold == HoldPolicy::DuringRun && any_held(plan, situation);
    if holds(Action::Deploy) || missing || held {
        return PlatformPhase::Orchestration;
    }
    PlatformPhase::SteadyState
}

/// A platform that is always held is in steady state, but Argo CD may not sync it.
pub(super) fn authority(phase: PlatformPhase, plan: &Plan, situation: &Situation) -> Authority {
    match phase {
        PlatformPhase::PreBootstrap | PlatformPhase::Bootstrap => Authority::Bootstrap,
        PlatformPhase::Orchestration => Authority::Orchestration,
        PlatformPhase::SteadyState if any_held(plan, situation) => Authority::Orchestration,
        PlatformPhase::SteadyState => Authority::ArgoCd,
        PlatformPhase::Teardown => Authority::Teardown,
    }
}

fn any_held(plan: &Plan, situation: &Situation) -> bool {
    plan.apps.iter().any(|app| situation.held.contains(app.app.name.as_str()))
}
