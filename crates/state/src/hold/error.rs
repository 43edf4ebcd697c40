//! Why apps cannot be held or released.

use tiphys_argocd::rest::CallError;
use tiphys_argocd::sync_windows::Unreadable;
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation};

use super::decide::Why;
use super::wanted::{ForeignChange, LIMIT};

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum HoldError {
    /// Others keep changing the window.
    Overruled {
        project: String,
        change: ForeignChange,
    },
    /// A window of others, of which nobody can tell whether it lets a sync through.
    Window {
        project: String,
        source: Unreadable,
    },
    /// Argo CD keeps syncing by itself.
    NeverIdle {
        /// In words.
        projects: String,
        why: Why,
    },
    /// An automated sync that has to be stopped first.
    NotStopped {
        app: String,
        source: CallError,
    },
    Request(#[from] RequestError),
}

impl HoldError {
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            HoldError::Request(error) => error.cause(),
            HoldError::NotStopped { .. } => Cause::Unreachable,
            HoldError::Overruled { .. }
            | HoldError::Window { .. }
            | HoldError::NeverIdle { .. } => Cause::Other,
        }
    }
}

impl Explain for HoldError {
    fn explain(&self) -> Explanation {
        match self {
            HoldError::Overruled { project, change } => Explanation::new(
                Exit::Held,
                format!("the hold in the AppProject `{project}` does not last"),
                format!("it was {change} after it had been set again {LIMIT} times"),
            )
            .hint(
                "stop what changes spec.syncWindows of the project and run this again; if Git \
                 manages the project, its Application needs ignoreDifferences for \
                 /spec/syncWindows",
            ),
            HoldError::Window { project, source } => Explanation::new(
                Exit::Configuration,
                format!("nobody can tell when the AppProject `{project}` allows a sync"),
                source.to_string(),
            )
            .hint("correct or remove the window: Argo CD syncs nothing that it is about"),
            HoldError::NeverIdle { projects, why } => {
                let what = format!("the apps of {projects} cannot be held");
                let (why, hint) = match why {
                    Why::AlwaysLate => (
                        "Argo CD starts an automated sync each time before the window is set"
                            .to_owned(),
                        "find out with `argocd app history` what keeps changing, and try again",
                    ),
                    Why::NeverEnds { app } => (
                        format!(
                            "the automated sync of `{app}` does not end, though it was terminated"
                        ),
                        "see whether Argo CD's application controller is running, and try again",
                    ),
                };
                Explanation::new(Exit::Failed, what, why).hint(hint)
            }
            HoldError::NotStopped { app, source } => Explanation::new(
                Exit::Unreachable,
                format!("the automated sync of `{app}` cannot be stopped"),
                source.to_string(),
            ),
            HoldError::Request(error) => error.explain(),
        }
    }
}
