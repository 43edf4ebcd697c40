//! What the platform's own objects in the cluster are called, so that who makes them and who
//! reads them cannot disagree.

use sha2::{Digest, Sha256};
pub use tiphys_model::namespaces::{
    EVENTS_NAMESPACE, NAMESPACE, SYSTEM_NAMESPACE, TEARDOWN_NAMESPACE,
};
use tiphys_model::platform::WorkflowMode;
use tiphys_model::{
    DeployMode, Platform, PlatformName, SecretName, Trigger, TriggerAction, TriggerName,
};

/// On everything that we make.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "tiphys");
/// Whose it is, if several platforms live in one Argo CD.
pub const PLATFORM_LABEL: &str = "tiphys.dev/platform";
/// The namespace of the Argo CD that the platform lives in, on what is in ours.
pub const ARGOCD_LABEL: &str = "tiphys.dev/argocd";
/// On the ConfigMaps by which the deploy loop finds the platforms.
pub const LOOP_LABEL: &str = "tiphys.dev/deploy-loop";
/// The name of the trigger that an object is made for.
pub const TRIGGER_LABEL: &str = "tiphys.dev/trigger";
/// On what a Sensor notes changes in that have the platform validated, and there, as an annotation, what
/// is validated.
pub const VALIDATES_LABEL: &str = "tiphys.dev/validates";
pub const SCOPE_ANNOTATION: &str = "tiphys.dev/scope";
/// The keys of what Sensors note: when the last event came, and which it was.
pub const NOTED_TIME: &str = "last";
pub const NOTED_EVENT: &str = "call";
/// Which primitive an object of Phase 1 is a part of.
pub const PRIMITIVE_LABEL: &str = "tiphys.dev/primitive";
/// The platform that a primitive was installed for, and with which it goes.
pub const INSTALLED_FOR: &str = "tiphys.dev/installed-for";
/// Who is named as the manager of the fields that we write.
pub const FIELD_MANAGER: &str = "tiphys";
/// The same for what Phase 1 installs: objects that `configure` adds to have two owners.
pub const BOOTSTRAP_MANAGER: &str = "tiphys.bootstrap";
/// How the description of a hold begins: a sync window of ours in an AppProject.
pub const HOLD: &str = "tiphys hold";
/// How many ConfigMaps a bank of the deployed graph has: a Role has to name them all.
const BANK_SIZE: usize = 3;

/// The platform's Lease and first ConfigMap.
#[must_use]
pub fn own(platform: &Platform) -> String {
    of(&platform.name)
}

/// The same for a platform of which nothing else is known.
#[must_use]
pub fn of(platform: &PlatformName) -> String {
    format!("tiphys-{platform}")
}

/// The ConfigMaps of a platform's deployed graph. A graph that does not fit into the first one goes
/// on in one of two banks, so that a new graph can be written beside the one that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNames {
    pub first: String,
    pub banks: [Vec<String>; 2],
}

impl GraphNames {
    /// All names that are ever used.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let banked = self.banks.iter().flatten();
        std::iter::once(&self.first).chain(banked).map(String::as_str)
    }
}

/// A platform's name has no dot, so no name of a bank is the first name of another platform.
#[must_use]
pub fn graph(platform: &PlatformName) -> GraphNames {
    let first = of(platform);
    let bank = |bank: &str| (1..=BANK_SIZE).map(|at| format!("{first}.{bank}{at}")).collect();
    GraphNames { banks: [bank("a"), bank("b")], first }
}

#[must_use]
pub fn root_application(platform: &Platform) -> String {
    root_of(&platform.name)
}

/// The same for a platform of which nothing else is known.
#[must_use]
pub fn root_of(platform: &PlatformName) -> String {
    format!("{platform}-root")
}

/// The Secret with which Argo CD logs in to the platform's repository.
#[must_use]
pub fn repository(platform: &Platform) -> String {
    format!("{}-repository", own(platform))
}

/// The Secret with the password of Argo CD's `admin`, where it was set by us.
#[must_use]
pub fn admin(platform: &Platform) -> String {
    format!("{}-admin", own(platform))
}

/// The ValidatingAdmissionPolicy that lets runs change nothing of a project but their hold, and its
/// binding.
#[must_use]
pub fn hold_policy(platform: &Platform) -> String {
    cluster_wide(platform, "hold")
}

/// The one that lets the account that deploys change nothing of an ApplicationSet but ask for a
/// refresh.
#[must_use]
pub fn sets_policy(platform: &Platform) -> String {
    cluster_wide(platform, "sets")
}

/// The one that lets the deploy loop change nothing of a root app but ask for a refresh.
#[must_use]
pub fn loop_policy(platform: &Platform) -> String {
    cluster_wide(platform, "loop")
}

/// What the root app shows of automatic deployments: the outcome, the revision that it is about, and the
/// outcome in words.
pub const OUTCOME: &str = "tiphys.dev/deployment";
pub const OUTCOME_REVISION: &str = "tiphys.dev/deployment-revision";
pub const OUTCOME_MESSAGE: &str = "tiphys.dev/deployment-message";

/// The ConfigMap with the platform file, where the root app does not have it.
#[must_use]
pub fn stored_file(argocd: &str, platform: &PlatformName) -> String {
    format!("tiphys.{argocd}.{platform}.file")
}

/// What is kept of deployments without a person: a ConfigMap.
#[must_use]
pub fn deploy_loop(argocd: &str, platform: &PlatformName) -> String {
    format!("tiphys.{argocd}.{platform}.deploy-loop")
}

/// The Secret, in the namespace of the chart, with which the deploy loop sets commit statuses.
#[must_use]
pub fn commit_status(argocd: &str, platform: &PlatformName) -> String {
    format!("tiphys.{argocd}.{platform}.commit-status")
}

/// Its keys: what the loop shows to the Git server, and the certificates that the server is known by.
pub const STATUS_TOKEN: &str = "token";
pub const STATUS_AUTHORITY: &str = "ca.crt";

/// The CronWorkflow of a trigger. Argo Workflows makes names of workflows, pods and hosts out of this
/// one, so it is short and has no dots; digits tell platforms apart that have the same beginning.
#[must_use]
pub fn cron_workflow(platform: &Platform, trigger: &TriggerName) -> String {
    of_trigger(platform, trigger, 24)
}

/// The EventSource of a trigger, and all that belongs to it. Argo Events makes a Service and
/// Deployments out of the name.
#[must_use]
pub fn event_source(platform: &Platform, trigger: &TriggerName) -> String {
    of_trigger(platform, trigger, 20)
}

fn of_trigger(platform: &Platform, trigger: &TriggerName, longest: usize) -> String {
    let (argocd, name) = (&platform.argocd.namespace, platform.name.as_str());
    let start = name[..name.len().min(longest)].trim_end_matches('-');
    let digest = Sha256::digest(format!("{argocd}/{name}/{trigger}"));
    let digits: String = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
    format!("{start}-{trigger}-{}", &digits[..5])
}

/// The Service that a Git server calls.
#[must_use]
pub fn webhook(event_source: &str) -> String {
    format!("{event_source}-eventsource-svc")
}

/// The EventBus between the webhooks and what follows. All platforms share it, and it may be somebody
/// else's.
pub const EVENT_BUS: &str = "tiphys";

/// Whether deployments of the platform may start without a person.
#[must_use]
pub fn deploys_unattended(platform: &Platform) -> bool {
    let mut schedules = platform.triggers.iter().filter_map(Trigger::schedule);
    platform.deploy.mode == DeployMode::Automatic
        || schedules.any(|schedule| schedule.action == TriggerAction::Deploy)
}

/// What is not beside its Argo CD has the namespace of that in its name: another Argo CD may have a
/// platform of this name.
fn cluster_wide(platform: &Platform, what: &str) -> String {
    format!("tiphys.{}.{}.{what}", platform.argocd.namespace, platform.name)
}

/// What a token is for. Each purpose has an account of Argo CD's and a Secret of the platform's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Deploy,
    /// Kept apart, so that who may deploy cannot delete.
    Teardown,
}

impl Purpose {
    pub const ALL: [Purpose; 2] = [Purpose::Deploy, Purpose::Teardown];

    /// The account in Argo CD, which all its platforms share.
    #[must_use]
    pub fn account(self) -> &'static str {
        match self {
            Purpose::Deploy => "tiphys",
            Purpose::Teardown => "tiphys-teardown",
        }
    }

    /// The Secret that `configure` makes: how Argo CD is reached, and a token, unless the platform file
    /// names another Secret for it.
    #[must_use]
    pub fn secret(self, platform: &Platform) -> String {
        format!("{}-{self}", own(platform))
    }

    /// The Secret that the platform file names for the token. Whoever hands out tokens for deployments
    /// need not hand out one that deletes.
    #[must_use]
    pub fn given_token_secret(self, platform: &Platform) -> Option<&SecretName> {
        match self {
            Purpose::Deploy => platform.argocd.server.token_secret.as_ref(),
            Purpose::Teardown => None,
        }
    }

    /// The role in Argo CD's policy.
    #[must_use]
    pub fn role(self, platform: &Platform) -> String {
        format!("role:{}-{self}", own(platform))
    }
}

impl std::fmt::Display for Purpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Purpose::Deploy => "deploy",
            Purpose::Teardown => "teardown",
        })
    }
}

/// Who does something inside the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    Deploy,
    Validate,
    Teardown,
    /// Has the others work, by submitting workflows.
    Submit,
    /// Keeps the nodes of a run open; only where the platform wants nodes.
    Nodes,
    /// Starts deployments when Git has news; only where the platform wants that. One process does it for
    /// all platforms, so the chart makes its ServiceAccount, and each platform gives it rights.
    Loop,
    /// Has Argo CD look at Git when somebody has pushed; only where the platform has such triggers.
    Events,
}

/// The ServiceAccount of the deploy loop. The chart names it, too.
const LOOP_ACCOUNT: &str = "tiphys-serve";

impl Account {
    pub const ALL: [Account; 7] = [
        Account::Deploy,
        Account::Validate,
        Account::Teardown,
        Account::Submit,
        Account::Nodes,
        Account::Loop,
        Account::Events,
    ];

    /// All of its roles and bindings.
    #[must_use]
    pub fn name(self, platform: &Platform) -> String {
        cluster_wide(platform, self.as_str())
    }

    /// The ServiceAccount.
    #[must_use]
    pub fn service_account(self, platform: &Platform) -> String {
        match self {
            Account::Loop => LOOP_ACCOUNT.to_owned(),
            Account::Deploy
            | Account::Validate
            | Account::Teardown
            | Account::Submit
            | Account::Nodes
            | Account::Events => self.name(platform),
        }
    }

    /// Whether the ServiceAccount is the platform's own.
    #[must_use]
    pub fn is_the_platforms(self) -> bool {
        self != Account::Loop
    }

    /// Where it is.
    #[must_use]
    pub fn namespace(self) -> &'static str {
        match self {
            Account::Deploy | Account::Validate | Account::Submit | Account::Nodes => NAMESPACE,
            Account::Teardown => TEARDOWN_NAMESPACE,
            Account::Loop => SYSTEM_NAMESPACE,
            Account::Events => EVENTS_NAMESPACE,
        }
    }

    /// Whether the platform has this account.
    #[must_use]
    pub fn is_wanted(self, platform: &Platform) -> bool {
        match self {
            Account::Deploy | Account::Validate | Account::Teardown | Account::Submit => true,
            Account::Nodes => platform.workflows == WorkflowMode::Nodes,
            Account::Loop => {
                let validates = |trigger: &Trigger| trigger.resource().is_some();
                platform.deploy.mode == DeployMode::Automatic
                    || platform.triggers.iter().any(validates)
            }
            Account::Events => platform.triggers.iter().any(Trigger::needs_events),
        }
    }

    /// As the API server calls it.
    #[must_use]
    pub fn user(self, platform: &Platform) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace(), self.service_account(platform))
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Account::Deploy => "deploy",
            Account::Validate => "validate",
            Account::Teardown => "teardown",
            Account::Submit => "submit",
            Account::Nodes => "nodes",
            Account::Loop => "loop",
            Account::Events => "events",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_config_map_of_a_graph_is_that_of_another_platform() {
        let ends = ["", "-1", "-a1", "-a", "a1", "-b-1", "-1-1"];
        let graphs = ends.map(|end| graph(&PlatformName::parse(&format!("prod{end}")).unwrap()));
        let names: Vec<&str> = graphs.iter().flat_map(GraphNames::all).collect();
        let different: std::collections::BTreeSet<&&str> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        for banked in graphs.iter().flat_map(|graph| graph.banks.iter().flatten()) {
            let platform = banked.strip_prefix("tiphys-").unwrap();
            assert!(PlatformName::parse(platform).is_err(), "{banked} could be a first name");
        }
    }
}
