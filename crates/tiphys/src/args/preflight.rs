//! Arguments of `tiphys preflight`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum, ValueHint};
use tiphys_cluster::mounted;

use super::ClusterArgs;

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
    /// The folder of credentials, with `git`, `registry` and `dns` in it
    #[arg(
        long, value_name = "DIR", default_value = mounted::FOLDER, value_hint = ValueHint::DirPath
    )]
    pub(crate) credentials: PathBuf,
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
