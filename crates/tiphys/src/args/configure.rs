//! Arguments of `tiphys configure`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum, ValueHint};

use super::ClusterArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigureArgs {
    /// The platform: a file or a directory of files
    #[arg(
        short, long, value_name = "PLATFORM", default_value = "./platform.yaml",
        value_hint = ValueHint::AnyPath
    )]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How to print the objects
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ObjectsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectsFormat {
    /// For people
    Text,
    /// A list with kind, name, namespace and result of each
    Json,
}
