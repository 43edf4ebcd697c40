//! Arguments of `tiphys preflight`.

use clap::{Args as ClapArgs, ValueEnum};

use super::SetupArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct PreflightArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Check every tool, package, collection and credential, even if this platform does not need it
    #[arg(long)]
    pub(crate) strict: bool,
    /// List checks that do not apply as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: PreflightFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PreflightFormat {
    /// Human-readable
    Table,
    /// One JSON document
    Json,
    /// One test case per check, as JUnit XML
    Junit,
}
