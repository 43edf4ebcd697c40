//! Which platform an action is about.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};
use tiphys_model::{Platform, PlatformName};

use super::{ClusterArgs, NamedArgs, ScopeArgs};
use crate::failure::Failure;
use crate::{git, input};

/// Which platform, for actions that need no cluster.
#[derive(Debug, ClapArgs)]
pub(crate) struct PlatformArgs {
    /// Platform file, directory of files, or `-` for stdin [default: ./platform.yaml if it exists,
    /// otherwise the bundled reference platform]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    /// Read apps and dependencies from the Application manifests in DIR (`-` for stdin) instead of
    /// a platform file
    ///
    /// Dependencies are read from annotations: `tiphys.dev/depends-on: "a,b?"` (`?` means
    /// optional), `tiphys.dev/stack`, `tiphys.dev/type`. Subdirectories are read, too.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "name"], value_hint = ValueHint::DirPath)]
    pub(crate) from_applications: Option<PathBuf>,
    /// Turn sync waves into dependencies: each app depends on all apps of the previous wave
    ///
    /// The wave is the Application's annotation `argocd.argoproj.io/sync-wave`, or 0.
    /// `tiphys init` prints the result as a platform file.
    // Without the conflict, clap does not miss `--from-applications` where there is `-f`.
    #[arg(long, requires = "from_applications", conflicts_with = "file")]
    pub(crate) edges_from_waves: bool,
    #[command(flatten)]
    pub(crate) named: NamedArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

impl PlatformArgs {
    pub(crate) fn read(&self) -> Result<Platform, Failure> {
        match (&self.from_applications, &self.named.name) {
            (Some(directory), _) => {
                let waves = input::sync_waves(self.edges_from_waves);
                input::platform_from_applications(directory, waves)
            }
            (None, Some(name)) => {
                Ok(git::platform(&self.cluster.access(), &self.named.namespace, name)?.platform)
            }
            (None, None) => input::platform(self.file.as_deref()),
        }
    }
}

/// The same where a platform of one's own is needed.
#[derive(Debug, ClapArgs)]
pub(crate) struct OwnPlatformArgs {
    /// Platform file, directory of files, or `-` for stdin [default: ./platform.yaml]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) named: NamedArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

impl OwnPlatformArgs {
    /// As arguments of a command to run again.
    pub(crate) fn repeat(&self) -> String {
        let file = self.file.iter().map(|file| format!(" -f {}", file.display()));
        file.chain(self.named.repeat()).chain(self.scope.repeat()).collect()
    }
}

/// Which platform, for actions that can read it from the cluster.
#[derive(Debug, ClapArgs)]
pub(crate) struct DeployedArgs {
    /// Platform file, directory of files, or `-` for stdin [default: ./platform.yaml if it exists,
    /// otherwise the platform deployed in the cluster]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    /// Name of a platform deployed in the cluster; needed if there are several
    #[arg(long = "platform", value_name = "NAME", conflicts_with = "file", value_parser = PlatformName::parse)]
    pub(crate) name: Option<PlatformName>,
    /// Argo CD's namespace, if there is no platform file
    #[arg(short, long, value_name = "NAMESPACE", default_value = "argocd")]
    pub(crate) namespace: String,
}

impl DeployedArgs {
    /// As arguments of a command to run again.
    pub(crate) fn repeat(&self) -> String {
        let file = self.file.iter().map(|file| format!(" -f {}", file.display()));
        file.chain(self.name.iter().map(|name| format!(" --platform {name}"))).collect()
    }
}
