//! Arguments of `tiphys plan`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum, ValueHint};

use super::PlatformArgs;

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
