//! Git for tests: a server, and repositories on it that are written with the real program.

mod repository;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::error::LabError;
use crate::home::Home;

pub use repository::{Repository, Revision};

/// Another server than the lab's: its URL up to the folder of repositories, the private key and
/// the host keys.
const OTHER: [&str; 3] = ["TIPHYS_E2E_GIT", "TIPHYS_E2E_GIT_KEY", "TIPHYS_E2E_GIT_KNOWN_HOSTS"];

/// A Git server that is reached over SSH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitServer {
    /// What stands before `/NAME.git` in the URL of a repository.
    pub prefix: String,
    /// The file of the private key.
    pub key: PathBuf,
    /// The file with the keys of the host, which are always verified.
    pub known_hosts: PathBuf,
    /// Where its repositories lie on this machine. Without one, a push makes a repository.
    folder: Option<PathBuf>,
}

/// What Argo CD needs to read a repository.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub url: String,
    /// The private key itself, as text.
    pub private_key: String,
}

impl GitServer {
    /// Some server that makes a repository when it is first pushed to.
    #[must_use]
    pub fn other(prefix: &str, key: PathBuf, known_hosts: PathBuf) -> Self {
        let prefix = prefix.trim_end_matches('/').to_owned();
        GitServer { prefix, key, known_hosts, folder: None }
    }

    /// The server of a lab that is up.
    pub fn of_lab(home: &Home) -> Result<Self, LabError> {
        let path = home.path("ssh/prefix");
        let prefix = fs::read_to_string(&path).map_err(LabError::file(
            "the lab has no Git server yet (run `lab up`): nothing",
            &path,
        ))?;
        Ok(GitServer {
            prefix: prefix.trim().to_owned(),
            key: home.path("ssh/client_key"),
            known_hosts: home.path("ssh/known_hosts"),
            folder: Some(home.path("git")),
        })
    }

    /// The server that the environment names (`TIPHYS_E2E_GIT` and so on), or the lab's.
    pub fn from_environment(home: &Home) -> Result<Self, LabError> {
        let Some(prefix) = env::var_os(OTHER[0]) else {
            return GitServer::of_lab(home);
        };
        let path = |name: &str| {
            let missing = || LabError::Other(format!("{} is set, but {name} is not", OTHER[0]));
            env::var_os(name).map(PathBuf::from).ok_or_else(missing)
        };
        Ok(GitServer::other(&prefix.to_string_lossy(), path(OTHER[1])?, path(OTHER[2])?))
    }

    #[must_use]
    pub fn url(&self, repository: &str) -> String {
        format!("{}/{repository}.git", self.prefix)
    }

    /// Where its repositories lie, if it is a server of this machine.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The address of the machine that it is on.
    #[must_use]
    pub fn host(&self) -> &str {
        let rest = self.prefix.split_once("://").map_or(&*self.prefix, |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        host.split(':').next().unwrap_or_default()
    }

    pub fn credentials(&self, repository: &str) -> Result<Credentials, LabError> {
        let private_key = fs::read_to_string(&self.key)
            .map_err(LabError::file("could not read the key", &self.key))?;
        Ok(Credentials { url: self.url(repository), private_key })
    }

    /// `git` that logs in to this server with its key, and sees nobody's own settings.
    #[must_use]
    pub fn git(&self) -> Command {
        let mut git = Command::new("git");
        let quoted = |path: &PathBuf| format!("'{}'", path.display());
        let ssh = format!(
            "ssh -F none -i {} -o IdentitiesOnly=yes -o IdentityAgent=none -o BatchMode=yes \
             -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null \
             -o UserKnownHostsFile={}",
            quoted(&self.key),
            quoted(&self.known_hosts),
        );
        git.env("GIT_SSH_COMMAND", ssh)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0");
        // A test that a Git hook runs inherits these, and would write into the wrong repository.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
            git.env_remove(name);
        }
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "Tiphys lab");
            git.env(format!("GIT_{role}_EMAIL"), "lab@tiphys.dev");
        }
        git
    }
}

impl Credentials {
    /// The Secret by which Argo CD knows a repository.
    #[must_use]
    pub fn secret(&self, namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": { "argocd.argoproj.io/secret-type": "repository" },
            },
            "stringData": {
                "type": "git",
                "url": self.url,
                "sshPrivateKey": self.private_key,
            },
        })
    }
}

impl std::fmt::Debug for Credentials {
    /// A failed assertion must not print the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("url", &self.url).finish_non_exhaustive()
    }
}
