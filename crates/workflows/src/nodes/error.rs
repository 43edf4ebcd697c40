//! Why a run with nodes cannot go on.

use tiphys_cluster::RequestError;
use tiphys_model::{Exit, Explain, Explanation};

use super::compile::TooLarge;

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum NodesError {
    TooLarge(#[from] TooLarge),
    /// Every new workflow ends before its apps have.
    EndsAgainAndAgain {
        name: String,
        message: String,
    },
    Request(#[from] RequestError),
}

impl Explain for NodesError {
    fn explain(&self) -> Explanation {
        match self {
            NodesError::TooLarge(error) => error.explain(),
            NodesError::EndsAgainAndAgain { name, message } => Explanation::new(
                Exit::Failed,
                format!("the workflow {name} ended before the run, and so did those before it"),
                message.clone(),
            )
            .hint(
                "check that the image of the chart can be pulled and that `tiphys configure` has run \
                 since `workflows: nodes` is in the platform file",
            ),
            NodesError::Request(error) => error.explain(),
        }
    }
}
