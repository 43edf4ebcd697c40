//! Why a run could not go on.

use tiphys_argocd::application::Unreadable;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_argocd::watch::WatchError;
use tiphys_model::{Exit, Explain, Explanation};
use tiphys_run::Illegal;

use tiphys_state::hold::HoldError;
use tiphys_state::lease::LeaseError;
use tiphys_workflows::NodesError;

/// How Kubernetes names a ServiceAccount that it refuses something.
const OF_KUBERNETES: &str = "User \"system:serviceaccount:";

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
    /// The nodes ended before their run.
    NodesEnded,
    Nodes(#[from] NodesError),
    Hold(#[from] HoldError),
    Lease(#[from] LeaseError),
}

impl Explain for RunError {
    fn explain(&self) -> Explanation {
        match self {
            RunError::Denied { doing, app, refusal, source } => {
                let what = format!("Argo CD does not allow this account to {doing} `{app}`");
                let told = Explanation::new(Exit::Credentials, what, source.to_string());
                told.hint(match refusal {
                    Refusal::Unauthenticated => "run `tiphys configure` to create a new token",
                    // Kubernetes has refused it to Argo CD, which passes that on.
                    _ if source.to_string().contains(OF_KUBERNETES) => {
                        "give Argo CD's own ServiceAccount a Role with this right in that namespace"
                    }
                    _ => "run `tiphys configure` to give the account its rights",
                })
            }
            RunError::Unreadable { app, source } => Explanation::new(
                Exit::Failed,
                format!("cannot evaluate the Application `{app}`"),
                source.to_string(),
            ),
            RunError::Illegal(illegal) => Explanation::new(
                Exit::Failed,
                "internal error: the run is in an inconsistent state and was stopped",
                illegal.to_string(),
            )
            .hint("this is a bug in Tiphys: please report it with the command that you ran"),
            RunError::WatchEnded => Explanation::new(
                Exit::Failed,
                "the watch on Applications ended",
                "it must not end during a run",
            ),
            RunError::NodesEnded => Explanation::new(
                Exit::Failed,
                "the workflow with the nodes of the run was left",
                "it must be followed until the run ends",
            ),
            RunError::Nodes(error) => error.explain(),
            RunError::Watch(error) => error.explain(),
            RunError::Hold(error) => error.explain(),
            RunError::Lease(error) => error.explain(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_right_is_missing_is_told() {
        let next = |message: &str| {
            let source =
                CallError::Refused { refusal: Refusal::Forbidden, message: message.to_owned() };
            let (doing, app) = ("sync", "a".to_owned());
            let denied = RunError::Denied { doing, app, refusal: Refusal::Forbidden, source };
            denied.explain().next.unwrap()
        };
        assert_eq!(
            next("permission denied: applications, sync"),
            "run `tiphys configure` to give the account its rights"
        );
        let argocd = "applications.argoproj.io \"a\" is forbidden: User \
                      \"system:serviceaccount:argocd:argocd-server\" cannot update resource";
        assert!(next(argocd).starts_with("give Argo CD's own ServiceAccount a Role"));
    }
}
