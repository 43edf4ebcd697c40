//! What the platform's own objects in the cluster are called, so that who makes them and who
//! reads them cannot disagree.

use tiphys_model::{Platform, PlatformName};

/// On everything that we make.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "tiphys");
/// Whose it is, if several platforms live in one Argo CD.
pub const PLATFORM_LABEL: &str = "tiphys.dev/platform";
/// Which primitive an object of Phase 1 is a part of.
pub const PRIMITIVE_LABEL: &str = "tiphys.dev/primitive";
/// The platform that a primitive was installed for, and with which it goes.
pub const INSTALLED_FOR: &str = "tiphys.dev/installed-for";
/// Who is named as the manager of the fields that we write.
pub const FIELD_MANAGER: &str = "tiphys";
/// The same for what Phase 1 installs: objects that `configure` adds to have two owners.
pub const BOOTSTRAP_MANAGER: &str = "tiphys.bootstrap";
/// Into how many ConfigMaps the deployed graph may be split: a Role has to name them all.
pub(crate) const GRAPH_SHARDS: usize = 8;

/// The platform's Lease, ServiceAccount, Role, RoleBinding and first ConfigMap.
#[must_use]
pub fn own(platform: &Platform) -> String {
    of(&platform.name)
}

fn of(platform: &PlatformName) -> String {
    format!("tiphys-{platform}")
}

/// The ConfigMaps that may hold the deployed graph.
#[must_use]
pub fn graph(platform: &PlatformName) -> Vec<String> {
    let name = of(platform);
    let shards = (1..GRAPH_SHARDS).map(|number| format!("{name}-{number}"));
    [name.clone()].into_iter().chain(shards).collect()
}

#[must_use]
pub fn root_application(platform: &Platform) -> String {
    format!("{}-root", platform.name)
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

    /// The Secret with the token.
    #[must_use]
    pub fn secret(self, platform: &Platform) -> String {
        format!("{}-{self}", own(platform))
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
