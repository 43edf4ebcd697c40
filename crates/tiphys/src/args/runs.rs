//! Arguments of `runs`, `attach` and `cancel`.

use clap::Args as ClapArgs;
use tiphys_model::PlatformName;

use super::{ClusterArgs, DocumentFormat, RunFormat};

#[derive(Debug, ClapArgs)]
pub(crate) struct RunsArgs {
    /// Only runs of this platform
    #[arg(long = "platform", value_name = "NAME", value_parser = PlatformName::parse)]
    pub(crate) name: Option<PlatformName>,
    /// Argo CD's namespace
    #[arg(short, long, value_name = "NAMESPACE", default_value = "argocd")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: DocumentFormat,
}

/// Which run.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// A run that `tiphys runs` lists, or a workflow
    #[arg(value_name = "RUN")]
    pub(crate) name: String,
    /// Argo CD's namespace
    #[arg(short, long, value_name = "NAMESPACE", default_value = "argocd")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: RunFormat,
}
