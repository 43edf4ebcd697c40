//! Arguments of `tiphys init`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};
use tiphys_model::PlatformName;

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
