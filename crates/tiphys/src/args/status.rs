//! Arguments of what looks at a platform: `validate`, `status` and `why`.

use clap::Args as ClapArgs;
use clap_complete::ArgValueCompleter;

use super::{ClusterArgs, DeployedArgs, DocumentFormat, ReportArgs, ScopeArgs};
use crate::completer;

/// Which platform, on which cluster.
#[derive(Debug, ClapArgs)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    pub(crate) platform: DeployedArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: DocumentFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Watch for changes
    ///
    /// A terminal is redrawn; otherwise each change is one line.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    /// The app
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completer::apps))]
    pub(crate) app: String,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}
