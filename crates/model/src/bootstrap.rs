//! What a platform stands on, and how it gets into a cluster.

mod mirror;

use std::fmt;
use std::time::Duration;

pub use mirror::Mirror;

use crate::namespaces::SYSTEM_NAMESPACE;

/// The primitives of a platform: pinned, and installed by Phase 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    pub installer: Installer,
    /// Several replicas of what can have them.
    pub high_availability: bool,
    /// How long each primitive may take to be ready.
    pub timeout: Duration,
    /// In the order in which they are installed; Argo CD is the first.
    pub primitives: Vec<Primitive>,
    /// Where images come from instead, in the order given: the first that fits counts.
    pub images: Vec<Mirror>,
    pub endpoints: Endpoints,
}

/// What bootstraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Installer {
    #[default]
    Native,
    Ansible,
}

impl Installer {
    pub const ALL: [Installer; 2] = [Installer::Native, Installer::Ansible];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Installer::Native => "native",
            Installer::Ansible => "ansible",
        }
    }
}

/// One program that the platform stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Primitive {
    pub name: PrimitiveName,
    pub version: String,
    pub namespace: String,
    pub manifests: Manifests,
    /// What the manifests must be, byte for byte.
    pub checksum: Checksum,
    /// A file of partial objects that are laid over the manifests.
    pub patches: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrimitiveName {
    ArgoCd,
    Workflows,
    Events,
    /// Our own chart: templates for workflows.
    Tiphys,
}

impl PrimitiveName {
    pub const ALL: [PrimitiveName; 4] = [
        PrimitiveName::ArgoCd,
        PrimitiveName::Workflows,
        PrimitiveName::Events,
        PrimitiveName::Tiphys,
    ];

    /// As in the platform file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PrimitiveName::ArgoCd => "argocd",
            PrimitiveName::Workflows => "workflows",
            PrimitiveName::Events => "events",
            PrimitiveName::Tiphys => "tiphys",
        }
    }

    /// As its makers call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            PrimitiveName::ArgoCd => "Argo CD",
            PrimitiveName::Workflows => "Argo Workflows",
            PrimitiveName::Events => "Argo Events",
            PrimitiveName::Tiphys => "the Tiphys chart",
        }
    }

    /// The namespace that upstream's own manifests are written for. Ours is not the one that runs
    /// are in: that belongs to the platforms that share it.
    #[must_use]
    pub fn namespace(self) -> &'static str {
        match self {
            PrimitiveName::ArgoCd => "argocd",
            PrimitiveName::Workflows => "argo",
            PrimitiveName::Events => "argo-events",
            PrimitiveName::Tiphys => SYSTEM_NAMESPACE,
        }
    }
}

/// How long a finished node waits for the workflow controller to see it: the variable, and what it is
/// set to. Upstream's default is ten seconds.
pub const REQUEUE_TIME: (&str, &str) = ("DEFAULT_REQUEUE_TIME", "1s");

/// Where manifests are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifests {
    /// A file, seen from the platform file.
    Path(String),
    /// Over HTTPS.
    Url(String),
    /// The one layer of an artifact, `REGISTRY/REPOSITORY:TAG` or `…@DIGEST`.
    Oci(String),
    Chart(Chart),
}

impl fmt::Display for Manifests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Manifests::Path(place) | Manifests::Url(place) => f.write_str(place),
            Manifests::Oci(place) => write!(f, "oci://{place}"),
            Manifests::Chart(chart) => {
                write!(f, "the chart {} {} from {}", chart.name, chart.version, chart.repository)
            }
        }
    }
}

/// What `helm template` makes of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    pub repository: String,
    pub name: String,
    pub version: String,
    /// A file of values, seen from the platform file.
    pub values: Option<String>,
}

/// A SHA-256 in 64 small hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum(String);

impl Checksum {
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        (text.len() == 64 && text.chars().all(digit)).then(|| Checksum(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the cluster must be able to reach, beside the Git repository of `spec.source`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Endpoints {
    /// Container registries: `HOST` or `HOST:PORT`.
    pub registries: Vec<String>,
    /// Helm repositories, by URL.
    pub charts: Vec<String>,
}
