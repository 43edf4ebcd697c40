//! The platform: what one platform file (or directory) describes, checked and resolved.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api_server::ApiServer;
use crate::bootstrap::Bootstrap;
use crate::criterion::Criterion;
use crate::deploy_policy::DeployPolicy;
use crate::graph::{AppIx, Graph};
use crate::name::{AppName, GroupName, NamespaceName, PlatformName, StackName};
use crate::trigger::Trigger;

/// Everything one platform file describes. Apps are sorted by name, and `graph` speaks of
/// positions in that order, so equal platforms are equal values however their files are sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    pub name: PlatformName,
    pub environment: Option<Environment>,
    pub source: Option<Source>,
    pub argocd: ArgoCd,
    /// Not given where Argo CD is somebody else's.
    pub bootstrap: Option<Bootstrap>,
    pub policies: Policies,
    pub teardown: TeardownPolicy,
    pub workflows: WorkflowMode,
    pub deploy: DeployPolicy,
    pub triggers: Vec<Trigger>,
    pub apps: Vec<App>,
    pub graph: Graph,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    pub name: String,
    pub domain: Option<String>,
}

/// The source of the root app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub repo_url: String,
    pub target_revision: String,
    pub path: String,
    pub tool: SourceTool,
}

/// What makes manifests of the root app's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceTool {
    /// Helm, which gets the revision as a parameter, so that it can pin what it renders.
    #[default]
    Chart,
    /// Nothing, or what Argo CD finds there: it is a folder of manifests.
    Directory { recurse: bool },
}

/// Where the platform's Applications live in Argo CD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgoCd {
    pub namespace: String,
    /// Other namespaces where Applications of the platform may be, each once. Argo CD watches them,
    /// too: its `application.namespaces`.
    pub application_namespaces: Vec<NamespaceName>,
    /// The AppProjects of the apps; at least one. Others may have Applications there too.
    pub projects: Vec<String>,
    pub root_project: String,
    /// A root app creates the Applications. Without it, somebody else does.
    pub has_root_app: bool,
    pub access: ArgoCdAccess,
    pub server: ApiServer,
    pub allowed: Allowed,
}

impl ArgoCd {
    /// Where Applications of the platform may be, Argo CD's own namespace first.
    pub fn all_namespaces(&self) -> impl Iterator<Item = &str> {
        let others = self.application_namespaces.iter().map(NamespaceName::as_str);
        [self.namespace.as_str()].into_iter().chain(others)
    }

    /// What Argo CD calls an Application on the objects that it applies: by its name, with the
    /// namespace before it if that is not Argo CD's own.
    #[must_use]
    pub fn instance_name(&self, namespace: &str, app: &str) -> String {
        if namespace.is_empty() || namespace == self.namespace {
            app.to_owned()
        } else {
            format!("{namespace}_{app}")
        }
    }

    /// The app that Argo CD means by such a name, if it may be in that namespace. Neither names of
    /// apps nor of namespaces have an underscore in them.
    #[must_use]
    pub fn app_of_instance<'a>(&self, instance: &'a str) -> Option<&'a str> {
        match instance.split_once('_') {
            None => Some(instance),
            Some((namespace, app)) => {
                let known = |other: &NamespaceName| other.as_str() == namespace;
                self.application_namespaces.iter().any(known).then_some(app)
            }
        }
    }

    /// Whether apps of the platform may be in this project.
    #[must_use]
    pub fn has_apps_in(&self, project: &str) -> bool {
        self.projects.iter().any(|ours| ours == project)
    }

    /// Whether apps or generators of the platform may be in this project.
    #[must_use]
    pub fn uses(&self, project: &str) -> bool {
        self.all_projects().any(|ours| ours == project)
    }

    /// The projects of the apps, and that of the root app, if there is one.
    pub fn all_projects(&self) -> impl Iterator<Item = &str> {
        let root = self.has_root_app.then_some(&self.root_project);
        self.projects.iter().chain(root).map(String::as_str)
    }
}

/// What the project of the apps lets them be made of. What is not given is not limited; a list
/// without items allows nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowed {
    /// Repositories; each may be a glob.
    pub sources: Option<Vec<String>>,
    pub destinations: Option<Vec<Destination>>,
    /// Kinds of objects that are in no namespace.
    pub cluster_kinds: Option<Vec<GroupKind>>,
}

/// Where apps may be; each part may be a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub cluster: DestinationCluster,
    pub namespace: String,
}

/// A cluster, as Argo CD knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DestinationCluster {
    Server(String),
    Name(String),
}

/// A kind of Kubernetes objects, of any version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupKind {
    /// Empty for Kubernetes' core.
    pub group: String,
    pub kind: String,
}

/// How a run acts on Argo CD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArgoCdAccess {
    /// Through its API, with a token: Argo CD's own rights decide.
    #[default]
    Api,
    /// Through the fields of Applications, for installations without an API server: Kubernetes'
    /// rights decide.
    Kubernetes,
}

/// The rules of a run that concern the platform as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    pub hold: Hold,
    pub concurrency: NonZeroU32,
    /// Sorted by name.
    pub groups: Vec<Group>,
    /// The run's own deadline.
    pub timeout: Duration,
}

/// The rules of a teardown. They are no part of a plan, so they do not change its digest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TeardownPolicy {
    /// Objects of these kinds go with the platform, whosever they are, unless they are to be kept.
    pub disposable: Vec<GroupKind>,
}

/// What a run on Argo Workflows consists of. No part of a plan: every mode comes to the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkflowMode {
    /// One container, in which the local engine runs.
    #[default]
    Single,
    /// Besides, a workflow with a node for each app, which has a say in when the app starts.
    Nodes,
}

impl WorkflowMode {
    pub const ALL: [WorkflowMode; 2] = [WorkflowMode::Single, WorkflowMode::Nodes];

    /// As platform files write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WorkflowMode::Single => "single",
            WorkflowMode::Nodes => "nodes",
        }
    }
}

/// How long automated sync is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    DuringRun,
    Always,
}

impl Hold {
    /// As platform files write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Hold::DuringRun => "during-run",
            Hold::Always => "always",
        }
    }
}

/// Apps of which only a few may be in progress at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub concurrency: NonZeroU32,
    pub name: GroupName,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    pub name: AppName,
    pub stack: StackName,
    pub app_type: AppType,
    /// Position in [`Policies::groups`].
    pub group: Option<usize>,
    /// How long it typically takes from sync to Healthy; for estimates and start order.
    pub typical: Duration,
    /// Sorted by app; the same edges that the platform's graph has.
    pub dependencies: Vec<Dependency>,
    pub timeouts: Timeouts,
    pub retry: Retry,
    /// `Kind/name` of resources that may stay OutOfSync.
    pub tolerate_drift: Vec<String>,
    pub health: Vec<Criterion>,
}

/// An edge, as seen from the dependant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    pub app: AppIx,
    /// It would have been ignored if that app were not in the platform.
    pub optional: bool,
}

/// What an app is made of, which decides how long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppType {
    #[default]
    Simple,
    Operator,
    CephCluster,
    DatabaseCluster,
    Vault,
}

impl AppType {
    pub const ALL: [AppType; 5] = [
        AppType::Simple,
        AppType::Operator,
        AppType::CephCluster,
        AppType::DatabaseCluster,
        AppType::Vault,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AppType::Simple => "simple",
            AppType::Operator => "operator",
            AppType::CephCluster => "ceph-cluster",
            AppType::DatabaseCluster => "database-cluster",
            AppType::Vault => "vault",
        }
    }

    /// Default for both the sync and the health timeout.
    #[must_use]
    pub fn timeout(self) -> Duration {
        let minutes = match self {
            AppType::Simple => 5,
            AppType::Operator => 10,
            AppType::CephCluster => 30,
            AppType::DatabaseCluster | AppType::Vault => 15,
        };
        Duration::from_secs(minutes * 60)
    }

    /// Default for [`App::typical`].
    #[must_use]
    pub fn typical(self) -> Duration {
        Duration::from_secs(match self {
            AppType::Simple => 60,
            AppType::Operator => 120,
            AppType::CephCluster => 1080,
            AppType::DatabaseCluster | AppType::Vault => 300,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub sync: Duration,
    pub health: Duration,
}

/// What happens after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How often an attempt is repeated: 2 means three attempts.
    pub limit: u32,
    pub backoff: Backoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub duration: Duration,
    pub factor: u32,
    pub max: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Retry { limit: 2, backoff: Backoff::default() }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { duration: Duration::from_secs(10), factor: 2, max: Duration::from_secs(120) }
    }
}
