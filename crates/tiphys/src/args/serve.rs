//! Arguments of `serve`.

use clap::Args as ClapArgs;

use super::{ClusterArgs, RunFormat};

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Deploy what Git has
    #[arg(long, required = true)]
    pub(crate) deploy: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: RunFormat,
}
