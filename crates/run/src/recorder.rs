//! From events to lines: names, numbers, times, and what only the whole log can tell.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tiphys_model::{AppIx, AppName, Health, Plan};

use crate::event::{Because, Event, FailState, How, Unhealthy, Verdict, WaitingOn};
use crate::line::{
    Counts, EngineName, EventKind, EventLine, GraphApp, RunFinished, RunStarted, UnhealthyApp,
    VERSION,
};
use crate::machine::Action;
use crate::time::Time;

/// Writes the log of one run.
#[derive(Debug, Clone)]
pub struct Recorder {
    plan: Arc<Plan>,
    action: Action,
    /// When the run began.
    origin: Timestamp,
    seq: u64,
    steps: Vec<Noted>,
}

/// What later lines need to know of a step.
#[derive(Debug, Clone, Copy, Default)]
struct Noted {
    started: Option<Time>,
    took: Duration,
    end: Option<End>,
    ailing: Option<Ailing>,
}

/// How something is not as it was at its end.
#[derive(Debug, Clone, Copy)]
enum Ailing {
    Unhealthy(Health),
    /// It had been removed.
    ThereAgain,
}

impl fmt::Display for Ailing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ailing::Unhealthy(health) => health.fmt(f),
            Ailing::ThereAgain => f.write_str("present again"),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum End {
    Done(How),
    Removed,
    Failed(FailState),
    Skipped(Because),
}

impl Recorder {
    #[must_use]
    pub fn new(plan: Arc<Plan>, action: Action, origin: Timestamp) -> Self {
        let steps = vec![Noted::default(); plan.apps.len()];
        Recorder { plan, action, origin, seq: 0, steps }
    }

    /// The first line.
    pub fn start(&mut self, run: String, engine: EngineName, seed: Option<u64>) -> EventLine {
        let started = RunStarted {
            run,
            action: self.action,
            engine,
            seed,
            platform: self.plan.platform.clone(),
            scope: self.plan.scope.clone(),
            plan: self.plan.digest.clone(),
            graph: self.plan.graph.apps().map(|app| GraphApp::new(&self.plan, app)).collect(),
        };
        let mut line = self.line(Time::START, EventKind::RunStarted(started));
        line.v = Some(VERSION);
        line
    }

    /// The line of an event; most of what a machine notes for itself has none.
    pub fn record(&mut self, now: Time, event: &Event) -> Option<EventLine> {
        let kind = self.kind(now, event)?;
        Some(self.line(now, kind))
    }

    fn line(&mut self, now: Time, kind: EventKind) -> EventLine {
        let seq = self.seq;
        self.seq += 1;
        let millis = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let at = self.origin.saturating_add(SignedDuration::from_millis(millis));
        let at = at.unwrap_or(self.origin);
        EventLine { v: None, seq, at, elapsed_ms: now.as_millis(), kind }
    }

    fn kind(&mut self, now: Time, event: &Event) -> Option<EventKind> {
        let kind = match event {
            Event::Held => EventKind::Held,
            Event::HandedOff { app } => EventKind::HandedOff { app: self.name(*app) },
            Event::Waiting { app, on } => self.waiting(*app, *on),
            Event::Syncing { app, attempt } => {
                self.steps[app.position()].started.get_or_insert(now);
                let attempt = attempt.operation.attempt;
                EventKind::StepSyncing { app: self.name(*app), attempt }
            }
            Event::Converging { app } => EventKind::StepConverging { app: self.name(*app) },
            Event::Retrying { app, cause, until } => EventKind::StepRetrying {
                app: self.name(*app),
                cause: cause.to_string(),
                in_ms: until.as_millis().saturating_sub(now.as_millis()),
            },
            Event::Done { app, how } => {
                let took_ms = self.end(now, *app, End::Done(*how));
                EventKind::StepDone { app: self.name(*app), how: *how, took_ms }
            }
            Event::Failed { app, state, cause, evidence } => {
                self.end(now, *app, End::Failed(*state));
                let name = self.name(*app);
                EventKind::StepFailed {
                    hint: cause.hint(&name),
                    app: name,
                    state: *state,
                    cause: cause.to_string(),
                    evidence: evidence.clone(),
                }
            }
            Event::Skipped { app, because } => {
                self.end(now, *app, End::Skipped(*because));
                let (because, reason) = self.chain(*app, *because);
                EventKind::StepSkipped { app: self.name(*app), because, reason }
            }
            Event::Removing { app } => {
                let noted = &mut self.steps[app.position()];
                if noted.started.is_some() {
                    // Asked again: no news.
                    return None;
                }
                noted.started = Some(now);
                EventKind::StepRemoving { app: self.name(*app) }
            }
            Event::Removed { app } => {
                let took_ms = self.end(now, *app, End::Removed);
                EventKind::StepRemoved { app: self.name(*app), took_ms }
            }
            Event::RevisionMoved { app, from, to } => EventKind::RevisionMoved {
                app: self.name(*app),
                from: from.to_string(),
                to: to.to_string(),
            },
            Event::Ailing { app, health } => {
                let ailing = health.map_or(Ailing::ThereAgain, Ailing::Unhealthy);
                self.steps[app.position()].ailing = Some(ailing);
                return None;
            }
            Event::Recovered { app } => {
                self.steps[app.position()].ailing = None;
                return None;
            }
            Event::Interrupted { signal } => EventKind::Interrupted { signal: *signal },
            Event::Finished { verdict, unhealthy } => {
                EventKind::RunFinished(self.finished(now, *verdict, unhealthy))
            }
            Event::Begun
            | Event::RefreshAsked { .. }
            | Event::RefreshSpared { .. }
            | Event::Vouched { .. }
            | Event::RefreshWanted { .. }
            | Event::Refreshed { .. }
            | Event::Admitted { .. }
            | Event::Blocked { .. }
            | Event::Unblocked { .. }
            | Event::Accepted { .. }
            | Event::Unanswered { .. }
            | Event::ReadReturned { .. }
            | Event::Resent { .. }
            | Event::Postponed { .. }
            | Event::Suspected { .. }
            | Event::Cleared { .. }
            | Event::HandOffAsked { .. }
            | Event::TerminateAsked { .. }
            | Event::Terminated { .. }
            | Event::ReadAsked { .. } => return None,
        };
        Some(kind)
    }

    fn waiting(&self, app: AppIx, on: WaitingOn) -> EventKind {
        let (on, reason) = match on {
            WaitingOn::Prerequisites => {
                let mut names: Vec<AppName> =
                    self.prerequisites(app).iter().map(|p| self.name(*p)).collect();
                names.sort();
                (names, None)
            }
            WaitingOn::Unhealthy(other) => {
                let name = self.name(other);
                let ailing = self.steps[other.position()].ailing;
                (vec![name.clone()], ailing.map(|ailing| format!("{name} is {ailing}")))
            }
        };
        EventKind::StepWaiting { app: self.name(app), on, reason }
    }

    /// The chain from what a step waited for to what failed, and why that is the end of it.
    fn chain(&self, skipped: AppIx, because: Because) -> (Vec<AppName>, String) {
        let mut chain = Vec::new();
        let mut next = because;
        loop {
            let (app, reason) = match next {
                Because::App(app) => {
                    chain.push(self.name(app));
                    match self.steps[app.position()].end {
                        Some(End::Skipped(further)) => {
                            next = further;
                            continue;
                        }
                        Some(End::Failed(state)) => (app, state.as_str().replace('-', " ")),
                        Some(End::Done(_) | End::Removed) | None => (app, "was lost".to_owned()),
                    }
                }
                Because::Unhealthy(app) => {
                    chain.push(self.name(app));
                    let ailing = self.steps[app.position()].ailing;
                    (app, ailing.map_or("was lost".to_owned(), |ailing| format!("is {ailing}")))
                }
                Because::Outside(app) => {
                    chain.push(self.name(app));
                    let reason = match self.action {
                        Action::Deploy => "is outside the scope and not Healthy",
                        Action::Teardown => {
                            "is outside the scope and depends on an app to be removed"
                        }
                    };
                    (app, reason.to_owned())
                }
                Because::Deadline => return self.waited_for(skipped),
            };
            return (chain, format!("{} {reason}", self.name(app)));
        }
    }

    /// From what a step waited for at the deadline to what was in progress then, or could not start
    /// itself.
    fn waited_for(&self, waiting: AppIx) -> (Vec<AppName>, String) {
        let mut chain = Vec::new();
        let mut reason = "it could start".to_owned();
        let mut next = waiting;
        while let Some(app) = self.prerequisites(next).iter().find(|app| !self.satisfied(**app)) {
            let (name, noted) = (self.name(*app), &self.steps[app.position()]);
            reason = match (self.action, noted.ailing) {
                (Action::Deploy, None) => format!("{name} was done"),
                (Action::Deploy, Some(_)) => format!("{name} was Healthy"),
                (Action::Teardown, _) => format!("{name} was removed"),
            };
            chain.push(name);
            if noted.started.is_some() {
                break;
            }
            next = *app;
        }
        (chain, format!("the run's deadline passed before {reason}"))
    }

    fn prerequisites(&self, app: AppIx) -> &[AppIx] {
        match self.action {
            Action::Deploy => self.plan.graph.dependencies(app),
            Action::Teardown => self.plan.graph.dependants(app),
        }
    }

    fn satisfied(&self, app: AppIx) -> bool {
        let noted = &self.steps[app.position()];
        matches!(noted.end, Some(End::Done(_) | End::Removed)) && noted.ailing.is_none()
    }

    /// Notes the end of a step, and tells what it took in milliseconds.
    fn end(&mut self, now: Time, app: AppIx, end: End) -> u64 {
        let noted = &mut self.steps[app.position()];
        noted.end = Some(end);
        noted.took = noted.started.map_or(Duration::ZERO, |started| now - started);
        u64::try_from(noted.took.as_millis()).unwrap_or(u64::MAX)
    }

    fn finished(&self, now: Time, verdict: Verdict, unhealthy: &[Unhealthy]) -> RunFinished {
        let mut counts = Counts::default();
        for noted in &self.steps {
            let count = match noted.end {
                Some(End::Done(_) | End::Removed) if noted.ailing.is_some() => {
                    &mut counts.unhealthy
                }
                Some(End::Done(How::Applied)) => &mut counts.applied,
                Some(End::Done(How::AlreadyCurrent)) => &mut counts.already_current,
                Some(End::Removed) => &mut counts.removed,
                Some(End::Failed(FailState::Failed)) => &mut counts.failed,
                Some(End::Failed(FailState::Errored)) => &mut counts.errored,
                Some(End::Failed(FailState::TimedOut)) => &mut counts.timed_out,
                Some(End::Skipped(_)) => &mut counts.skipped,
                None => &mut counts.unfinished,
            };
            *count += 1;
        }
        RunFinished {
            verdict,
            makespan_ms: now.as_millis(),
            critical_path_ms: self.critical_path_ms(),
            counts,
            unhealthy: unhealthy.iter().map(|one| self.unhealthy(one)).collect(),
        }
    }

    fn unhealthy(&self, unhealthy: &Unhealthy) -> UnhealthyApp {
        let app = self.name(unhealthy.app);
        UnhealthyApp {
            cause: unhealthy.cause.to_string(),
            evidence: unhealthy.evidence.clone(),
            hint: unhealthy.cause.hint(&app),
            app,
        }
    }

    /// Plan order is topological, so one walk over it finds the longest chain; a teardown has
    /// the same chains backwards.
    fn critical_path_ms(&self) -> u64 {
        let mut ends = vec![Duration::ZERO; self.steps.len()];
        for app in self.plan.graph.apps() {
            let before = self.plan.graph.dependencies(app).iter().map(|d| ends[d.position()]).max();
            let took = self.steps[app.position()].took;
            ends[app.position()] = before.unwrap_or_default() + took;
        }
        let longest = ends.into_iter().max().unwrap_or_default();
        u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)
    }

    fn name(&self, app: AppIx) -> AppName {
        self.plan.app(app).app.name.clone()
    }
}
