//! Why nothing can be done with a workflow.

use tiphys_cluster::RequestError;
use tiphys_cluster::names::{NAMESPACE, TEARDOWN_NAMESPACE};
use tiphys_model::{Exit, Explain, Explanation};

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum WorkflowsError {
    /// Argo Workflows is not installed, or the chart is not.
    NotInstalled {
        what: String,
    },
    /// It was there, and is not any more.
    Gone {
        name: String,
    },
    NotFound {
        name: String,
    },
    /// It ended without its container.
    Broken {
        name: String,
        message: String,
    },
    Request(#[from] RequestError),
}

impl Explain for WorkflowsError {
    fn explain(&self) -> Explanation {
        match self {
            WorkflowsError::NotInstalled { what } => Explanation::new(
                Exit::Configuration,
                "this cluster is not set up for runs on Argo Workflows",
                format!("{what} does not exist"),
            )
            .hint("install Argo Workflows and the chart of Tiphys, then run `tiphys configure`"),
            WorkflowsError::Gone { name } => Explanation::new(
                Exit::Failed,
                format!("the workflow {name} was deleted"),
                "it was there before",
            )
            .hint("see `tiphys runs` and `tiphys status`"),
            WorkflowsError::NotFound { name } => Explanation::new(
                Exit::NotFound,
                format!("run `{name}` not found"),
                format!(
                    "neither `{NAMESPACE}` nor `{TEARDOWN_NAMESPACE}` has a workflow of this name, \
                     and no record is called so"
                ),
            )
            .hint("see `tiphys runs`"),
            WorkflowsError::Broken { name, message } => Explanation::new(
                Exit::Failed,
                format!("the workflow {name} did not run"),
                message.clone(),
            )
            .hint(
                "check that the platform is set up (`tiphys configure`) and that the cluster can \
                 pull the image of the chart",
            ),
            WorkflowsError::Request(error) => error.explain(),
        }
    }
}
