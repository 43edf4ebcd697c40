//! What an action came to for each app, as files for pipelines: JUnit for their test view, Markdown
//! for their summary page.

mod junit;
mod markdown;

use std::collections::BTreeMap;

use tiphys_assess::status::{State, Status};
use tiphys_model::{AppName, Exit};
use tiphys_run::{AppState, AppView, RunFinished, RunView};

pub use junit::OutcomesJunit;
pub use markdown::OutcomesMarkdown;

use crate::lines::chain;

/// All apps of one action, in start order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcomes {
    /// Such as `deploy prod`.
    title: String,
    /// One word or two.
    verdict: String,
    apps: Vec<AppOutcome>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AppOutcome {
    name: String,
    /// In the words of the run.
    state: String,
    result: AppResult,
    took_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AppResult {
    Passed,
    /// Why, and what to do.
    Failed {
        cause: String,
        next: Option<String>,
    },
    /// Not attempted, or not finished.
    Skipped {
        reason: String,
    },
}

impl Outcomes {
    /// Of a run. Nothing if it has not begun.
    #[must_use]
    pub fn of_run(view: &RunView) -> Option<Self> {
        let started = view.started.as_ref()?;
        let verdict = view.finished.as_ref().map_or("unfinished", |end| end.verdict.as_str());
        let known: BTreeMap<&AppName, &AppView> = view.apps().collect();
        let apps = started.graph.iter().filter_map(|planned| {
            let app = known.get(&planned.app)?;
            Some(of_app(planned.app.as_str(), &app.state, view.finished.as_ref()))
        });
        Some(Outcomes {
            title: format!("{} {}", started.action.as_str(), started.platform),
            verdict: verdict.to_owned(),
            apps: apps.collect(),
        })
    }

    /// Of a look at a platform.
    #[must_use]
    pub fn of_status(status: &Status) -> Self {
        let apps = status.apps.iter().map(|app| {
            let cause = || app.cause.clone().unwrap_or_else(|| app.state.as_str().to_owned());
            let result = match app.state {
                State::Done => AppResult::Passed,
                _ if !app.because.is_empty() => {
                    AppResult::Skipped { reason: format!("waiting for {}", chain(&app.because)) }
                }
                _ => AppResult::Failed { cause: cause(), next: None },
            };
            let (name, state) = (app.name.to_string(), app.state.as_str().to_owned());
            AppOutcome { name, state, result, took_ms: None }
        });
        let apps: Vec<AppOutcome> = apps.collect();
        let healthy = apps.iter().all(|app| app.result == AppResult::Passed);
        let verdict = if healthy { "healthy" } else { "not healthy" }.to_owned();
        Outcomes { title: format!("validate {}", status.platform), verdict, apps }
    }

    /// Of an action that failed before it had to do with any app.
    #[must_use]
    pub fn failed(title: &str, exit: Exit, message: &str) -> Self {
        let (name, state) = (title.to_owned(), format!("exit {}", exit.code()));
        let result = AppResult::Failed { cause: message.trim().to_owned(), next: None };
        let apps = vec![AppOutcome { name, state, result, took_ms: None }];
        Outcomes { title: title.to_owned(), verdict: "failed".to_owned(), apps }
    }

    fn count(&self, which: impl Fn(&AppResult) -> bool) -> usize {
        self.apps.iter().filter(|app| which(&app.result)).count()
    }
}

fn of_app(name: &str, state: &AppState, finished: Option<&RunFinished>) -> AppOutcome {
    let unhealthy = finished
        .and_then(|finished| finished.unhealthy.iter().find(|one| one.app.as_str() == name));
    let (result, took_ms) = match state {
        AppState::Done { took_ms, .. } => match unhealthy {
            Some(one) => {
                let (cause, next) = (one.cause.clone(), Some(one.hint.clone()));
                (AppResult::Failed { cause, next }, Some(*took_ms))
            }
            None => (AppResult::Passed, Some(*took_ms)),
        },
        AppState::Removed { took_ms } => (AppResult::Passed, Some(*took_ms)),
        AppState::Failed { cause, hint, .. } => {
            (AppResult::Failed { cause: cause.clone(), next: Some(hint.clone()) }, None)
        }
        AppState::Skipped { because, reason } => {
            (AppResult::Skipped { reason: format!("{} {reason}", chain(because)) }, None)
        }
        AppState::Waiting { .. }
        | AppState::Syncing { .. }
        | AppState::Converging
        | AppState::Retrying { .. }
        | AppState::Removing => (AppResult::Skipped { reason: "not finished".to_owned() }, None),
    };
    AppOutcome { name: name.to_owned(), state: state.word().to_owned(), result, took_ms }
}
