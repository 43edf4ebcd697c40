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
    /// Installer to use [default: the platform's]
    #[arg(long, value_name = "INSTALLER")]
    pub(crate) installer: Option<InstallerName>,
    /// Show what would change; changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the objects in the order in which they are applied, instead of applying them; needs no
    /// cluster
    #[arg(long, conflicts_with_all = ["dry_run", "adopt", "no_run"])]
    pub(crate) render: bool,
    /// Take over primitives that Tiphys did not install, including fields of other managers
    ///
    /// They belong to the platform from then on, and its teardown removes them.
    #[arg(long)]
    pub(crate) adopt: bool,
    /// Stop before the run that deploys the platform
    #[arg(long)]
    pub(crate) no_run: bool,
    /// Deploy even if the platform file differs from the deployed Git commit
    #[arg(long)]
    pub(crate) allow_uncommitted: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = objects_format())]
    pub(crate) output: DocumentFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallerName {
    /// This program itself
    Native,
    /// The project's playbook, run with ansible-playbook
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
