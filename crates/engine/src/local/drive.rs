//! A run in progress: what comes in from outside, and what goes out.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use tiphys_model::{AppIx, AppName, Role};
use tiphys_run::{
    Action, Answer, Clock, Driver, Event, How, Input, Observation, Output, Phase, Signal, Time,
    Verdict,
};
use tiphys_state::lease::{Lease, LeaseError};
use tiphys_state::tolerance::{Decision, Tolerance};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::effects::Effects;
use super::gatekeeper::{self, Admission, Reports};
use super::probe_schedule::{ProbeRequest, ProbeResult, ProbeSchedule};
use crate::engine::RunError;
use crate::kubernetes_events::EventPublisher;
use crate::run_update::RunUpdate;
use crate::signals::Signals;
use tiphys_argocd::application::Application;
use tiphys_argocd::sync_windows::Denied;
use tiphys_argocd::watch::WatchEvent;
use tiphys_cluster::{Cause, ObjectName};

/// Requests that fail are repeated before this: the machine waits half a minute at most.
const LONGEST_GAP: Duration = Duration::from_secs(60);

/// What came back from outside.
pub(super) enum Incoming {
    /// A look, before the answer that it belongs to.
    Seen(AppIx, Box<Application>),
    /// A request was answered, as far as the machine wants to know.
    Answered { app: AppIx, doing: &'static str, answer: Option<Answer> },
    /// A request failed in a way that ends the run, if it lasts.
    Odd { app: AppIx, doing: &'static str, cause: Cause, error: RunError, answer: Option<Answer> },
    /// Somebody looked, and there was none. The newest version that had been seen before.
    Missing(AppIx, Option<u64>),
    /// It is gone, and so is what it has applied but for these hooks.
    Gone(AppIx, u64, Vec<ObjectName>),
    /// A sync that windows of others do not let through now.
    Denied(AppIx, Denied),
    /// What a probe has found.
    Probed(ProbeResult),
    /// Nothing more can be done.
    Broken(RunError),
}

/// All that a run in progress has at hand.
pub(super) struct Local<'a> {
    pub(super) driver: Driver,
    pub(super) began: Instant,
    pub(super) names: BTreeMap<String, AppIx>,
    pub(super) effects: Arc<Effects>,
    pub(super) incoming: UnboundedSender<Incoming>,
    pub(super) publisher: EventPublisher,
    pub(super) schedule: ProbeSchedule,
    /// Whom to tell what happens.
    pub(super) events: &'a dyn Fn(Time, Event),
    /// Whom to tell what else is to be known.
    pub(super) updates: &'a dyn Fn(RunUpdate),
    /// Filled until the whole platform has been seen once.
    pub(super) first: Option<Vec<Option<Observation>>>,
    /// How many of the probes have not returned, once all has been seen.
    pub(super) first_probes: Option<usize>,
    pub(super) held: bool,
    pub(super) clock: Clock,
    /// What has gone, and has left something that is still going.
    pub(super) going: BTreeSet<AppIx>,
    /// How the watch fares.
    pub(super) watch: Tolerance,
    /// And the requests for each app.
    pub(super) requests: BTreeMap<(AppIx, &'static str), Tolerance>,
    /// What was told to keep apps from being synced.
    pub(super) denied: BTreeMap<AppIx, Denied>,
    /// Whom to tell how each app stands, if somebody has a say in when they start.
    pub(super) reports: Option<Reports>,
}

/// The time that the runtime goes by.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl Local<'_> {
    pub(super) async fn drive(
        mut self,
        watch: impl futures::Stream<Item = WatchEvent>,
        mut inbox: UnboundedReceiver<Incoming>,
        mut admissions: Option<UnboundedReceiver<Admission>>,
        lease: &Lease,
        signals: &mut Signals,
    ) -> Result<Verdict, RunError> {
        let mut watch = pin!(watch);
        let mut lost = false;
        while self.driver.machine().verdict().is_none() {
            let timer =
                self.driver.machine().wake_at().map(|wake| self.began + (wake - Time::START));
            let wake = timer.into_iter().chain(self.schedule.wake_at()).min();
            let tick = async {
                match wake {
                    Some(wake) => tokio::time::sleep_until(wake.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What is known comes first: a decision should rest on all of it.
                biased;
                signal = signals.next() => self.step(Input::Interrupted(signal))?,
                error = lease.ended(), if !lost => {
                    self.on_lease_ended(error)?;
                    lost = true;
                }
                incoming = inbox.recv() => match incoming {
                    Some(incoming) => self.on_incoming(incoming)?,
                    None => unreachable!("this run keeps a sender itself"),
                },
                admission = gatekeeper::next(&mut admissions) => self.step(match admission {
                    Admission::App(app) => Input::Admitted { app },
                    Admission::Stopped => Input::Interrupted(Signal::Interrupt),
                })?,
                event = watch.next() => match event {
                    Some(event) => self.on_watch_event(event)?,
                    None => return Err(RunError::WatchEnded),
                },
                () = tick => self.step(Input::Tick)?,
            }
            self.probe();
        }
        let verdict = self.driver.machine().verdict().ok_or(RunError::WatchEnded)?;
        self.end_what_is_frozen(verdict, lease, signals).await;
        self.publisher.finish().await;
        Ok(verdict)
    }

    /// Another run may begin now, so this one ends: in its own time if it knows of one that has.
    fn on_lease_ended(&mut self, error: LeaseError) -> Result<(), RunError> {
        let LeaseError::Lost { holder } = &error else { return Err(error.into()) };
        let told = format!("{holder} holds the platform now, so this run stops");
        (self.updates)(RunUpdate::Warning(told));
        self.step(Input::LeaseLost)
    }

    fn on_watch_event(&mut self, event: WatchEvent) -> Result<(), RunError> {
        let failed = match &event {
            WatchEvent::Failed(error) => Err(error.cause()),
            WatchEvent::Applied(_) | WatchEvent::Gone { .. } | WatchEvent::Listed(_) => Ok(()),
        };
        let decision = self.watch.decide(self.time(), failed);
        match event {
            WatchEvent::Applied(application) => {
                let app = self.names.get(application.name()).copied();
                app.map_or(Ok(()), |app| self.observe(app, &application))
            }
            WatchEvent::Gone { name, version } => {
                if let Some(app) = self.names.get(&name).copied() {
                    self.gone(app, version);
                }
                Ok(())
            }
            WatchEvent::Listed(there) => {
                self.look_for_missing(&there);
                self.listed()
            }
            WatchEvent::Failed(error) => match decision {
                Decision::GiveUp => Err(error.into()),
                // It goes on by itself; what it misses meanwhile is looked for, and if the cluster
                // stays away, the Lease runs out.
                Decision::Continue => Ok(()),
            },
        }
    }

    fn on_incoming(&mut self, incoming: Incoming) -> Result<(), RunError> {
        match incoming {
            Incoming::Seen(app, application) => self.observe(app, &application),
            Incoming::Answered { app, doing, answer } => {
                self.requests.remove(&(app, doing));
                answer.map_or(Ok(()), |answer| self.step(Input::Answered { app, answer }))
            }
            Incoming::Odd { app, doing, cause, error, answer } => {
                let time = self.time();
                let tolerance = self.requests.entry((app, doing));
                let tolerance = tolerance.or_insert_with(|| Tolerance::new(LONGEST_GAP));
                match tolerance.decide(time, Err(cause)) {
                    Decision::GiveUp => Err(error),
                    Decision::Continue => {
                        answer.map_or(Ok(()), |answer| self.step(Input::Answered { app, answer }))
                    }
                }
            }
            Incoming::Missing(app, before) => {
                self.on_missing(app, before);
                Ok(())
            }
            Incoming::Gone(app, version, hooks) => self.on_gone(app, version, &hooks),
            Incoming::Denied(app, denied) => {
                self.on_denied(app, denied);
                Ok(())
            }
            Incoming::Probed(result) => self.on_probe_result(result),
            Incoming::Broken(error) => Err(error),
        }
    }

    fn observe(&mut self, app: AppIx, application: &Application) -> Result<(), RunError> {
        // It has moved to another platform, so there is none of this one to remove.
        let removes = self.driver.machine().action() == Action::Teardown;
        if removes && !self.effects.hold.is_in(&application.spec.project) {
            return Ok(());
        }
        let mut seen = application.observe().map_err(|source| RunError::Unreadable {
            app: application.name().to_owned(),
            source,
        })?;
        self.effects.remember(app, application);
        self.schedule.note(app, application);
        self.effects.argocd.compared(application.name(), seen.reconciled_at);
        if let Some(first) = &mut self.first {
            first[app.position()] = Some(seen);
            return Ok(());
        }
        self.schedule.complete(app, self.driver.machine().step(app), &mut seen);
        let version = seen.version;
        tracing::debug!(
            "{}: {}, {} at {}",
            application.name(),
            seen.sync,
            seen.health,
            seen.revisions
        );
        self.step(Input::Observed { app, version, seen: Some(Arc::new(seen)) })?;
        self.schedule_probe(app);
        Ok(())
    }

    /// All has been seen once. What only a probe shows has to be known, too, before the
    /// run decides what is to be synced.
    fn listed(&mut self) -> Result<(), RunError> {
        let (Some(first), None) = (&self.first, self.first_probes) else { return Ok(()) };
        let machine = self.driver.machine();
        let apps = machine.plan().graph.apps();
        let requests: Vec<ProbeRequest> = apps
            .zip(first)
            .filter_map(|(app, seen)| self.schedule.first(app, machine.step(app), seen.as_ref()?))
            .collect();
        self.first_probes = Some(requests.len());
        for request in requests {
            self.send(request);
        }
        self.begin()
    }

    /// Begins the run, if the first looks have returned.
    fn begin(&mut self) -> Result<(), RunError> {
        if self.first_probes != Some(0) {
            return Ok(());
        }
        let Some(first) = self.first.take() else { return Ok(()) };
        let machine = self.driver.machine();
        let apps = machine.plan().clone();
        let complete = |(app, seen): (AppIx, Option<Observation>)| {
            let mut seen = seen?;
            self.schedule.complete(app, machine.step(app), &mut seen);
            Some(Arc::new(seen))
        };
        let seen = apps.graph.apps().zip(first).map(complete).collect();
        self.step(Input::Listed { seen, held: self.held, clock: self.clock })?;
        for app in apps.graph.apps() {
            self.schedule_probe(app);
        }
        Ok(())
    }

    fn on_probe_result(&mut self, result: ProbeResult) -> Result<(), RunError> {
        let app = result.app;
        self.schedule.take(result);
        if let Some(left) = self.first_probes.as_mut().filter(|_| self.first.is_some()) {
            *left -= 1;
            return self.begin();
        }
        let Some(before) = self.driver.seen(app) else { return Ok(()) };
        let mut seen = before.clone();
        self.schedule.complete(app, self.driver.machine().step(app), &mut seen);
        if seen != *before {
            let Observation { lagging, unmet, .. } = seen;
            self.step(Input::Found { app, lagging, unmet })?;
        }
        self.schedule_probe(app);
        Ok(())
    }

    fn schedule_probe(&mut self, app: AppIx) {
        if let Some(seen) = self.driver.seen(app) {
            self.schedule.plan(now(), app, self.driver.machine().step(app), seen);
        }
    }

    /// Sends for what is due.
    fn probe(&mut self) {
        while let Some(app) = self.schedule.due(now()) {
            let Some(seen) = self.driver.seen(app) else { continue };
            let request = self.schedule.begin(app, self.driver.machine().step(app), seen);
            self.send(request);
        }
    }

    fn send(&self, request: ProbeRequest) {
        let (effects, incoming) = (self.effects.clone(), self.incoming.clone());
        let plan = self.driver.machine().plan().clone();
        tokio::spawn(async move {
            let app = &plan.app(request.app).app;
            effects.probe(request, app, &incoming).await;
        });
    }

    fn time(&self) -> Time {
        Time::START + now().saturating_duration_since(self.began)
    }

    pub(super) fn name(&self, app: AppIx) -> AppName {
        self.driver.machine().plan().app(app).app.name.clone()
    }

    pub(super) fn step(&mut self, input: Input) -> Result<(), RunError> {
        let now = self.time();
        let looked_at = input.app();
        let Output { events, effects } = self.driver.step(now, input)?;
        if let Some(reports) = &mut self.reports {
            reports.tell(&self.driver, looked_at, &events);
        }
        for event in events {
            if let Some(app) = event.app() {
                if !self.leaves_no_trace(&event, app) {
                    self.publisher.publish(&event, self.effects.reference(app));
                }
                self.thaw_what_is_frozen(&event, app);
                if let Some(warning) = self.behind(&event, app) {
                    (self.updates)(RunUpdate::Warning(warning));
                }
                // Its turn may have come because of another app, without a look at it.
                self.schedule_probe(app);
            }
            (self.events)(now, event);
        }
        for effect in effects {
            let (effects, incoming) = (self.effects.clone(), self.incoming.clone());
            let name = self.name(effect.app());
            tracing::info!("{name}: {effect}");
            let sync_timeout = self.driver.machine().plan().app(effect.app()).app.timeouts.sync;
            let seen = self.driver.seen(effect.app()).map(|seen| seen.version);
            tokio::spawn(async move {
                if effects.windows_allow(&effect, &name, sync_timeout, &incoming).await {
                    effects.carry_out(effect, &name, seen, &incoming).await;
                }
            });
        }
        Ok(())
    }

    /// A run over its own result announces nothing.
    fn leaves_no_trace(&self, event: &Event, app: AppIx) -> bool {
        let current = Phase::Done { how: How::AlreadyCurrent, ailing_since: None };
        matches!(event, Event::HandedOff { .. }) && self.driver.machine().step(app).phase == current
    }

    /// What lies outside the scope is verified, not deployed: it may be Healthy and yet not what
    /// its source says.
    fn behind(&self, event: &Event, app: AppIx) -> Option<String> {
        let planned = self.driver.machine().plan().app(app);
        let seen = self.driver.seen(app)?;
        let verified = planned.role == Role::Verify && matches!(event, Event::Done { .. });
        let behind = !seen.compared_to_spec || !seen.is_synced(&planned.app.tolerate_drift);
        (verified && behind).then(|| {
            let name = &planned.app.name;
            format!(
                "`{name}` is outside the scope and Healthy, but {}: what is deployed does not \
                 match its source at {}",
                seen.sync, seen.revisions
            )
        })
    }
}
