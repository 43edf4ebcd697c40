//! Arguments of `tiphys teardown`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueHint};
use tiphys_engine::{ForcedFinalizer, Others};

use super::{ClusterArgs, DeployedArgs, ReportArgs, RunFormat, ScopeArgs, parse_duration};

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct TeardownArgs {
    #[command(flatten)]
    pub(crate) platform: DeployedArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Also remove apps that depend on the scope, instead of refusing
    #[arg(long)]
    pub(crate) with_dependents: bool,
    /// Set the platform's volumes to Retain first, to keep their data
    #[arg(long)]
    pub(crate) retain_volumes: bool,
    /// Keep projects, accounts, roles and primitives
    #[arg(long)]
    pub(crate) keep_primitives: bool,
    /// Remove leftovers at the end, after asking
    #[arg(long)]
    pub(crate) clean_leftovers: bool,
    /// Do not ask for confirmation; required without a terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show what would be removed and what would stay; changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also remove objects that do not belong to the platform: all of a kind, or all in a
    /// namespace; repeatable
    ///
    /// Such as `Certificate`, `certificates.cert-manager.io` or `team-a`. Objects marked to be kept
    /// stay.
    #[arg(long, value_name = "KIND|NAMESPACE")]
    pub(crate) including_others: Vec<Others>,
    /// Remove the finalizers of an object that is being deleted; repeatable
    ///
    /// The controller behind the finalizer will not clean up.
    #[arg(long, value_name = "KIND/NAMESPACE/NAME")]
    pub(crate) force_finalizer: Vec<ForcedFinalizer>,
    /// Deadline of the run, such as `90m` [default: the platform's `timeout`]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Also write the events to a file, one JSON object per line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: RunFormat,
}
