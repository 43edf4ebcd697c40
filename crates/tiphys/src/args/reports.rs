//! Files for pipelines.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct ReportArgs {
    /// Also write the result of each app to a file, as JUnit XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// Also write a summary to a file, as Markdown
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<PathBuf>,
    /// Where Argo Workflows reads how far it is; no flag says it.
    #[arg(skip)]
    pub(crate) progress: Option<PathBuf>,
}
