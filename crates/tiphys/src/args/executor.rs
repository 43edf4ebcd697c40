//! Arguments of `tiphys executor`.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ExecutorArgs {
    #[command(subcommand)]
    pub(crate) part: Option<ExecutorPart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ExecutorPart {
    /// Answer Argo Workflows about the nodes of a run, in the pod that it makes for them
    Plugin,
}
