//! Why the deployed graph cannot be used.

use std::io;

use tiphys_cluster::RequestError;
use tiphys_cluster::names::PLATFORM_LABEL;
use tiphys_model::{Exit, Explain, Explanation, PlatformName};

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum GraphError {
    /// What is in the ConfigMap is not a graph.
    Unreadable {
        map: String,
        source: io::Error,
    },
    /// The ConfigMap does not say that it is the platform's.
    Foreign {
        map: String,
        platform: String,
        /// Whose it says to be.
        owner: Option<String>,
    },
    Unwritable(#[source] io::Error),
    /// It does not fit into its ConfigMaps.
    TooLarge {
        bytes: usize,
    },
    /// Its edges go round, whichever run's are taken.
    Circle {
        platform: PlatformName,
        apps: Vec<String>,
    },
    /// It has values that no version of Tiphys writes.
    Garbled {
        platform: PlatformName,
    },
    Request(#[from] RequestError),
}

/// What is said when it cannot be written.
pub(super) const NOT_KEPT: &str = "cannot store the deployed graph in the cluster";

impl Explain for GraphError {
    fn explain(&self) -> Explanation {
        let unusable = |platform: &PlatformName, why: String| {
            let what = format!("cannot use the deployed graph of the platform `{platform}`");
            Explanation::new(Exit::Failed, what, why).hint("deploy the platform again, then retry")
        };
        match self {
            GraphError::Unreadable { map, source } => Explanation::new(
                Exit::Failed,
                format!("cannot read the deployed graph in the ConfigMap `{map}`"),
                source.to_string(),
            )
            .hint("delete the ConfigMap, then deploy again"),
            GraphError::Foreign { map, platform, owner } => Explanation::new(
                Exit::Configuration,
                format!("the ConfigMap `{map}` does not belong to the platform `{platform}`"),
                match owner {
                    Some(owner) => format!("its label {PLATFORM_LABEL} is `{owner}`"),
                    None => format!("it has no label {PLATFORM_LABEL}"),
                },
            )
            .hint("give the platform another name, or delete the ConfigMap if it is not needed"),
            GraphError::Unwritable(source) => {
                Explanation::new(Exit::Failed, NOT_KEPT, source.to_string())
            }
            GraphError::TooLarge { bytes } => {
                Explanation::new(Exit::Failed, NOT_KEPT, format!("it is too large: {bytes} bytes"))
            }
            GraphError::Circle { platform, apps } => {
                unusable(platform, format!("its dependencies form a cycle: {}", apps.join(" -> ")))
            }
            GraphError::Garbled { platform } => {
                unusable(platform, "it contains values that no version of Tiphys writes".to_owned())
            }
            GraphError::Request(error) => error.explain(),
        }
    }
}
