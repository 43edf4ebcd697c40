//! Arguments of `tiphys bootstrap`.

use clap::{Args as ClapArgs, ValueEnum};
use tiphys_model::bootstrap::Installer;

use super::configure::objects_format;
use super::{DocumentFormat, SetupArgs};

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct BootstrapArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// What installs [default: the platform's]
    #[arg(long, value_name = "INSTALLER")]
    pub(crate) installer: Option<InstallerName>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the objects instead, in the order in which they are applied; needs no cluster
    #[arg(long, conflicts_with_all = ["dry_run", "adopt", "no_run"])]
    pub(crate) render: bool,
    /// Take over what somebody else has installed, with the fields that they manage
    ///
    /// It is the platform's from then on, and goes with it.
    #[arg(long)]
    pub(crate) adopt: bool,
    /// Stop before the run that deploys the platform
    #[arg(long)]
    pub(crate) no_run: bool,
    /// Deploy even if the platform file is not what Git has at the deployed commit
    #[arg(long)]
    pub(crate) allow_uncommitted: bool,
    /// How to print the objects
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = objects_format())]
    pub(crate) output: DocumentFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallerName {
    /// This program itself
    Native,
    /// The playbook of the project, with ansible-playbook
    Ansible,
}

impl From<InstallerName> for Installer {
    fn from(name: InstallerName) -> Self {
        match name {
            InstallerName::Native => Installer::Native,
            InstallerName::Ansible => Installer::Ansible,
        }
    }
}
