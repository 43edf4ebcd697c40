//! Arguments of `tiphys configure`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args as ClapArgs, ValueHint};

use tiphys_install::mounted::{self, Mounted};

use super::{ClusterArgs, DeployedArgs, DocumentFormat};
use crate::failure::Failure;

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigureArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Show what would change; changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = objects_format())]
    pub(crate) output: DocumentFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    pub(crate) platform: DeployedArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// Which platform is set up, on which cluster, with what credentials.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct SetupArgs {
    /// Platform file, directory of files, or `-` for stdin
    #[arg(
        short, long, value_name = "PLATFORM", default_value = "./platform.yaml",
        value_hint = ValueHint::AnyPath
    )]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) credentials: CredentialsArgs,
}

/// Where credentials are.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct CredentialsArgs {
    /// Directory with the credentials, in subdirectories `git`, `registry` and `dns`
    #[arg(
        long, value_name = "DIR", default_value = mounted::FOLDER, value_hint = ValueHint::DirPath
    )]
    pub(crate) credentials: PathBuf,
}

impl CredentialsArgs {
    pub(crate) fn read(&self) -> Result<Mounted, Failure> {
        Ok(Mounted::read(&self.credentials)?)
    }
}

/// How objects are printed that were written to a cluster.
pub(super) fn objects_format() -> impl TypedValueParser<Value = DocumentFormat> {
    let help = "A list with kind, name, namespace and result of each";
    DocumentFormat::of(PossibleValue::new("json").help(help))
}
