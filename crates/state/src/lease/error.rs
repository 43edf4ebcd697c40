//! Why there is no Lease.

use std::sync::Arc;

use tiphys_cluster::RequestError;
use tiphys_model::{Exit, Explain, Explanation};

/// Why there is no Lease, or none any more.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.explain())]
pub enum LeaseError {
    /// Another run is alive.
    Held {
        name: String,
        holder: String,
    },
    Lost {
        holder: String,
    },
    /// Shared, as it ends whatever is done under the Lease.
    Request(#[source] Arc<RequestError>),
}

impl From<RequestError> for LeaseError {
    fn from(error: RequestError) -> Self {
        LeaseError::Request(Arc::new(error))
    }
}

impl Explain for LeaseError {
    fn explain(&self) -> Explanation {
        match self {
            LeaseError::Held { name, holder } => Explanation::new(
                Exit::Held,
                "another run holds the platform",
                format!("{holder} keeps renewing the Lease `{name}`"),
            )
            .hint("wait until that run ends, or stop it"),
            LeaseError::Lost { holder } => Explanation::new(
                Exit::Held,
                "another run took over the platform, so this one stopped",
                format!("{holder} holds the Lease now"),
            )
            .hint("wait until that run ends (`tiphys status` shows it), then run again"),
            LeaseError::Request(error) => error.explain(),
        }
    }
}
