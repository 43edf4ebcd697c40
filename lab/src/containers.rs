//! containerd with a root and a socket of its own, the pod network, and images for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::error::LabError;
use crate::home::Home;

/// The bridge that pods are connected to.
pub(crate) const BRIDGE: &str = "tiphys0";
pub(crate) const POD_RANGE: &str = "10.244.0.0/24";
pub const PAUSE_IMAGE: &str = "tiphys.lab/pause:1";
/// The name that the same image has for `examples/starter`: elsewhere it is a public one.
pub(crate) const PUBLIC_PAUSE_IMAGE: &str = "registry.k8s.io/pause:3.10";
/// Kubernetes keeps its containers and images here.
const NAMESPACE: &str = "k8s.io";

pub(crate) fn socket(home: &Home) -> PathBuf {
    home.path("containerd/containerd.sock")
}

/// Writes the configuration; returns its path.
pub(crate) fn configure(home: &Home) -> Result<PathBuf, LabError> {
    let folder = home.make("containerd")?;
    let network = home.make("cni/net.d")?;
    let cni = format!(
        r#"{{
  "cniVersion": "1.0.0",
  "name": "tiphys-lab",
  "plugins": [
    {{
      "type": "bridge",
      "bridge": "{BRIDGE}",
      "isGateway": true,
      "ipMasq": true,
      "hairpinMode": true,
      "ipam": {{
        "type": "host-local",
        "dataDir": "{}",
        "ranges": [[{{ "subnet": "{POD_RANGE}" }}]],
        "routes": [{{ "dst": "0.0.0.0/0" }}]
      }}
    }},
    {{ "type": "portmap", "capabilities": {{ "portMappings": true }} }}
  ]
}}
"#,
        home.path("cni/addresses").display(),
    );
    home.write("cni/net.d/10-tiphys-lab.conflist", cni)?;
    let config = format!(
        r#"version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
# Where root lacks CAP_SYS_RESOURCE, a sandbox that asks for a lower score dies.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{network}"
"#,
        folder = folder.display(),
        socket = socket(home).display(),
        network = network.display(),
    );
    home.write("containerd/config.toml", config)
}

/// `ctr` for this lab's containerd.
pub(crate) fn ctr(home: &Home) -> Command {
    let mut command = Command::new("ctr");
    command.arg("--address").arg(socket(home)).args(["--namespace", NAMESPACE]);
    command
}

/// Makes an image known to the cluster.
pub(crate) fn import(home: &Home, tarball: &Path) -> Result<(), LabError> {
    command::run(ctr(home).args(["images", "import"]).arg(tarball)).map(|_| ())
}

/// Whether the cluster knows an image.
pub(crate) fn has(home: &Home, image: &str) -> Result<bool, LabError> {
    Ok(command::run(ctr(home).args(["images", "ls", "-q"]))?.lines().any(|line| line == image))
}
