//! The command line. Doc comments are the help texts.

mod bootstrap;
mod cluster;
mod configure;
mod deploy;
mod executor;
mod format;
mod health;
mod init;
mod named;
mod pause;
mod plan;
mod platform;
mod preflight;
mod rehearse;
mod reports;
mod runs;
mod scope;
mod serve;
mod status;
mod teardown;
mod triggers;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueHint};

pub(crate) use bootstrap::BootstrapArgs;
pub(crate) use cluster::ClusterArgs;
pub(crate) use configure::{ConfigureArgs, CredentialsArgs, RotateArgs, SetupArgs};
pub(crate) use deploy::{DeployArgs, EngineChoice, NodesGiven};
pub(crate) use executor::{ExecutorArgs, ExecutorPart};
pub(crate) use format::{DocumentFormat, RunFormat};
pub(crate) use health::{HealthAction, HealthArgs, HealthTestArgs};
pub(crate) use init::InitArgs;
pub(crate) use named::{NamedArgs, namespace_flag};
pub(crate) use pause::{PauseArgs, ResumeArgs};
pub(crate) use plan::{PlanArgs, PlanFormat};
pub(crate) use platform::{DeployedArgs, OwnPlatformArgs, PlatformArgs};
pub(crate) use preflight::{PreflightArgs, PreflightFormat};
pub(crate) use rehearse::{RehearseArgs, Speed};
pub(crate) use reports::ReportArgs;
pub(crate) use runs::{AttachArgs, RunArgs, RunsArgs};
pub(crate) use scope::{ScopeArgs, known as known_scopes};
pub(crate) use serve::ServeArgs;
pub(crate) use status::{LookArgs, StatusArgs, ValidateArgs, WhyArgs};
pub(crate) use teardown::TeardownArgs;
pub(crate) use triggers::{TriggersAction, TriggersArgs, TriggersTestArgs};

/// Deploys a platform of interdependent Argo CD Applications in dependency order, each step
/// gated on real, current health.
#[derive(Debug, Parser)]
#[command(name = "tiphys", version, propagate_version = false)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 credentials, \
    5 not found, 6 unreachable, 7 deadline, 8 held by another run, 130 and 143 interrupted.")]
pub(crate) struct Args {
    /// Show decisions and changing requests on stderr; -vv shows all requests
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 900)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Print a first platform file, with comments
    ///
    /// It is made from Application manifests, from answers on a terminal, or of examples. With
    /// `--root-app`, a platform file becomes a part of the root app.
    Init(InitArgs),
    /// Show order, layers, critical path, estimate and digest; changes nothing
    Plan(PlanArgs),
    /// Deploy the platform on a simulated cluster, in virtual time
    ///
    /// Needs no cluster and changes nothing. The same seed gives the same run, byte for byte.
    Rehearse(RehearseArgs),
    /// Check the prerequisites of a platform; changes nothing
    ///
    /// Checks tools, cluster, connectivity, credentials, and what must not exist yet. Each failed
    /// check says how to fix it. Exit codes: 3 something is missing, 4 credentials are rejected or
    /// lack a right, 6 the cluster is unreachable. Warnings do not change the exit code.
    Preflight(PreflightArgs),
    /// Install the primitives: Argo CD, Workflows and Events at pinned versions
    ///
    /// Safe to run again: objects that are already correct are not touched. It ends by starting the
    /// run that deploys the platform.
    Bootstrap(BootstrapArgs),
    /// Deploy the platform: everything in dependency order, each step gated on health
    ///
    /// Run it again to resume: finished apps are skipped, running syncs are picked up.
    Deploy(DeployArgs),
    /// Set up an existing Argo CD: projects, root app, rights, tokens
    ///
    /// Safe to run again: objects that are already correct are not touched, and a revoked token is
    /// replaced. Fields that another field manager owns are never taken over.
    Configure(ConfigureArgs),
    /// Replace the platform's tokens and passwords
    ///
    /// Safe during a run: the old token is revoked after the new one is in place. The password of
    /// `admin` is replaced only if bootstrap has set it.
    RotateCredentials(RotateArgs),
    /// Check that every app is Synced and Healthy; changes nothing
    ///
    /// Exits with 0 if every app is Synced and Healthy at its source's revision. Otherwise it lists
    /// the others, and exits with 1.
    Validate(ValidateArgs),
    /// Show phase, authority, hold and the state of each app; changes nothing
    Status(StatusArgs),
    /// Explain the state of an app: cause, evidence, what to do next; changes nothing
    Why(WhyArgs),
    /// List the runs that the cluster has recorded, the newest first; changes nothing
    ///
    /// The last 20 runs of each platform are kept, wherever they ran.
    Runs(RunsArgs),
    /// Follow a run in the cluster, or show one that has ended; changes nothing
    ///
    /// Exits as the run did. Ctrl-C detaches: the run continues.
    Attach(AttachArgs),
    /// Stop a run in the cluster
    ///
    /// Running syncs continue in Argo CD, apps that are not done stay held, and the next deployment
    /// resumes.
    Cancel(RunArgs),
    /// Stop automatic deployments of a platform for a while
    ///
    /// A deployment in progress continues, and `tiphys deploy` still works.
    Pause(PauseArgs),
    /// Continue automatic deployments of a platform
    Resume(ResumeArgs),
    /// Test the triggers of a platform
    Triggers(TriggersArgs),
    /// Deploy what Git has, for platforms with `deploy: automatic`
    ///
    /// The chart runs it in the cluster. It compares what the root apps show of Git with what is
    /// deployed, and submits a workflow where they differ. It runs until it is stopped. Of several
    /// processes, one leads and the others wait.
    Serve(ServeArgs),
    /// Remove the platform: everything in reverse order, each app confirmed gone
    ///
    /// Needs neither Git nor a platform file: the cluster stores what was deployed. Run it again to
    /// resume. Removing the whole platform ends with its namespaces, CRDs, projects and roles.
    Teardown(TeardownArgs),
    /// Show an object's health as Argo CD would report it, and which check decides
    ///
    /// Needs no cluster. Scripts run with limits on time and memory, without network or files.
    Health(HealthArgs),
    /// Deploy, validate or remove as variables say; for containers
    ///
    /// TIPHYS_ACTION is `deploy`, `validate` or `teardown`; TIPHYS_PLATFORM is the platform's name;
    /// TIPHYS_SCOPE, TIPHYS_ENVIRONMENT and TIPHYS_ENGINE are optional. A teardown needs TIPHYS_CONFIRM
    /// with the platform's name. The cluster is that of KUBECONFIG, of TIPHYS_KUBECONFIG_BASE64, or the
    /// pod's own. All output is JSON, one object per line.
    Executor(ExecutorArgs),
    /// Print the JSON Schema of platform files
    Schema,
    /// Print a completion script for a shell
    ///
    /// It also completes the names of apps and stacks in the platform file. For bash, put `source
    /// <(tiphys completion bash)` into ~/.bashrc.
    Completion(CompletionArgs),
    /// Write the manual pages to a directory
    Man(ManArgs),
    /// Print the version
    Version,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Directory of the pages, such as /usr/local/share/man/man1
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionArgs {
    pub(crate) shell: clap_complete::Shell,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    tiphys_model::duration::parse(text).map_err(|error| error.to_string())
}
