//! Debian packages that the lab needs.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::error::LabError;

/// A package, and a file that shows that it is installed.
const PACKAGES: [(&str, &str); 10] = [
    ("containerd", "/usr/bin/containerd"),
    ("runc", "/usr/sbin/runc"),
    ("containernetworking-plugins", "/usr/lib/cni/bridge"),
    ("iptables", "/usr/sbin/iptables"),
    ("conntrack", "/usr/sbin/conntrack"),
    ("iproute2", "/sbin/ip"),
    ("debootstrap", "/usr/sbin/debootstrap"),
    ("git", "/usr/bin/git"),
    ("openssh-client", "/usr/bin/ssh"),
    ("openssh-server", "/usr/sbin/sshd"),
];
/// The services of those packages: the lab starts such programs itself, with its own folders
/// and ports, and a machine that had none before must not get an open port from it.
const SERVICES: [(&str, &str); 2] =
    [("containerd", "containerd.service"), ("openssh-server", "ssh.service")];
/// Debian asks this program before it starts a service; 101 is no.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const NO: &str = "#!/bin/sh\n# Of the Tiphys lab, while it installs packages.\nexit 101\n";

/// Installs what the lab needs.
pub(crate) fn install() -> Result<(), LabError> {
    ensure(&PACKAGES, &SERVICES)
}

/// Installs what is missing of these packages, each with a file that shows that it is there.
/// Nothing that a package would start is started, now or at boot; `services` are theirs.
pub fn ensure(packages: &[(&str, &str)], services: &[(&str, &str)]) -> Result<(), LabError> {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(_, file)| !Path::new(file).exists())
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    command::run(Command::new("apt-get").args(["update", "-qq"]))?;
    let policy = NoServices::begin(Path::new(POLICY))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "-qq", "-y", "--no-install-recommends"]).args(&missing);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    let installed = command::run(&mut install);
    policy.end()?;
    installed?;
    for (_, service) in services.iter().filter(|(package, _)| missing.contains(package)) {
        if which("systemctl").is_some() {
            command::run(Command::new("systemctl").args(["disable", "--quiet", service]))?;
        }
    }
    Ok(())
}

/// While it lasts, installing a package starts no service.
struct NoServices {
    /// The policy, if it is ours; some machines have the same one for good.
    ours: Option<PathBuf>,
}

impl NoServices {
    fn begin(policy: &Path) -> Result<Self, LabError> {
        let failed = || LabError::file("could not deny the start of services", policy);
        let mut options = fs::OpenOptions::new();
        match options.write(true).create_new(true).mode(0o755).open(policy) {
            Ok(mut file) => {
                file.write_all(NO.as_bytes()).map_err(failed())?;
                Ok(NoServices { ours: Some(policy.to_owned()) })
            }
            // Ours, if a lab was killed while it was installing.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let ours = fs::read_to_string(policy).is_ok_and(|text| text == NO);
                Ok(NoServices { ours: ours.then(|| policy.to_owned()) })
            }
            Err(error) => Err(failed()(error)),
        }
    }

    fn end(self) -> Result<(), LabError> {
        self.ours.map_or(Ok(()), |policy| {
            fs::remove_file(&policy).map_err(LabError::file("could not remove", &policy))
        })
    }
}

/// Where a program is, if it is on the path.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_made_for_a_while_and_one_that_was_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy-rc.d");
        let killed = NoServices::begin(&policy).unwrap();
        assert_eq!(Command::new("sh").arg(&policy).status().unwrap().code(), Some(101));
        drop(killed);
        NoServices::begin(&policy).unwrap().end().unwrap();
        assert!(!policy.exists());
        fs::write(&policy, "#!/bin/sh\nexit 101\n").unwrap();
        NoServices::begin(&policy).unwrap().end().unwrap();
        assert!(policy.exists());
    }
}
