//! Why a run could not go on.

use tiphys_argocd::application::Unreadable;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_argocd::watch::WatchError;
use tiphys_model::{Exit, Explain, Explanation};
use tiphys_run::Illegal;

use tiphys_state::hold::HoldError;
use tiphys_state::lease::LeaseError;

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum RunError {
    /// Argo CD does not accept the token, or the account lacks a right: no other app would fare
    /// better.
    Denied {
        doing: &'static str,
        app: String,
        refusal: Refusal,
        source: CallError,
    },
    Unreadable {
        app: String,
        source: Unreadable,
    },
    /// A mistake in Tiphys.
    Illegal(#[from] Illegal),
    WatchEnded,
    Watch(#[from] WatchError),
    Hold(#[from] HoldError),
    Lease(#[from] LeaseError),
}

impl Explain for RunError {
    fn explain(&self) -> Explanation {
        match self {
            RunError::Denied { doing, app, refusal, source } => {
                let what = format!("Argo CD does not let this account {doing} `{app}`");
                let told = Explanation::new(Exit::Credentials, what, source.to_string());
                match refusal {
                    Refusal::Unauthenticated => told.hint("`tiphys configure` makes a new token"),
                    _ => told.hint("`tiphys configure` gives the account its rights"),
                }
            }
            RunError::Unreadable { app, source } => Explanation::new(
                Exit::Failed,
                format!("the Application `{app}` cannot be judged"),
                source.to_string(),
            ),
            RunError::Illegal(illegal) => Explanation::new(
                Exit::Failed,
                "the run contradicts itself, so it was stopped",
                illegal.to_string(),
            )
            .hint("this is a mistake in Tiphys: please report it with the command"),
            RunError::WatchEnded => Explanation::new(
                Exit::Failed,
                "the watch on Applications has ended",
                "it should never",
            ),
            RunError::Watch(error) => error.explain(),
            RunError::Hold(error) => error.explain(),
            RunError::Lease(error) => error.explain(),
        }
    }
}
