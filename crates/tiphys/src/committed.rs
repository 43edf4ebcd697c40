//! Whether a platform file is what Git has: who deploys should deploy what others can see.

use tiphys_model::{Exit, Explain, Explanation};

/// A platform file that is not what is deployed, as far as anybody can tell.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub(crate) enum CommittedError {
    Differs {
        file: String,
        revision: String,
    },
    /// Git has another one by now.
    Moved {
        revision: String,
    },
}

impl Explain for CommittedError {
    fn explain(&self) -> Explanation {
        match self {
            CommittedError::Differs { file, revision } => Explanation::new(
                Exit::Configuration,
                "the platform file differs from Git",
                format!("{file} differs from the one in the root app at {revision}"),
            )
            .hint("commit and push it, check the commit out, or use --allow-uncommitted"),
            CommittedError::Moved { revision } => Explanation::new(
                Exit::Configuration,
                "the platform file has just changed in Git",
                format!("the root app has another one at {revision}"),
            )
            .hint("run the same command again"),
        }
    }
}
