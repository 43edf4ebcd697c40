//! Arguments of `tiphys preflight`.

use clap::{Args as ClapArgs, ValueEnum};

use super::SetupArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct PreflightArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
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
