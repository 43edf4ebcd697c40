//! Arguments of `tiphys deploy`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum, ValueHint};
use tiphys_workflows::{AgentPod, Owner};

use super::{ClusterArgs, CredentialsArgs, OwnPlatformArgs, ReportArgs, RunFormat, parse_duration};

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub(crate) platform: OwnPlatformArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) credentials: CredentialsArgs,
    /// Where the run executes
    #[arg(long, value_name = "ENGINE", default_value = "local")]
    pub(crate) engine: EngineChoice,
    /// Also deploy the dependencies of the scope, instead of only checking them
    #[arg(long)]
    pub(crate) with_dependencies: bool,
    /// Show what would be synced and why; changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// After the deployment, remove apps that are no longer in the platform file, in reverse order
    #[arg(long)]
    pub(crate) prune: bool,
    /// Deploy even if the platform file differs from the deployed Git commit
    #[arg(long)]
    pub(crate) allow_uncommitted: bool,
    /// Deadline of the run, such as `90m` [default: the platform's `timeout`]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Deploy only if the plan has this digest (at least its first 12 digits)
    #[arg(long, value_name = "DIGEST")]
    pub(crate) plan: Option<String>,
    /// Also write the events to a file, one JSON object per line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: RunFormat,
    /// The workflow that this is a step of; no flag says it.
    #[arg(skip)]
    pub(crate) nodes: Option<NodesGiven>,
    /// No person has asked for it; no flag says it.
    #[arg(skip)]
    pub(crate) unattended: bool,
}

/// What a run needs to know to have a node for each app.
#[derive(Debug, Clone)]
pub(crate) struct NodesGiven {
    pub(crate) owner: Owner,
    pub(crate) pod: AgentPod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    /// In this process
    Local,
    /// In the cluster, on Argo Workflows; with `--platform`
    Workflows,
}
