//! Arguments of `tiphys preflight`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum, ValueHint};

use super::{ClusterArgs, CredentialsArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct PreflightArgs {
    /// The platform: a file or a directory of files
    #[arg(
        short, long, value_name = "PLATFORM", default_value = "./platform.yaml",
        value_hint = ValueHint::AnyPath
    )]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) credentials: CredentialsArgs,
    /// Check every tool, package, collection and credential, needed or not
    #[arg(long)]
    pub(crate) strict: bool,
    /// How to print the report
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: PreflightFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PreflightFormat {
    /// For people
    Table,
    /// One document
    Json,
    /// A test case for each check, in XML
    Junit,
}
