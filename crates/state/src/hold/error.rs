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
                format!("something keeps changing the hold in the AppProject `{project}`"),
                format!("it was {change} after Tiphys had set it again {LIMIT} times"),
            )
            .hint(
                "stop what changes spec.syncWindows of the project, then run the same command \
                 again; if the project is managed in Git, add ignoreDifferences for \
                 /spec/syncWindows to its Application",
            ),
            HoldError::Window { project, source } => Explanation::new(
                Exit::Configuration,
                format!("the AppProject `{project}` has an invalid sync window"),
                source.to_string(),
            )
            .hint("correct or remove the window: Argo CD syncs nothing that it matches"),
            HoldError::NeverIdle { projects, why } => {
                let what = format!("cannot hold the apps of {projects}");
                let (why, hint) = match why {
                    Why::AlwaysLate => (
                        "each time, Argo CD started an automated sync before the window was set"
                            .to_owned(),
                        "find out with `argocd app history` what keeps changing, then try again",
                    ),
                    Why::NeverEnds { app } => (
                        format!(
                            "the automated sync of `{app}` does not end, although Tiphys \
                             terminated it"
                        ),
                        "check that Argo CD's application controller is running, then try again",
                    ),
                };
                Explanation::new(Exit::Failed, what, why).hint(hint)
            }
            HoldError::NotStopped { app, source } => Explanation::new(
                Exit::Unreachable,
                format!("cannot stop the automated sync of `{app}`"),
                source.to_string(),
            ),
            HoldError::Request(error) => error.explain(),
        }
    }
}
