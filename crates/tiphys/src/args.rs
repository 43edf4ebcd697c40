//! The command line. Doc comments are the help texts.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};

/// Deploys a platform of interdependent Argo CD Applications in dependency order, each step
/// gated on real, current health.
#[derive(Debug, Parser)]
#[command(name = "tiphys", version, propagate_version = false, disable_help_subcommand = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 credentials, \
    5 not found, 6 unreachable, 7 deadline, 8 held by another run, 130 and 143 interrupted.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show order, layers, critical path, estimate and digest; changes nothing
    Plan(PlanArgs),
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
    /// How to print the plan
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: PlanFormat,
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
    pub(crate) scope: String,
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
pub(crate) struct CompletionArgs {
    pub(crate) shell: clap_complete::Shell,
}
