//! The run machine: what a run has come to, and what it does next.
//!
//! ```text
//!            ┌──────────── decide ────────────┐
//!   trigger ─┤ pure: state + newest looks     ├─▶ events ──▶ apply ──▶ state
//!            └────────────────────────────────┘      └─────▶ effects
//! ```
//!
//! [`Machine::apply`] is the only mutator, and refuses what must not happen. `decide` only
//! proposes. There is no clock here, no IO and no randomness: time comes in as an argument.

mod apply;
mod counts;
mod decide;
mod finish;
mod observe;
mod refreshes;
mod remove;
mod start;
mod step;
mod timers;
mod witness;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiphys_model::graph::Graph;
use tiphys_model::operation::PlanTag;
use tiphys_model::{AppIx, OperationId, Plan, Role};
use tiphys_plan::StartQueue;

use crate::effect::Effect;
use crate::event::{Event, Signal, Verdict};
use crate::planted::planted;
use crate::time::Time;

pub use apply::Illegal;
pub(crate) use decide::Trigger;
pub use step::{Phase, Step};

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Deploy,
    Teardown,
}

impl Action {
    /// What must be satisfied before the app may start.
    fn prerequisites(self, graph: &Graph, app: AppIx) -> &[AppIx] {
        planted!(RemoveInDeployOrder => return graph.dependencies(app));
        match self {
            Action::Deploy => graph.dependencies(app),
            Action::Teardown => graph.dependants(app),
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Deploy => "deploy",
            Action::Teardown => "teardown",
        }
    }
}

/// Between two refreshes of the same app.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// How long trouble must last unbroken to be a failure.
const TROUBLE: Duration = Duration::from_secs(60);
/// How long an app must stay OutOfSync after its sync.
const DRIFT: Duration = Duration::from_secs(30);
/// How often the source of an app may move on during its sync.
const MOVES: u32 = 5;
/// Refreshes that must have found the same trouble when it is about comparing.
const TROUBLE_REFRESHES: u32 = 2;
/// How long an answer may take before the question is asked again, and how long an app that is
/// waited for may show nothing new before it is looked at.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long Argo CD may take to begin an operation. It can miss one that is asked for right after
/// a refresh, and then finds it with the next refresh, which by itself is minutes away.
const NOTICE: Duration = Duration::from_secs(10);
/// Before a sync request whose fate is unknown is sent again: long enough to look first.
const RESEND: Duration = Duration::from_secs(5);

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    plan: Arc<Plan>,
    action: Action,
    tag: PlanTag,
    /// Which holder of the platform's Lease this run is.
    epoch: u64,
    steps: Vec<Step>,
    queue: StartQueue,
    timers: BTreeSet<(Time, AppIx)>,
    run: Run,
}

/// What concerns the run as a whole. The counts are those of `steps`, kept so that no event
/// costs more on a larger platform.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    begun: bool,
    /// Steps that are not over.
    unfinished: usize,
    /// Apps outside the scope that have not been found as they must be.
    unverified: usize,
    /// Steps that failed or were skipped.
    lost: usize,
    /// Steps that were Done and are not as they were.
    ailing: usize,
    /// Operations in flight.
    syncing: usize,
    /// Steps that are over, with something still to be done for them.
    errands: usize,
    /// When a refresh last turned out to be superfluous.
    vouched: Time,
    interrupted: Option<Signal>,
    finished: Option<Verdict>,
}

impl Machine {
    #[must_use]
    pub fn new(plan: Arc<Plan>, action: Action, epoch: u64) -> Self {
        let step = |app| Step::new(action.prerequisites(&plan.graph, app).len());
        let steps: Vec<Step> = plan.graph.apps().map(step).collect();
        let unverified = plan.apps.iter().filter(|app| app.role == Role::Verify).count();
        Machine {
            tag: PlanTag::of(&plan.digest),
            action,
            epoch,
            queue: StartQueue::new(&plan.policies),
            timers: BTreeSet::new(),
            run: Run {
                begun: false,
                unfinished: steps.len(),
                unverified,
                lost: 0,
                ailing: 0,
                syncing: 0,
                errands: 0,
                vouched: Time::START,
                interrupted: None,
                finished: None,
            },
            steps,
            plan,
        }
    }

    /// Lets no app start before somebody else has agreed, besides all that the run itself asks for.
    #[must_use]
    pub fn with_admission(mut self) -> Self {
        self.steps.iter_mut().for_each(|step| step.admitted = false);
        self
    }

    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    #[must_use]
    pub fn action(&self) -> Action {
        self.action
    }

    #[must_use]
    pub fn step(&self, app: AppIx) -> &Step {
        &self.steps[app.position()]
    }

    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.run.finished
    }

    /// When something is to be decided even if nothing happens.
    #[must_use]
    pub fn wake_at(&self) -> Option<Time> {
        if self.run.finished.is_some() || !self.run.begun {
            return None;
        }
        let timer = self.timers.first().map(|(time, _)| *time);
        Some(timer.map_or(self.deadline(), |timer| timer.min(self.deadline())))
    }

    /// What the passing of time makes necessary.
    pub(crate) fn due(&self, now: Time) -> impl Iterator<Item = Trigger> {
        let deadline = (self.run.begun && now >= self.deadline()).then_some(Trigger::Deadline);
        let due = self.timers.iter().take_while(move |(time, _)| *time <= now);
        let looks: Vec<Trigger> = due.map(|(_, app)| Trigger::Look(*app)).collect();
        planted!(TimersInHashOrder => let looks = crate::planted::hash_order(looks));
        deadline.into_iter().chain(looks)
    }

    fn deadline(&self) -> Time {
        Time::START + self.plan.policies.timeout
    }

    /// What must be in flight now: asked for, and not answered. An engine that has lost its
    /// connections asks for exactly this again.
    #[must_use]
    pub fn outstanding(&self) -> Vec<Effect> {
        if self.run.finished.is_some() {
            return Vec::new();
        }
        let effects = self.plan.graph.apps().flat_map(|app| {
            let step = self.step(app);
            let request = match &step.phase {
                Phase::Syncing(syncing) if syncing.accepted.is_none() => Some(syncing.effect(app)),
                Phase::Removing { .. } => Some(Effect::Delete { app }),
                _ => None,
            };
            let refresh =
                step.refresh.in_flight.map(|asked| Effect::Refresh { app, number: asked.number });
            let errand = step.errand_since.map(|_| match step.phase {
                Phase::Done { .. } => Effect::HandOff { app },
                _ => Effect::Terminate { app },
            });
            [request, refresh, errand]
        });
        effects.flatten().collect()
    }

    /// What an event that was just applied asks for.
    pub(crate) fn effect_of(&self, event: &Event) -> Option<Effect> {
        match event {
            Event::RefreshAsked { app } => {
                Some(Effect::Refresh { app: *app, number: self.step(*app).requests })
            }
            Event::Syncing { attempt, .. } if attempt.adopted.is_some() => None,
            Event::Syncing { app, .. } | Event::Resent { app } => match &self.step(*app).phase {
                Phase::Syncing(syncing) => Some(syncing.effect(*app)),
                _ => None,
            },
            Event::Unanswered { app, .. }
            | Event::Postponed { app, .. }
            | Event::ReadAsked { app } => {
                Some(Effect::Read { app: *app, number: self.step(*app).requests })
            }
            Event::HandOffAsked { app } => Some(Effect::HandOff { app: *app }),
            Event::Removing { app } => Some(Effect::Delete { app: *app }),
            Event::TerminateAsked { app } => Some(Effect::Terminate { app: *app }),
            _ => None,
        }
    }

    /// What must be satisfied before the step may start.
    fn prerequisites(&self, app: AppIx) -> &[AppIx] {
        self.action.prerequisites(&self.plan.graph, app)
    }

    /// What waits for the step.
    fn followers(&self, app: AppIx) -> &[AppIx] {
        planted!(RemoveInDeployOrder => return self.plan.graph.dependants(app));
        match self.action {
            Action::Deploy => self.plan.graph.dependants(app),
            Action::Teardown => self.plan.graph.dependencies(app),
        }
    }

    /// What waits for the step, also through apps outside the scope that are Done.
    fn followers_inside(&self, app: AppIx) -> BTreeSet<AppIx> {
        let mut found = BTreeSet::new();
        let mut through = BTreeSet::from([app]);
        let mut open = vec![app];
        while let Some(app) = open.pop() {
            for follower in self.followers(app) {
                let passed = self.role(*follower) == Role::Verify && self.step(*follower).is_over();
                if !passed {
                    found.insert(*follower);
                } else if through.insert(*follower) {
                    open.push(*follower);
                }
            }
        }
        found
    }

    fn role(&self, app: AppIx) -> Role {
        self.plan.app(app).role
    }

    /// Of what is ready, the smallest starts first. A teardown walks the plan backwards.
    fn priority(&self, app: AppIx) -> u32 {
        match self.action {
            Action::Deploy => self.plan.app(app).priority,
            Action::Teardown => {
                u32::try_from(self.plan.apps.len() - app.position()).unwrap_or(u32::MAX)
            }
        }
    }

    fn group(&self, app: AppIx) -> Option<usize> {
        planted!(IgnoreGroups => return None);
        self.plan.app(app).app.group
    }

    fn operation_id(&self, app: AppIx, attempt: u32) -> OperationId {
        let name = self.plan.app(app).app.name.clone();
        planted!(IdsFromAGlobalCounter => let attempt = crate::planted::count());
        OperationId { plan: self.tag, app: name, epoch: self.epoch, attempt }
    }

    fn sync_timeout(&self, app: AppIx) -> Duration {
        planted!(NoSyncTimeout => return Duration::MAX);
        self.plan.app(app).app.timeouts.sync
    }

    fn health_timeout(&self, app: AppIx) -> Duration {
        self.plan.app(app).app.timeouts.health
    }
}
