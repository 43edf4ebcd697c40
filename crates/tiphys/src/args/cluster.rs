//! Which cluster an action is about.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};
use tiphys_cluster::{Access, KubeconfigSource};

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file [default: KUBECONFIG, then ~/.kube/config, then the pod's service account]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// What counts instead of both; no flag says it.
    #[arg(skip)]
    pub(crate) given: Option<KubeconfigSource>,
}

impl ClusterArgs {
    pub(crate) fn access(&self) -> Access {
        let usual = || KubeconfigSource::Usual(self.kubeconfig.clone());
        let kubeconfig = self.given.clone().unwrap_or_else(usual);
        Access { kubeconfig, context: self.context.clone() }
    }
}
