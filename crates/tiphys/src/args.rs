//! The command line. Doc comments are the help texts.

mod bootstrap;
mod configure;
mod format;
mod health;
mod named;
mod preflight;
mod reports;
mod runs;
mod scope;
mod status;
mod teardown;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use tiphys_cluster::{Access, KubeconfigSource};
use tiphys_model::{Platform, PlatformName};

use crate::failure::Failure;
use crate::{git, input};

pub(crate) use bootstrap::BootstrapArgs;
pub(crate) use configure::{ConfigureArgs, CredentialsArgs, RotateArgs, SetupArgs};
pub(crate) use format::{DocumentFormat, RunFormat};
pub(crate) use health::{HealthAction, HealthArgs, HealthTestArgs};
pub(crate) use named::NamedArgs;
pub(crate) use preflight::{PreflightArgs, PreflightFormat};
pub(crate) use reports::ReportArgs;
pub(crate) use runs::{AttachArgs, CancelArgs, RunsArgs};
pub(crate) use scope::{ScopeArgs, known as known_scopes};
pub(crate) use status::{LookArgs, StatusArgs, ValidateArgs, WhyArgs};
pub(crate) use teardown::TeardownArgs;

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
    Cancel(CancelArgs),
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
    Executor,
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
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) platform: PlatformArgs,
    /// Only check the platform file, for pipelines: a line if it is valid, otherwise exit code 3
    ///
    /// In GitHub Actions, problems and warnings are annotations of the file, too.
    #[arg(long, conflicts_with = "output")]
    pub(crate) check: bool,
    /// Show what changes from another plan: that of a platform file, or `deployed` for what the
    /// cluster stores
    #[arg(long, value_name = "OLD", conflicts_with_all = ["check", "given"], value_hint = ValueHint::AnyPath)]
    pub(crate) diff: Option<PathBuf>,
    /// Output format; with `--diff`: table, json, yaml or markdown
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: PlanFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Read apps and dependencies from the Application manifests in DIR (`-` for stdin)
    ///
    /// Dependencies are read from annotations: `tiphys.dev/depends-on: "a,b?"` (`?` means
    /// optional), `tiphys.dev/stack`, `tiphys.dev/type`. Subdirectories are read, too.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) from_applications: Option<PathBuf>,
    /// Turn sync waves into dependencies: each app depends on all apps of the previous wave
    ///
    /// The wave is the Application's annotation `argocd.argoproj.io/sync-wave`, or 0.
    #[arg(long, requires = "from_applications")]
    pub(crate) edges_from_waves: bool,
    /// Name of the platform [default: platform]
    #[arg(long, value_name = "NAME", value_parser = PlatformName::parse)]
    pub(crate) name: Option<PlatformName>,
    /// Instead, make the platform file a part of the root app in DIR, for `deploy --platform`
    ///
    /// DIR is a Helm chart, a kustomization, or a folder of manifests.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["from_applications", "name"])]
    pub(crate) root_app: Option<PathBuf>,
    /// Platform file for `--root-app` [default: ./platform.yaml]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}

/// Which platform, for actions that need no cluster.
#[derive(Debug, ClapArgs)]
pub(crate) struct PlatformArgs {
    /// Platform file, directory of files, or `-` for stdin [default: ./platform.yaml if it exists,
    /// otherwise the bundled reference platform]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    /// Read apps and dependencies from the Application manifests in DIR (`-` for stdin) instead of
    /// a platform file
    ///
    /// Dependencies are read from annotations: `tiphys.dev/depends-on: "a,b?"` (`?` means
    /// optional), `tiphys.dev/stack`, `tiphys.dev/type`. Subdirectories are read, too.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "name"], value_hint = ValueHint::DirPath)]
    pub(crate) from_applications: Option<PathBuf>,
    /// Turn sync waves into dependencies: each app depends on all apps of the previous wave
    ///
    /// The wave is the Application's annotation `argocd.argoproj.io/sync-wave`, or 0.
    /// `tiphys init` prints the result as a platform file.
    // Without the conflict, clap does not miss `--from-applications` where there is `-f`.
    #[arg(long, requires = "from_applications", conflicts_with = "file")]
    pub(crate) edges_from_waves: bool,
    #[command(flatten)]
    pub(crate) named: NamedArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

impl PlatformArgs {
    pub(crate) fn read(&self) -> Result<Platform, Failure> {
        match (&self.from_applications, &self.named.name) {
            (Some(directory), _) => {
                let waves = input::sync_waves(self.edges_from_waves);
                input::platform_from_applications(directory, waves)
            }
            (None, Some(name)) => {
                Ok(git::platform(&self.cluster.access(), &self.named.namespace, name)?.platform)
            }
            (None, None) => input::platform(self.file.as_deref()),
        }
    }
}

/// The same where a platform of one's own is needed.
#[derive(Debug, ClapArgs)]
pub(crate) struct OwnPlatformArgs {
    /// Platform file, directory of files, or `-` for stdin [default: ./platform.yaml]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) named: NamedArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

impl OwnPlatformArgs {
    /// As arguments of a command to run again.
    pub(crate) fn repeat(&self) -> String {
        let file = self.file.iter().map(|file| format!(" -f {}", file.display()));
        file.chain(self.named.repeat()).chain(self.scope.repeat()).collect()
    }
}

/// Which platform, for actions that can read it from the cluster.
#[derive(Debug, ClapArgs)]
pub(crate) struct DeployedArgs {
    /// Platform file, directory of files, or `-` for stdin [default: ./platform.yaml if it exists,
    /// otherwise the platform deployed in the cluster]
    #[arg(short, long, value_name = "PLATFORM", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    /// Name of a platform deployed in the cluster; needed if there are several
    #[arg(long = "platform", value_name = "NAME", conflicts_with = "file", value_parser = PlatformName::parse)]
    pub(crate) name: Option<PlatformName>,
    /// Argo CD's namespace, if there is no platform file
    #[arg(short, long, value_name = "NAMESPACE", default_value = "argocd")]
    pub(crate) namespace: String,
}

impl DeployedArgs {
    /// As arguments of a command to run again.
    pub(crate) fn repeat(&self) -> String {
        let file = self.file.iter().map(|file| format!(" -f {}", file.display()));
        file.chain(self.name.iter().map(|name| format!(" --platform {name}"))).collect()
    }
}

/// Which cluster.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file [default: KUBECONFIG, then ~/.kube/config, then the pod's service account]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// What counts instead of both; no flag says it.
    #[arg(skip)]
    pub(crate) given: Option<KubeconfigSource>,
}

impl ClusterArgs {
    pub(crate) fn access(&self) -> Access {
        let usual = || KubeconfigSource::Usual(self.kubeconfig.clone());
        let kubeconfig = self.given.clone().unwrap_or_else(usual);
        Access { kubeconfig, context: self.context.clone() }
    }
}

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    /// In this process
    Local,
    /// In the cluster, on Argo Workflows; with `--platform`
    Workflows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// Human-readable
    Table,
    Json,
    Yaml,
    /// For Graphviz
    Dot,
    /// For Markdown that renders Mermaid
    Mermaid,
    /// For a merge request
    Markdown,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RehearseArgs {
    #[command(flatten)]
    pub(crate) platform: PlatformArgs,
    /// Inject a fault: APP=KIND, APP=KIND@TIME or *=KIND; repeatable
    ///
    /// For an app: refuse, hang, degraded, degrade-later, never-healthy, flap, stale-health,
    /// missed-health, stolen, revision-moved, stuck-finalizer, comparison-error,
    /// brief-comparison-error, out-of-sync, invalid-spec, deny-sync, deny-handoff, recreated,
    /// spec-changed, frozen-operation. For the run (*): lost-watch, duplicate-answer, slow-api, crash,
    /// lease-lost, lifted-hold, stale-reads. TIME is virtual time since the start of the run;
    /// without it, the fault strikes when the app (with `*`, any app) first syncs.
    #[arg(long, value_name = "APP=KIND[@TIME]")]
    pub(crate) fault: Vec<tiphys_sim::Fault>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Instead, run N random platforms with random faults, and check the invariants
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "from_applications", "fault", "speed", "teardown"])]
    pub(crate) seeds: Option<u64>,
    /// Virtual seconds per real second, or `max` [default: 240 on a terminal, otherwise max]
    #[arg(long, value_name = "N|max", value_parser = parse_speed)]
    pub(crate) speed: Option<Speed>,
    /// Tear the platform down afterwards
    #[arg(long)]
    pub(crate) teardown: bool,
    /// Output format
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
pub(crate) struct ManArgs {
    /// Directory of the pages, such as /usr/local/share/man/man1
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionArgs {
    pub(crate) shell: clap_complete::Shell,
}
