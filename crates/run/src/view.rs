//! The fold of a run's lines that every view reads: terminal, lines, page, report, exit code.
//! They cannot disagree, because none of them knows anything else.

use std::collections::BTreeMap;
use std::time::Duration;

use tiphys_model::AppName;

use crate::event::{Evidence, FailState, How};
use crate::line::{EventKind, EventLine, GraphApp, RunFinished, RunStarted};
use crate::time::Time;

/// What the lines so far have told. Before the first one nothing is known; a first line of
/// another run, such as one that takes over from a killed one, begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunView {
    pub started: Option<RunStarted>,
    pub finished: Option<RunFinished>,
    pub held: bool,
    pub interrupted: bool,
    /// The time of the newest line.
    pub elapsed: Time,
    apps: BTreeMap<AppName, AppView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppView {
    pub state: AppState,
    /// When it came to this state.
    pub since: Time,
    /// When it first synced or was first removed.
    pub started: Option<Time>,
    pub handed_off: bool,
    /// How long a run typically spends on it.
    pub typical: Duration,
    /// The longest path of typical times from it to the end, its own included.
    pub rank: Duration,
}

/// Where a step is, in the words of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppState {
    Waiting { reason: Option<String> },
    Syncing { attempt: u32 },
    Converging,
    Retrying { cause: String },
    Done { how: How, took_ms: u64 },
    Failed { state: FailState, cause: String, evidence: Evidence, hint: String },
    Skipped { because: Vec<AppName>, reason: String },
    Removing,
    Removed { took_ms: u64 },
}

impl AppState {
    #[must_use]
    pub fn is_running(&self) -> bool {
        match self {
            AppState::Syncing { .. }
            | AppState::Converging
            | AppState::Retrying { .. }
            | AppState::Removing => true,
            AppState::Waiting { .. }
            | AppState::Done { .. }
            | AppState::Failed { .. }
            | AppState::Skipped { .. }
            | AppState::Removed { .. } => false,
        }
    }

    #[must_use]
    pub fn is_over(&self) -> bool {
        !self.is_running() && !matches!(self, AppState::Waiting { .. })
    }

    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            AppState::Waiting { .. } => "waiting",
            AppState::Syncing { .. } => "syncing",
            AppState::Converging => "converging",
            AppState::Retrying { .. } => "retrying",
            AppState::Done { .. } => "done",
            AppState::Failed { state, .. } => state.as_str(),
            AppState::Skipped { .. } => "skipped",
            AppState::Removing => "removing",
            AppState::Removed { .. } => "removed",
        }
    }
}

impl RunView {
    /// A run of which nothing is known but its first line.
    fn new(started: &RunStarted) -> Self {
        let waiting = |(app, rank): (&GraphApp, Duration)| {
            let view = AppView {
                state: AppState::Waiting { reason: None },
                since: Time::START,
                started: None,
                handed_off: false,
                typical: Duration::from_secs(app.typical_seconds),
                rank,
            };
            (app.app.clone(), view)
        };
        let apps = started.graph.iter().zip(ranks(&started.graph)).map(waiting).collect();
        RunView { started: Some(started.clone()), apps, ..RunView::default() }
    }

    /// Takes the next line.
    pub fn fold(&mut self, line: &EventLine) {
        self.elapsed = Time::from_millis(line.elapsed_ms);
        match &line.kind {
            EventKind::RunStarted(started) => *self = RunView::new(started),
            EventKind::RunFinished(finished) => self.finished = Some(finished.clone()),
            EventKind::Held => self.held = true,
            EventKind::Interrupted { .. } => self.interrupted = true,
            EventKind::HandedOff { app } => {
                if let Some(view) = self.apps.get_mut(app) {
                    view.handed_off = true;
                }
            }
            EventKind::RevisionMoved { .. } => {}
            EventKind::StepWaiting { app, reason, .. } => {
                self.enter(app, AppState::Waiting { reason: reason.clone() });
            }
            EventKind::StepSyncing { app, attempt } => {
                self.enter(app, AppState::Syncing { attempt: *attempt });
            }
            EventKind::StepConverging { app } => self.enter(app, AppState::Converging),
            EventKind::StepRetrying { app, cause, .. } => {
                self.enter(app, AppState::Retrying { cause: cause.clone() });
            }
            EventKind::StepDone { app, how, took_ms } => {
                self.enter(app, AppState::Done { how: *how, took_ms: *took_ms });
            }
            EventKind::StepFailed { app, state, cause, evidence, hint } => {
                let (cause, evidence, hint) = (cause.clone(), evidence.clone(), hint.clone());
                self.enter(app, AppState::Failed { state: *state, cause, evidence, hint });
            }
            EventKind::StepSkipped { app, because, reason } => {
                let (because, reason) = (because.clone(), reason.clone());
                self.enter(app, AppState::Skipped { because, reason });
            }
            EventKind::StepRemoving { app } => self.enter(app, AppState::Removing),
            EventKind::StepRemoved { app, took_ms } => {
                self.enter(app, AppState::Removed { took_ms: *took_ms });
            }
        }
    }

    fn enter(&mut self, app: &AppName, state: AppState) {
        let now = self.elapsed;
        if let Some(view) = self.apps.get_mut(app) {
            if state.is_running() {
                view.started.get_or_insert(now);
            }
            view.state = state;
            view.since = now;
        }
    }

    /// All apps, in plan order.
    pub fn apps(&self) -> impl Iterator<Item = (&AppName, &AppView)> {
        let graph = self.started.iter().flat_map(|started| &started.graph);
        graph.filter_map(|app| Some((&app.app, self.apps.get(&app.app)?)))
    }

    #[must_use]
    pub fn app(&self, name: &AppName) -> Option<&AppView> {
        self.apps.get(name)
    }
}

/// The rank of each app. Dependants stand behind what they depend on, so one walk from the end
/// finds the longest paths.
fn ranks(graph: &[GraphApp]) -> Vec<Duration> {
    let mut after: BTreeMap<&AppName, Duration> = BTreeMap::new();
    let mut ranks = vec![Duration::ZERO; graph.len()];
    for (app, rank) in graph.iter().zip(&mut ranks).rev() {
        let rest = after.get(&app.app).copied().unwrap_or_default();
        *rank = rest.saturating_add(Duration::from_secs(app.typical_seconds));
        for dependency in &app.depends_on {
            let longest = after.entry(dependency).or_default();
            *longest = (*longest).max(*rank);
        }
    }
    ranks
}
