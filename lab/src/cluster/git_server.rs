//! The Git server: an SSH server of our own that can do nothing but Git.
//!
//! Argo CD, and everybody who tests with it, reads platforms from Git over the network with a key
//! and a verified host key. So the lab has that too, instead of a path on disk or plain HTTP.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Cluster;
use crate::error::LabError;
use crate::git::GitServer;
use crate::home::Home;
use crate::{command, packages};

pub(super) const PORT: u16 = 12222;
pub(super) const PROCESS: &str = "git-server";
/// The server insists on an absolute path, because it starts itself again for each connection.
const SSHD: &str = "/usr/sbin/sshd";
/// Where it locks itself in until somebody has proved who they are. Systemd makes it for the
/// server of the system; here nobody has.
const EMPTY_FOLDER: &str = "/run/sshd";

impl Cluster {
    pub(super) fn start_git_server(&self, address: Ipv4Addr) -> Result<(), LabError> {
        self.home.make("git")?;
        let host = key(&self.home, "host_key")?;
        let client = key(&self.home, "client_key")?;
        let authorized = self.home.write("ssh/authorized_keys", authorized_keys(&client)?)?;
        let config = configuration(&self.home, address, &authorized, root_is_locked());
        let config = self.home.write("ssh/sshd_config", config)?;
        self.home.write("ssh/known_hosts", known_hosts(address, &host))?;
        let folder = self.home.path("git");
        self.home
            .write("ssh/prefix", format!("ssh://root@{address}:{PORT}{}", folder.display()))?;
        fs::create_dir_all(EMPTY_FOLDER)
            .map_err(LabError::file("could not make the folder", EMPTY_FOLDER))?;
        let mut sshd = Command::new(SSHD);
        // In the foreground, with its log on stderr.
        sshd.args(["-D", "-e", "-f"]).arg(config);
        let process = self.process(PROCESS);
        process.start(&mut sshd)?;
        process.wait("the Git server", Duration::from_secs(20), || greets(address))
    }

    /// The Git server of this lab.
    pub fn git_server(&self) -> Result<GitServer, LabError> {
        GitServer::of_lab(&self.home)
    }
}

/// Makes a key pair unless it is there; its public half.
fn key(home: &Home, name: &str) -> Result<String, LabError> {
    let path = home.make("ssh")?.join(name);
    let public = path.with_extension("pub");
    // The public half is written last: it tells that both are whole.
    if !public.exists() {
        if path.exists() {
            fs::remove_file(&path).map_err(LabError::file("could not remove", &path))?;
        }
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "tiphys-lab", "-f"]).arg(&path);
        command::run(&mut keygen)?;
    }
    let text = fs::read_to_string(&public).map_err(LabError::file("could not read", &public))?;
    Ok(text.trim().to_owned())
}

/// The one key, which may run Git's own commands and nothing else.
fn authorized_keys(client: &str) -> Result<String, LabError> {
    let shell = packages::which("git-shell").ok_or_else(|| {
        LabError::Other("there is no git-shell on the path: install Debian's git".to_owned())
    })?;
    let shell = shell.display();
    Ok(format!("restrict,command=\"{shell} -c \\\"$SSH_ORIGINAL_COMMAND\\\"\" {client}\n"))
}

fn known_hosts(address: Ipv4Addr, host: &str) -> String {
    // Type and key, without the comment.
    let key: Vec<&str> = host.split_whitespace().take(2).collect();
    format!("[{address}]:{PORT} {}\n", key.join(" "))
}

fn configuration(home: &Home, address: Ipv4Addr, authorized: &Path, pam: bool) -> String {
    let host: PathBuf = home.path("ssh/host_key");
    format!(
        "\
ListenAddress {address}:{PORT}
HostKey {host}
AuthorizedKeysFile {authorized}
PidFile none
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowUsers root
PermitRootLogin forced-commands-only
DisableForwarding yes
PermitTTY no
PermitUserRC no
# The home of the lab may lie below a folder that everybody can write to, such as /tmp.
StrictModes no
# Without PAM, an account without a password counts as locked.
UsePAM {pam}
UseDNS no
# Argo CD asks for all apps of a platform at once.
MaxStartups 1000
# A client that vanished, or never says who it is, leaves no process behind.
LoginGraceTime 20
ClientAliveInterval 5
ClientAliveCountMax 2
AcceptEnv GIT_PROTOCOL
# Bash reads .bashrc for SSH unless it thinks that it is an inner shell; and Git's settings of
# whoever owns this machine are not for the lab.
SetEnv SHLVL=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
",
        host = host.display(),
        authorized = authorized.display(),
        pam = if pam { "yes" } else { "no" },
    )
}

/// Some distributions lock the account of root, others only give it no password.
fn root_is_locked() -> bool {
    let shadow = fs::read_to_string("/etc/shadow").unwrap_or_default();
    shadow.lines().any(|line| line.starts_with("root:!"))
}

/// Whether an SSH server answers.
fn greets(address: Ipv4Addr) -> bool {
    let socket = SocketAddr::from((address, PORT));
    let ask = || -> std::io::Result<[u8; 4]> {
        let mut stream = TcpStream::connect_timeout(&socket, Duration::from_secs(2))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting)?;
        Ok(greeting)
    };
    ask().is_ok_and(|greeting| &greeting == b"SSH-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_known_by_address_port_and_key() {
        let line = known_hosts(Ipv4Addr::new(10, 0, 0, 1), "ssh-ed25519 AAAA tiphys-lab");
        assert_eq!(line, "[10.0.0.1]:12222 ssh-ed25519 AAAA\n");
    }
}
