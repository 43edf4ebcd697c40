//! Why the status of a platform cannot be read.

use std::time::Duration;

use tiphys_argocd::application::Unreadable;
use tiphys_argocd::watch::WatchError;
use tiphys_cluster::{Cause, RequestError};
use tiphys_engine::SignalError;
use tiphys_model::{Exit, Explain, Explanation};
use tiphys_state::GraphError;

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum StatusError {
    NoAnswer { within: Duration },
    Unreadable(#[from] Unreadable),
    Signals(#[from] SignalError),
    Watch(#[from] WatchError),
    Graph(#[from] GraphError),
    Request(#[from] RequestError),
}

impl StatusError {
    /// Whether the cluster may be back soon.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            StatusError::NoAnswer { .. } => true,
            StatusError::Watch(error) => error.cause() == Cause::Unreachable,
            StatusError::Request(error) | StatusError::Graph(GraphError::Request(error)) => {
                error.cause() == Cause::Unreachable
            }
            StatusError::Unreadable(_) | StatusError::Signals(_) | StatusError::Graph(_) => false,
        }
    }
}

impl Explain for StatusError {
    fn explain(&self) -> Explanation {
        match self {
            StatusError::NoAnswer { within } => Explanation::new(
                Exit::Unreachable,
                "the cluster does not answer",
                format!("no answer within {} s", within.as_secs()),
            )
            .hint("check that the cluster is up and that the kubeconfig has the right address"),
            StatusError::Unreadable(error) => Explanation::new(
                Exit::Failed,
                format!("cannot assess the Application `{}`", error.app),
                error.to_string(),
            ),
            StatusError::Signals(error) => error.explain(),
            StatusError::Watch(error) => error.explain(),
            StatusError::Graph(error) => error.explain(),
            StatusError::Request(error) => error.explain(),
        }
    }
}
