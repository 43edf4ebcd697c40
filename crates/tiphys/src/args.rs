//! The command line. Doc comments are the help texts.

mod bootstrap;
mod configure;
mod format;
mod health;
mod preflight;
mod scope;
mod status;
mod teardown;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use tiphys_model::PlatformName;

pub(crate) use bootstrap::BootstrapArgs;
pub(crate) use configure::{ConfigureArgs, CredentialsArgs, RotateArgs, SetupArgs};
pub(crate) use format::{DocumentFormat, RunFormat};
pub(crate) use health::{HealthAction, HealthArgs, HealthTestArgs};
pub(crate) use preflight::{PreflightArgs, PreflightFormat};
pub(crate) use scope::GivenScope;
pub(crate) use status::{LookArgs, StatusArgs, ValidateArgs, WhyArgs};
pub(crate) use teardown::TeardownArgs;

/// Deploys a platform of interdependent Argo CD Applications in dependency order, each step
/// gated on real, current health.
#[derive(Debug, Parser)]
#[command(name = "tiphys", version, propagate_version = false)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 credentials, \
    5 not found, 6 unreachable, 7 deadline, 8 held by another run, 130 and 143 interrupted.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Print a first platform file from Application manifests; changes nothing
    Init(InitArgs),
    /// Show order, layers, critical path, estimate and digest; changes nothing
    Plan(PlanArgs),
    /// Deploy the platform on a simulated cluster, in virtual time
    ///
    /// Needs no cluster and changes nothing. The same seed gives the same run, byte for byte.
    Rehearse(RehearseArgs),
    /// Check what must be there before a platform is set up; changes nothing
    ///
    /// Tools, cluster, connectivity, credentials, and what must not exist yet. What is not right
    /// is told with what to do about it: 3 something is missing, 4 credentials are rejected or
    /// lack a right, 6 the cluster cannot be reached. Warnings do not count.
    Preflight(PreflightArgs),
    /// Install what the platform stands on: Argo CD, Workflows and Events, pinned
    ///
    /// Run it again at any time: what is as it should be is not touched. It ends by starting the
    /// run that deploys the platform.
    Bootstrap(BootstrapArgs),
    /// Deploy the platform: everything in dependency order, each step gated on health
    ///
    /// Run it again to resume: what is done is found done, what is under way is taken over.
    Deploy(DeployArgs),
    /// Set up an existing Argo CD: projects, root app, rights, tokens
    ///
    /// Run it again at any time: what is as it should be is not touched, and a token that was
    /// revoked is replaced. Fields that somebody else manages are never taken.
    Configure(ConfigureArgs),
    /// Replace the platform's tokens and passwords, at any time
    ///
    /// The password of `admin` is replaced if bootstrap has set it. Runs that go on meanwhile are not disturbed: the old token is revoked when the new one is
    /// in its place.
    RotateCredentials(RotateArgs),
    /// Say whether the platform is as it should be, and what is not; changes nothing
    ///
    /// Exits with 0 if every app is Synced and Healthy at what its source says, otherwise with 1.
    Validate(ValidateArgs),
    /// Show phase, authority, hold and the state of each app; changes nothing
    Status(StatusArgs),
    /// Explain the state of an app: reasons, evidence, what next; changes nothing
    Why(WhyArgs),
    /// Remove the platform: everything in reverse order, each step confirmed gone
    ///
    /// Needs neither Git nor a platform file: the cluster knows what was deployed. Run it again
    /// to resume. The whole platform ends with its namespaces, CRDs, projects and rights.
    Teardown(TeardownArgs),
    /// Show what Argo CD would say of an object's health, and which check decides
    ///
    /// Needs no cluster. Scripts run within limits of time and memory, and reach nothing.
    Health(HealthArgs),
    /// Print the JSON Schema of platform files
    Schema,
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print the version
    Version,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) platform: PlatformArgs,
    /// Read apps and dependencies from the Application manifests in DIR instead
    ///
    /// Edges stand in annotations: `tiphys.dev/depends-on: "a,b?"` (`?` means optional),
    /// `tiphys.dev/stack`, `tiphys.dev/type`.
    #[arg(long, value_name = "DIR", conflicts_with = "file", value_hint = ValueHint::DirPath)]
    pub(crate) from_applications: Option<PathBuf>,
    /// Let each app also depend on all apps of the nearest earlier sync wave
    ///
    /// The wave is the annotation `argocd.argoproj.io/sync-wave` of the Application, 0 without it.
    /// `tiphys init` prints the result as a platform file.
    // Without the conflict, clap does not miss `--from-applications` where there is `-f`.
    #[arg(long, requires = "from_applications", conflicts_with = "file")]
    pub(crate) edges_from_waves: bool,
    /// How to print the plan
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: PlanFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Take apps and dependencies from the Application manifests in DIR
    ///
    /// Edges stand in annotations: `tiphys.dev/depends-on: "a,b?"` (`?` means optional),
    /// `tiphys.dev/stack`, `tiphys.dev/type`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) from_applications: PathBuf,
    /// Let each app also depend on all apps of the nearest earlier sync wave
    ///
    /// The wave is the annotation `argocd.argoproj.io/sync-wave` of the Application, 0 without it.
    #[arg(long)]
    pub(crate) edges_from_waves: bool,
    /// The name of the platform
    #[arg(long, value_name = "NAME", default_value = "platform", value_parser = PlatformName::parse)]
    pub(crate) name: PlatformName,
}

/// What an action is about.
#[derive(Debug, ClapArgs)]
pub(crate) struct PlatformArgs {
    /// The platform: a file or a directory of files [default: ./platform.yaml, or the bundled
    /// reference platform if there is none]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    /// What to look at: `platform`, `stack:NAME` or `app:NAME`
    #[arg(long, value_name = "SCOPE", default_value = "platform")]
    pub(crate) scope: GivenScope,
}

impl PlatformArgs {
    /// As it stands behind a command that is to be given again.
    pub(crate) fn repeat(&self) -> String {
        let file = self.file.iter().map(|file| format!(" -f {}", file.display()));
        file.chain(self.scope.repeat()).collect()
    }
}

/// Which platform, if the cluster may be asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct DeployedArgs {
    /// The platform: a file or a directory of files [default: ./platform.yaml if it is there,
    /// otherwise the platform that the cluster knows]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    /// The platform as the cluster knows it, by name; needed where several are deployed
    #[arg(long = "platform", value_name = "NAME", conflicts_with = "file", value_parser = PlatformName::parse)]
    pub(crate) name: Option<PlatformName>,
    /// The namespace of Argo CD, where no platform file says it
    #[arg(short, long, value_name = "NAMESPACE", default_value = "argocd")]
    pub(crate) namespace: String,
}

impl DeployedArgs {
    /// As it stands behind a command that is to be given again.
    pub(crate) fn repeat(&self) -> String {
        let file = self.file.iter().map(|file| format!(" -f {}", file.display()));
        file.chain(self.name.iter().map(|name| format!(" --platform {name}"))).collect()
    }
}

/// Which cluster.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig file [default: KUBECONFIG, then ~/.kube/config, then the pod's own account]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub(crate) platform: PlatformArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) credentials: CredentialsArgs,
    /// Deploy what the scope depends on as well, instead of only checking it
    #[arg(long)]
    pub(crate) with_dependencies: bool,
    /// Say what would be synced and why, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove apps that have left the platform file afterwards, in reverse order
    #[arg(long)]
    pub(crate) prune: bool,
    /// Deploy even if the platform file is not what Git has at the deployed commit
    #[arg(long)]
    pub(crate) allow_uncommitted: bool,
    /// The run's own deadline, such as `90m` [default: the platform's]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Refuse unless the plan has this digest, or one that begins so
    #[arg(long, value_name = "DIGEST")]
    pub(crate) plan: Option<String>,
    /// Write the events to a file as well, one line of JSON each
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    /// How to print the run
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: RunFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// For people
    Table,
    Json,
    Yaml,
    /// For Graphviz
    Dot,
    /// For Markdown that renders Mermaid
    Mermaid,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RehearseArgs {
    #[command(flatten)]
    pub(crate) platform: PlatformArgs,
    /// Let something go wrong: APP=KIND, APP=KIND@TIME or *=KIND; may be given several times
    ///
    /// For an app: refuse, hang, degraded, degrade-later, never-healthy, flap, stale-health,
    /// missed-health, stolen, revision-moved, stuck-finalizer, comparison-error,
    /// brief-comparison-error, out-of-sync, invalid-spec, deny-sync, deny-handoff, recreated,
    /// spec-changed, frozen-operation. For the run (*): lost-watch, duplicate-answer, slow-api, crash,
    /// lease-lost, lifted-hold, stale-reads. TIME is virtual time since the start of the run;
    /// without it, the fault strikes when the app (or the first of all) first syncs.
    #[arg(long, value_name = "APP=KIND[@TIME]")]
    pub(crate) fault: Vec<tiphys_sim::Fault>,
    /// What all chance comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Check the laws of a run on N random platforms with random faults instead
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "fault", "speed", "teardown"])]
    pub(crate) seeds: Option<u64>,
    /// How many virtual seconds pass in one second, or `max` [default: 240 on a terminal,
    /// otherwise max]
    #[arg(long, value_name = "N|max", value_parser = parse_speed)]
    pub(crate) speed: Option<Speed>,
    /// Take everything down again afterwards
    #[arg(long)]
    pub(crate) teardown: bool,
    /// How to print the run
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: RunFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    Times(NonZeroU32),
    Max,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    tiphys_model::duration::parse(text).map_err(|error| error.to_string())
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    match text {
        "max" => Ok(Speed::Max),
        number => number
            .parse()
            .map(Speed::Times)
            .map_err(|_| "a whole number of at least 1, or `max`".to_owned()),
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionArgs {
    pub(crate) shell: clap_complete::Shell,
}
