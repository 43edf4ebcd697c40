//! Debian packages that the lab needs.

use std::path::Path;
use std::process::Command;

use crate::command;
use crate::error::LabError;

/// A package, and a file that shows that it is installed.
const PACKAGES: [(&str, &str); 9] = [
    ("containerd", "/usr/bin/containerd"),
    ("runc", "/usr/sbin/runc"),
    ("containernetworking-plugins", "/usr/lib/cni/bridge"),
    ("iptables", "/usr/sbin/iptables"),
    ("conntrack", "/usr/sbin/conntrack"),
    ("iproute2", "/sbin/ip"),
    ("debootstrap", "/usr/sbin/debootstrap"),
    ("git", "/usr/bin/git"),
    ("golang-go", "/usr/local/go/bin/go"),
];

/// Installs what is missing. Nothing that a package would start is started.
pub(crate) fn install() -> Result<(), LabError> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, file)| !Path::new(file).exists())
        .map(|(package, _)| *package)
        .filter(|package| *package != "golang-go" || which("go").is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    command::run(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "-qq", "-y", "--no-install-recommends"]).args(missing);
    // Debian's containerd would start one of its own; ours has its own socket and folder.
    install.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    command::run(&mut install).map(|_| ())
}

/// Where a program is, if it is on the path.
pub(crate) fn which(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.exists())
}
