//! Git over SSH: `git` and `ssh` are run as Argo CD runs them, with the mounted key and host keys
//! and with nothing of the configuration of whoever runs this.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use secrecy::ExposeSecret;
use tempfile::{Builder, TempDir};
use tiphys_assess::preflight::address::SshAddress;
use tiphys_assess::preflight::connectivity::Tried;
use tiphys_assess::preflight::credentials::{Login, Write};
use tiphys_assess::preflight::ssh::{SshAnswer, answer, is_advertisement, telling_line};
use tokio::process::Command;

use super::command::{Ended, run};
use super::{ENDPOINT_TIMEOUT, advice};
use tiphys_install::mounted::{Git, Login as Mounted};

const WITHOUT_GIT: &str = "not checked: git is not installed";

pub(super) async fn reach(url: &str, address: &SshAddress, mounted: &Git) -> (Tried, Login) {
    let not_tried = |why: &str| (Tried::NotTried(why.to_owned()), Login::NotTried(why.to_owned()));
    let identity = match Identity::new(mounted) {
        Ok(identity) => identity,
        Err(error) => {
            // Where there is nothing but the program, this comes first.
            return match run(Command::new("git").arg("--version")).await {
                Ended::Absent => not_tried(WITHOUT_GIT),
                Ended::With(_) | Ended::Not(_) => {
                    not_tried(&format!("not checked: cannot create a temporary folder: {error}"))
                }
            };
        }
    };
    let mut list = Command::new("git");
    list.args(["ls-remote", "--quiet", url, "HEAD"]).env("GIT_SSH_COMMAND", identity.command());
    // Rules of whoever runs this could lead elsewhere.
    list.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    list.env("GIT_TERMINAL_PROMPT", "0").current_dir(identity.folder.path());
    let output = match run(&mut list).await {
        Ended::With(output) => output,
        Ended::Absent => return not_tried(WITHOUT_GIT),
        Ended::Not(why) => {
            let next = advice(&why);
            return (Tried::Away(why.clone(), next), Login::NotTried(why));
        }
    };
    if output.status.success() {
        let tried = Tried::Answers("answers, and its host key is known".to_owned());
        return (tried, Login::Accepted(write(address, &identity).await));
    }
    judge(&String::from_utf8_lossy(&output.stderr), matches!(mounted.login, Some(Mounted::Key(_))))
}

/// `key`: whether there was one to log in with.
fn judge(said: &str, key: bool) -> (Tried, Login) {
    let line = telling_line(said).to_owned();
    let answers = Tried::Answers("answers, and its host key is known".to_owned());
    match answer(said) {
        SshAnswer::Denied if key => (answers, Login::Rejected(line)),
        SshAnswer::Denied => (answers, Login::Wanted),
        SshAnswer::NoRepository => {
            let next = "check `source.repoURL`, and that the key has access to the repository";
            let hidden = Login::NotTried("the repository is missing or hidden".to_owned());
            (Tried::Away(line, next.to_owned()), hidden)
        }
        SshAnswer::HostKey => {
            let next = "get the server's host key with `ssh-keyscan`, verify it with the server's \
                        owner, and add it to `git/known_hosts` in the credentials folder";
            let why = format!("its host key is unknown or has changed: {line}");
            (Tried::Away(why, next.to_owned()), unreachable())
        }
        SshAnswer::NoProgram => {
            let why = "not checked: ssh is not installed".to_owned();
            (Tried::NotTried(why.clone()), Login::NotTried(why))
        }
        SshAnswer::Away => {
            let next = advice(&line);
            (Tried::Away(line, next), unreachable())
        }
    }
}

fn unreachable() -> Login {
    Login::NotTried("cannot reach the repository".to_owned())
}

/// A client that may push gets the references first. Nothing is pushed.
async fn write(address: &SshAddress, identity: &Identity) -> Write {
    let mut ask = Command::new("ssh");
    ask.args(identity.options());
    if let Some(port) = address.port {
        ask.arg("-p").arg(port.to_string());
    }
    ask.arg("--").arg(&address.login);
    ask.arg(format!("git-receive-pack {}", quoted(&address.path)));
    match run(&mut ask).await {
        Ended::With(Output { stdout, .. }) if is_advertisement(&stdout) => Write::Granted,
        // The same login was accepted a moment ago, so this is about writing.
        Ended::With(_) => Write::Denied,
        Ended::Absent => Write::NotKnown("ssh is not installed".to_owned()),
        Ended::Not(why) => Write::NotKnown(why),
    }
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The mounted key and host keys as files that only we can read; they go away with this value.
struct Identity {
    folder: TempDir,
    key: bool,
}

impl Identity {
    fn new(mounted: &Git) -> std::io::Result<Self> {
        let folder = Builder::new().prefix("tiphys-").tempdir()?;
        fs::write(folder.path().join("known_hosts"), mounted.known_hosts.as_deref().unwrap_or(""))?;
        let key = match &mounted.login {
            Some(Mounted::Key(key)) => {
                write_private(&folder.path().join("key"), key.expose_secret())?;
                true
            }
            Some(Mounted::Password { .. }) | None => false,
        };
        Ok(Identity { folder, key })
    }

    /// No key of an agent or of a home is used, and nobody is asked for anything.
    fn options(&self) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let key = if self.key { path("key") } else { "none".to_owned() };
        let mut options = vec!["-F".to_owned(), "/dev/null".to_owned()];
        let settings = [
            "BatchMode=yes".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            format!("UserKnownHostsFile={}", path("known_hosts")),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            format!("IdentityFile={key}"),
            format!("ConnectTimeout={}", ENDPOINT_TIMEOUT.as_secs()),
        ];
        options.extend(settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]));
        options
    }

    /// As Git gives it to a shell.
    fn command(&self) -> String {
        let words = self.options();
        let words = words.iter().map(|word| quoted(word));
        format!("ssh {}", words.collect::<Vec<_>>().join(" "))
    }
}

/// OpenSSH wants a line break at the end of a key, and refuses keys that others can read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.trim_end().as_bytes())?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_private_and_goes_away() {
        let mounted = Git {
            login: Some(Mounted::Key(
                "-----BEGIN KEY-----\nx\n-----END KEY-----".to_owned().into(),
            )),
            known_hosts: Some("git.example ssh-ed25519 AAAA".to_owned()),
            authority: None,
        };
        let identity = Identity::new(&mounted).unwrap();
        let key = identity.folder.path().join("key");
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&key).unwrap().ends_with("-----END KEY-----\n"));
        assert!(identity.command().contains(&format!("'IdentityFile={}'", key.display())));
        assert!(!identity.command().contains("BEGIN"));
        drop(identity);
        assert!(!key.exists());
    }

    #[test]
    fn without_a_key_none_is_used() {
        let identity = Identity::new(&Git::default()).unwrap();
        assert!(identity.options().contains(&"IdentityFile=none".to_owned()));
    }

    #[test]
    fn a_refused_login_is_no_lack_of_connectivity() {
        let denied = "git@git.example: Permission denied (publickey).\n";
        assert!(matches!(judge(denied, true), (Tried::Answers(_), Login::Rejected(_))));
        assert!(matches!(judge(denied, false), (Tried::Answers(_), Login::Wanted)));
        let host = "Host key verification failed.\n";
        assert!(matches!(judge(host, true), (Tried::Away(..), Login::NotTried(_))));
        let absent = "ERROR: Repository not found.\n";
        assert!(matches!(judge(absent, true), (Tried::Away(..), Login::NotTried(_))));
    }

    #[test]
    fn paths_are_one_word_for_a_shell() {
        assert_eq!(quoted("/a b/it's.git"), r"'/a b/it'\''s.git'");
    }
}
