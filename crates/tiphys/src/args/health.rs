//! Arguments of `tiphys health`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args as ClapArgs, Subcommand, ValueHint};

use super::DocumentFormat;

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct HealthArgs {
    #[command(subcommand)]
    pub(crate) action: Option<HealthAction>,
    /// The file with the objects as they are in the cluster, or `-` for stdin
    ///
    /// `kubectl get KIND NAME -o yaml | tiphys health -` asks for a live object.
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Take the scripts of this ConfigMap instead of those that Tiphys installs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) argocd_cm: Option<PathBuf>,
    /// Take the scripts below DIR for those that are built into Argo CD
    ///
    /// Argo CD keeps them in its sources, in `resource_customizations`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) built_in: Option<PathBuf>,
    /// Show where a check was looked for
    #[arg(long)]
    pub(crate) explain: bool,
    /// How to print the verdicts
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = health_format())]
    pub(crate) output: DocumentFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HealthAction {
    /// Run the cases of health scripts: GROUP/KIND/{health.lua,health_test.yaml} below DIR
    ///
    /// The layout and the format are Argo CD's. Ends with 1 if a case differs.
    Test(HealthTestArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HealthTestArgs {
    /// The directory with the scripts and their cases
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Without `string`, `math` and `os`: as Argo CD runs scripts from argocd-cm
    #[arg(long)]
    pub(crate) no_open_libs: bool,
    /// How to print the differences
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = health_format())]
    pub(crate) output: DocumentFormat,
}

fn health_format() -> impl TypedValueParser<Value = DocumentFormat> {
    DocumentFormat::of(PossibleValue::new("json"))
}
