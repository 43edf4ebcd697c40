//! Arguments of `triggers`.

use clap::{Args as ClapArgs, Subcommand};

use super::{ClusterArgs, DeployedArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct TriggersArgs {
    #[command(subcommand)]
    pub(crate) action: TriggersAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TriggersAction {
    /// Call the webhook of a push trigger as the Git server would, and follow the call
    ///
    /// It leads to a refresh of the root app, and to a deployment only if Git has a new commit.
    /// Exits with 1 if the call does not arrive, and says how far it came.
    Test(TriggersTestArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TriggersTestArgs {
    /// The trigger
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    #[command(flatten)]
    pub(crate) platform: DeployedArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}
