//! What an Application does not show: whether the extra health criteria hold, and whether
//! controllers have seen the newest generation of its resources.
//!
//! Criteria are asked for as long as somebody may wait for the app. Generations are looked at
//! once an app would be Done otherwise, and again only while something lags behind.

mod generations;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiphys_model::platform::App;
use tiphys_model::{AppIx, Plan};
use tiphys_run::gate::is_ripe;
use tiphys_run::{Action, Observation, Phase, Revisions, Stamp, Step};
use tokio::sync::Semaphore;

use tiphys_argocd::application::Application;
use tiphys_argocd::{AppAddress, Destination};
use tiphys_evidence::EvidenceCollector;
use tiphys_evidence::criteria::{self, Prober};

/// How soon an app is looked at again that the run waits for.
const SOON: Duration = Duration::from_millis(1500);
/// How soon one that is Done, or has not begun: nobody may start on news that is older.
const CALM: Duration = Duration::from_secs(10);
/// How often generations are asked for before they count as unknown, and the pause between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// How many are looked at at once.
const AT_ONCE: usize = 32;

/// Who looks.
pub(super) struct Probes {
    /// A teardown has nobody to ask.
    prober: Option<Prober>,
    /// Nobody sees generations without Argo CD's API.
    collector: Option<EvidenceCollector>,
    room: Semaphore,
}

/// One look that is to be taken.
#[derive(Debug, Clone)]
pub(super) struct ProbeRequest {
    pub(super) app: AppIx,
    /// The operation whose generations are to be looked at.
    generations: Option<Applied>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct ProbeResult {
    pub(super) app: AppIx,
    unmet: Vec<Arc<str>>,
    generations: Option<(Applied, Vec<Arc<str>>)>,
}

/// What was applied last: as long as it is the same, generations that were seen stay seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Applied {
    finished_at: Option<Stamp>,
    revisions: Revisions,
}

/// What is known of each app, and when it is looked at next.
pub(super) struct ProbeSchedule {
    plan: Arc<Plan>,
    sees_generations: bool,
    apps: Vec<Known>,
    schedule: BTreeSet<(Instant, AppIx)>,
}

#[derive(Debug)]
struct Known {
    /// It has criteria.
    asks: bool,
    /// It has resources whose health check may not notice that a controller is behind.
    may_lag: bool,
    unmet: Vec<Arc<str>>,
    generations: Option<(Applied, Vec<Arc<str>>)>,
    next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Never,
    At(Instant),
    UnderWay,
}

/// What can be seen at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeScope {
    Everything,
    CriteriaOnly,
}

impl Probes {
    pub(super) fn new(prober: Option<Prober>, collector: Option<EvidenceCollector>) -> Self {
        Probes { prober, collector, room: Semaphore::new(AT_ONCE) }
    }

    pub(super) fn scope(&self) -> ProbeScope {
        if self.collector.is_some() { ProbeScope::Everything } else { ProbeScope::CriteriaOnly }
    }

    pub(super) async fn look(
        &self,
        request: ProbeRequest,
        app: &App,
        at: &Destination,
        address: &AppAddress,
    ) -> ProbeResult {
        let _room = self.room.acquire().await;
        let unmet = match &self.prober {
            Some(prober) => prober.probe(&app.health, at).await,
            None => Vec::new(),
        };
        let generations = match (request.generations, &self.collector) {
            (Some(applied), Some(collector)) => Some((applied, lagging(collector, address).await)),
            _ => None,
        };
        ProbeResult { app: request.app, unmet, generations }
    }
}

/// What lags behind, or what keeps us from knowing. One odd answer must not make a run sync what
/// is as it should be.
async fn lagging(collector: &EvidenceCollector, app: &AppAddress) -> Vec<Arc<str>> {
    let mut tries = 1;
    loop {
        match collector.lagging(app).await {
            Ok(lagging) => return lagging,
            Err(_) if tries < TRIES => tokio::time::sleep(PAUSE).await,
            Err(error) => {
                return vec![format!("its resources (cannot read them: {error})").into()];
            }
        }
        tries += 1;
    }
}

impl ProbeSchedule {
    /// What is to be removed need not be well.
    pub(super) fn new(plan: Arc<Plan>, action: Action, sees: ProbeScope) -> Self {
        let deploys = action == Action::Deploy;
        let criteria = |app| if deploys { &*plan.app(app).app.health } else { &[] };
        let known = |app| Known {
            asks: !criteria(app).is_empty(),
            may_lag: true,
            unmet: criteria::unprobed(criteria(app)),
            generations: None,
            next: Next::Never,
        };
        let apps = plan.graph.apps().map(known).collect();
        let sees_generations = deploys && sees == ProbeScope::Everything;
        ProbeSchedule { apps, sees_generations, schedule: BTreeSet::new(), plan }
    }

    /// Takes note of what an app consists of.
    pub(super) fn note(&mut self, app: AppIx, application: &Application) {
        let mut resources = application.status.resources.iter().flatten();
        self.apps[app.position()].may_lag = resources.any(generations::may_lag);
    }

    /// Adds what is known to a look at an app.
    pub(super) fn complete(&self, app: AppIx, step: &Step, seen: &mut Observation) {
        let known = &self.apps[app.position()];
        seen.unmet.clone_from(&known.unmet);
        seen.lagging = match known.generations(seen) {
            Some(lagging) => lagging.to_vec(),
            // What is about to be Done has to wait until somebody has looked.
            None if step.is_in_progress() && self.wants_generations(app, step, seen) => {
                vec!["its resources".into()]
            }
            None => Vec::new(),
        };
    }

    /// When it has to be looked at next, if at all. `seen` is the newest look.
    pub(super) fn plan(&mut self, now: Instant, app: AppIx, step: &Step, seen: &Observation) {
        let wants = self.wants_generations(app, step, seen);
        let known = &self.apps[app.position()];
        let lagging = known.generations(seen).filter(|_| wants);
        let lags = lagging.is_some_and(|lagging| !lagging.is_empty());
        let wait = match &step.phase {
            Phase::Failed(_) | Phase::Skipped(_) | Phase::Removed { .. } => None,
            // All that it waits for may be this look.
            _ if step.is_in_progress() && wants && lagging.is_none() => Some(Duration::ZERO),
            _ if step.is_in_progress() => (lags || known.asks).then_some(SOON),
            // What is known when its turn comes decides whether it has to be synced.
            Phase::Waiting if wants && (lags || lagging.is_none()) => Some(SOON),
            _ => known.asks.then_some(CALM),
        };
        let wanted = wait.map(|wait| now + wait);
        let known = &mut self.apps[app.position()];
        let next = match (known.next, wanted) {
            (Next::UnderWay, _) => return,
            (_, None) => Next::Never,
            // News does not put off what is due.
            (Next::At(at), Some(wanted)) => Next::At(at.min(wanted)),
            (Next::Never, Some(wanted)) => Next::At(wanted),
        };
        if let Next::At(at) = known.next {
            self.schedule.remove(&(at, app));
        }
        if let Next::At(at) = next {
            self.schedule.insert((at, app));
        }
        known.next = next;
    }

    /// What has to be known before a run begins: an app that is as it should be must not be
    /// synced because nobody has looked.
    pub(super) fn first(
        &mut self,
        app: AppIx,
        step: &Step,
        seen: &Observation,
    ) -> Option<ProbeRequest> {
        let wanted = self.apps[app.position()].asks || self.wants_generations(app, step, seen);
        wanted.then(|| self.begin(app, step, seen))
    }

    /// The next one that is due, of which `seen` is asked.
    pub(super) fn due(&mut self, now: Instant) -> Option<AppIx> {
        let (at, app) = *self.schedule.first()?;
        (at <= now).then(|| {
            self.schedule.pop_first();
            self.apps[app.position()].next = Next::Never;
            app
        })
    }

    pub(super) fn begin(&mut self, app: AppIx, step: &Step, seen: &Observation) -> ProbeRequest {
        let wants = self.wants_generations(app, step, seen);
        let known = &mut self.apps[app.position()];
        let settled = known.generations(seen).is_some_and(<[_]>::is_empty);
        known.next = Next::UnderWay;
        ProbeRequest { app, generations: (wants && !settled).then(|| Applied::of(seen)) }
    }

    /// Takes in what was found.
    pub(super) fn take(&mut self, result: ProbeResult) {
        let known = &mut self.apps[result.app.position()];
        known.next = Next::Never;
        known.unmet = result.unmet;
        known.generations = result.generations.or_else(|| known.generations.take());
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.schedule.first().map(|(at, _)| *at)
    }

    /// Of what this run has synced, every resource is looked at. Of what may be current already,
    /// Argo CD's health checks have judged most kinds with their generation.
    fn wants_generations(&self, app: AppIx, step: &Step, seen: &Observation) -> bool {
        let may_lag = step.is_in_progress() || self.apps[app.position()].may_lag;
        self.sees_generations && may_lag && is_ripe(seen, &self.plan.app(app).app.tolerate_drift)
    }
}

impl Applied {
    fn of(seen: &Observation) -> Self {
        Applied {
            finished_at: seen.last.as_ref().and_then(|last| last.finished_at),
            revisions: seen.revisions.clone(),
        }
    }
}

impl Known {
    /// What lags behind, if somebody has looked since the last operation.
    fn generations(&self, seen: &Observation) -> Option<&[Arc<str>]> {
        let (of, lagging) = self.generations.as_ref()?;
        (*of == Applied::of(seen)).then_some(lagging)
    }
}
