//! `--platform`, where it means what Git has.

use clap::Args as ClapArgs;
use tiphys_model::PlatformName;

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct NamedArgs {
    /// Instead of a file: the platform of this name, with the file that its root app has at the
    /// newest commit
    #[arg(long = "platform", value_name = "NAME", conflicts_with = "file", value_parser = PlatformName::parse)]
    pub(crate) name: Option<PlatformName>,
    /// Argo CD's namespace, for `--platform`
    #[arg(short, long, value_name = "NAMESPACE", default_value = "argocd")]
    pub(crate) namespace: String,
}

impl NamedArgs {
    /// As arguments of a command to run again.
    pub(crate) fn repeat(&self) -> Option<String> {
        let name = self.name.as_ref()?;
        Some(format!(" --platform {name}{}", namespace_flag(&self.namespace)))
    }
}

/// Argo CD's namespace in a command to run again; the default need not be given.
pub(crate) fn namespace_flag(namespace: &str) -> String {
    if namespace == "argocd" { String::new() } else { format!(" -n {namespace}") }
}
