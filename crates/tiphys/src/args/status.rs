//! Arguments of what looks at a platform: `validate`, `status` and `why`.

use clap::Args as ClapArgs;

use super::{ClusterArgs, DeployedArgs, DocumentFormat, GivenScope};

/// Which platform, on which cluster.
#[derive(Debug, ClapArgs)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    pub(crate) platform: DeployedArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How to print it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: DocumentFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,
    /// What to look at: `platform`, `stack:NAME` or `app:NAME`
    #[arg(long, value_name = "SCOPE", default_value = "platform")]
    pub(crate) scope: GivenScope,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,
    /// What to look at: `platform`, `stack:NAME` or `app:NAME`
    #[arg(long, value_name = "SCOPE", default_value = "platform")]
    pub(crate) scope: GivenScope,
    /// Go on looking: a terminal is drawn anew, otherwise each change is a line
    #[arg(short, long)]
    pub(crate) watch: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    /// The app
    #[arg(value_name = "APP")]
    pub(crate) app: String,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}
