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
    /// File with Kubernetes objects, or `-` for stdin
    ///
    /// For a live object: `kubectl get KIND NAME -o yaml | tiphys health -`
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Use the scripts of this ConfigMap instead of those that Tiphys installs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) argocd_cm: Option<PathBuf>,
    /// Use the scripts in DIR as Argo CD's built-in ones
    ///
    /// They are in `resource_customizations` of Argo CD's source code.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) built_in: Option<PathBuf>,
    /// Show which places were searched for a check
    #[arg(long)]
    pub(crate) explain: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = health_format())]
    pub(crate) output: DocumentFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HealthAction {
    /// Run the tests of health scripts: GROUP/KIND/{health.lua,health_test.yaml} in DIR
    ///
    /// Layout and format are Argo CD's. Exits with 1 if a test differs.
    Test(HealthTestArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HealthTestArgs {
    /// Directory with the scripts and their tests
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Run without `string`, `math` and `os`, as Argo CD does for scripts in argocd-cm
    #[arg(long)]
    pub(crate) no_open_libs: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = health_format())]
    pub(crate) output: DocumentFormat,
}

fn health_format() -> impl TypedValueParser<Value = DocumentFormat> {
    DocumentFormat::of(PossibleValue::new("json"))
}
