//! Arguments of `pause` and `resume`.

use clap::Args as ClapArgs;
use tiphys_model::PlatformName;

use super::ClusterArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    pub(crate) which: ResumeArgs,
    /// Why, for everybody who looks at the status
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Which platform.
#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// The platform
    #[arg(value_name = "PLATFORM", value_parser = PlatformName::parse)]
    pub(crate) platform: PlatformName,
    /// Argo CD's namespace
    #[arg(short, long, value_name = "NAMESPACE", default_value = "argocd")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}
