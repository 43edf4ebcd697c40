//! Arguments of `tiphys teardown`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueHint};
use tiphys_engine::{ForcedFinalizer, Others};

use super::{ClusterArgs, DeployedArgs, GivenScope, RunFormat, parse_duration};

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct TeardownArgs {
    #[command(flatten)]
    pub(crate) platform: DeployedArgs,
    /// What to remove: `platform`, `stack:NAME` or `app:NAME`
    #[arg(long, value_name = "SCOPE", default_value = "platform")]
    pub(crate) scope: GivenScope,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Remove what depends on the scope as well, instead of refusing
    #[arg(long)]
    pub(crate) with_dependents: bool,
    /// Set the platform's volumes to Retain first, so that their data stays
    #[arg(long)]
    pub(crate) retain_volumes: bool,
    /// Leave projects, accounts and rights as `configure` has set them up
    #[arg(long)]
    pub(crate) keep_primitives: bool,
    /// Remove what is left over in the end; asks first
    #[arg(long)]
    pub(crate) clean_leftovers: bool,
    /// Do not ask; needed where there is no terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show what would go and what would stay, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take along what is somebody else's: all of a kind, or all in a namespace; may be given
    /// several times
    ///
    /// As `Certificate`, `certificates.cert-manager.io` or `team-a`. What is to be kept stays.
    #[arg(long, value_name = "KIND|NAMESPACE")]
    pub(crate) including_others: Vec<Others>,
    /// Remove the finalizers of an object that is being deleted; may be given several times
    ///
    /// Whoever should have removed them will not clean up then.
    #[arg(long, value_name = "KIND/NAMESPACE/NAME")]
    pub(crate) force_finalizer: Vec<ForcedFinalizer>,
    /// The run's own deadline, such as `90m` [default: the platform's]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Write the events to a file as well, one line of JSON each
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    /// How to print the run
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: RunFormat,
}
