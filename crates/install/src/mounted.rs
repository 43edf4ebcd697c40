//! Credentials that a folder holds: one sub-folder for each purpose, named and filled as mounted
//! Kubernetes Secrets are. Nothing of what they hold can be printed.

mod repositories;

use std::path::{Path, PathBuf};
use std::{fs, io};

use secrecy::{ExposeSecret, SecretString};
use tiphys_model::{Exit, Explain, Explanation};

pub use repositories::{Repository, RepositoryKind};

/// Where the executor finds them.
pub const FOLDER: &str = "/var/run/tiphys/credentials";

/// What was found. Everything may be absent.
#[derive(Debug, Clone, Default)]
pub struct Mounted {
    /// For the platform's own repository.
    pub git: Git,
    /// Others.
    pub repositories: Vec<Repository>,
    /// A Docker configuration in JSON.
    pub registry: Option<SecretString>,
    /// Certificates, in PEM, that registries are known by.
    pub registry_authority: Option<String>,
    /// What Git servers sign their calls of Argo CD's webhook with.
    pub webhook_secret: Option<SecretString>,
    /// What commit statuses are set with.
    pub status_token: Option<SecretString>,
    /// How many files there are for the DNS provider. What they must be only the provider knows.
    pub dns: usize,
}

/// How to log in to Git.
#[derive(Debug, Clone, Default)]
pub struct Git {
    pub login: Option<Login>,
    /// Public, and what a server is known by.
    pub known_hosts: Option<String>,
    /// Certificates, in PEM, that servers are known by.
    pub authority: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Login {
    Key(SecretString),
    Password { username: String, password: SecretString },
}

/// Credentials that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum MountedError {
    Unreadable {
        path: PathBuf,
        source: io::Error,
    },
    /// The folder has a key and a password for Git.
    TwoLogins {
        folder: PathBuf,
    },
    /// Argo CD would take an empty secret for none, and accept calls from anyone.
    EmptySecret {
        path: PathBuf,
    },
    /// The folder is not that of a repository.
    Repository {
        folder: PathBuf,
        why: String,
    },
}

impl Explain for MountedError {
    fn explain(&self) -> Explanation {
        match self {
            MountedError::Unreadable { path, source } => Explanation::new(
                Exit::Configuration,
                format!("cannot read the credentials in {}", path.display()),
                source.to_string(),
            )
            .hint("check the path in `--credentials` and its permissions"),
            MountedError::TwoLogins { folder } => Explanation::new(
                Exit::Configuration,
                "conflicting Git credentials",
                format!("{} contains both `ssh-privatekey` and `password`", folder.display()),
            )
            .hint("remove one of the two files"),
            MountedError::EmptySecret { path } => Explanation::new(
                Exit::Configuration,
                format!("the webhook secret in {} is empty", path.display()),
                "without a secret, Argo CD accepts webhook calls from anyone",
            )
            .hint("write a random string to the file, or remove the file"),
            MountedError::Repository { folder, why } => Explanation::new(
                Exit::Configuration,
                format!("invalid repository folder {}", folder.display()),
                why.clone(),
            )
            .hint(
                "each folder in `git` describes a repository: add a file `url` and, if needed, the \
                 login",
            ),
        }
    }
}

impl Mounted {
    /// Reads a folder; one that does not exist holds nothing.
    pub fn read(folder: &Path) -> Result<Self, MountedError> {
        let own = folder.join("git");
        let registry = folder.join("registry");
        let docker = match text(&registry.join(".dockerconfigjson"))? {
            Some(config) => Some(config),
            None => text(&registry.join("config.json"))?,
        };
        Ok(Mounted {
            git: git(&own)?,
            repositories: repositories::read(&own)?,
            registry: docker.map(SecretString::from),
            registry_authority: text(&registry.join("ca.crt"))?,
            webhook_secret: webhook_secret(&folder.join("argocd/webhook-secret"))?,
            status_token: text(&own.join("status-token"))?.map(|token| trimmed(&token.into())),
            dns: files(&folder.join("dns"))?,
        })
    }
}

impl Mounted {
    /// The host keys of all Git servers, a line each.
    #[must_use]
    pub fn host_keys(&self) -> Option<String> {
        let others = self.repositories.iter().map(|one| &one.git);
        let all = [&self.git].into_iter().chain(others);
        let keys: Vec<&str> = all.filter_map(|git| git.known_hosts.as_deref()).collect();
        (!keys.is_empty()).then(|| keys.join("\n"))
    }
}

fn webhook_secret(file: &Path) -> Result<Option<SecretString>, MountedError> {
    let Some(secret) = text(file)? else { return Ok(None) };
    let secret = trimmed(&secret.into());
    if secret.expose_secret().is_empty() {
        return Err(MountedError::EmptySecret { path: file.to_owned() });
    }
    Ok(Some(secret))
}

/// How to log in to the repository that a folder is about.
fn git(folder: &Path) -> Result<Git, MountedError> {
    let key = text(&folder.join("ssh-privatekey"))?.map(SecretString::from).map(Login::Key);
    let password = text(&folder.join("password"))?.map(|password| trimmed(&password.into()));
    let username = text(&folder.join("username"))?.map(|name| name.trim().to_owned());
    let login = match (key, password) {
        (Some(_), Some(_)) => return Err(MountedError::TwoLogins { folder: folder.to_owned() }),
        (None, Some(password)) => {
            // Git servers that take tokens do not look at the name, but want one.
            let username = username.unwrap_or_else(|| "git".to_owned());
            Some(Login::Password { username, password })
        }
        (key, None) => key,
    };
    Ok(Git {
        login,
        known_hosts: text(&folder.join("known_hosts"))?,
        authority: text(&folder.join("ca.crt"))?,
    })
}

/// Files are written with editors, which end them with a line break.
fn trimmed(secret: &SecretString) -> SecretString {
    secret.expose_secret().trim_end_matches(['\n', '\r']).to_owned().into()
}

fn text(file: &Path) -> Result<Option<String>, MountedError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(MountedError::Unreadable { path: file.to_owned(), source }),
    }
}

fn files(folder: &Path) -> Result<usize, MountedError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(source) => return Err(MountedError::Unreadable { path: folder.to_owned(), source }),
    };
    // A mounted Secret has links of its own beside its files; their names begin with two dots.
    let hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("..");
    let shown = entries.filter(|entry| !entry.as_ref().is_ok_and(|e| hidden(&e.file_name())));
    Ok(shown.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn nothing_is_needed() {
        let mounted = Mounted::read(Path::new("/no/such/folder")).unwrap();
        assert!(mounted.git.login.is_none() && mounted.registry.is_none() && mounted.dns == 0);
    }

    #[test]
    fn secrets_of_kubernetes_are_understood_and_never_printed() {
        let folder = folder(&[
            ("git/password", "hunter2\n"),
            ("git/known_hosts", "host key"),
            ("registry/.dockerconfigjson", r#"{"auths":{"quay.io":{"auth":"hunter2"}}}"#),
            ("dns/token", "hunter2"),
            ("dns/..data", "link"),
        ]);
        let mounted = Mounted::read(folder.path()).unwrap();
        assert_eq!((mounted.dns, mounted.git.known_hosts.as_deref()), (1, Some("host key")));
        let Some(Login::Password { username, password }) = &mounted.git.login else {
            unreachable!("a password was given")
        };
        assert_eq!((username.as_str(), password.expose_secret()), ("git", "hunter2"));
        assert!(!format!("{mounted:?}").contains("hunter2"));
    }

    #[test]
    fn a_webhook_secret_is_read_without_its_line_break_and_not_empty() {
        let read = |content: &str| {
            let folder = folder(&[("argocd/webhook-secret", content)]);
            Mounted::read(folder.path())
        };
        let mounted = read("hunter2\n").unwrap();
        assert_eq!(mounted.webhook_secret.as_ref().unwrap().expose_secret(), "hunter2");
        assert!(!format!("{mounted:?}").contains("hunter2"));
        let error = read("\n").unwrap_err();
        assert_eq!(error.explain().exit, Exit::Configuration);
        assert!(matches!(error, MountedError::EmptySecret { .. }), "{error}");
    }

    #[test]
    fn a_folder_in_it_is_another_repository() {
        let folder = folder(&[
            ("git/charts/url", "https://charts.example\n"),
            ("git/charts/type", "helm"),
            ("git/all/url", "https://git.example/"),
            ("git/all/secret-type", "repo-creds"),
            ("git/all/password", "hunter2"),
            ("git/all/proxy", "http://proxy.example:3128"),
            ("git/..data/url", "a link"),
        ]);
        let mounted = Mounted::read(folder.path()).unwrap();
        let [all, charts] = &mounted.repositories[..] else { unreachable!("{mounted:?}") };
        assert_eq!((&*all.url, all.kind.as_str()), ("https://git.example/", "repo-creds"));
        assert_eq!(all.proxy.as_deref(), Some("http://proxy.example:3128"));
        assert!(all.git.login.is_some() && charts.git.login.is_none());
        assert_eq!((&*charts.name, &*charts.content), ("charts", "helm"));
        assert_eq!(charts.url, "https://charts.example");
        assert!(!format!("{mounted:?}").contains("hunter2"));
    }

    #[test]
    fn a_folder_that_is_no_repository_is_refused() {
        for (file, content, why) in [
            ("git/more/username", "me", "the file `url` is missing or empty"),
            ("git/more/url", " \n", "the file `url` is missing or empty"),
            (
                "git/No.1/url",
                "https://a",
                "its name becomes part of a Secret name: use only lower-case letters, digits and \
                 inner `-`",
            ),
        ] {
            let folder = folder(&[(file, content)]);
            assert_eq!(Mounted::read(folder.path()).unwrap_err().explain().why, why);
        }
        let folder = folder(&[("git/more/url", "https://a"), ("git/more/secret-type", "other")]);
        let told = Mounted::read(folder.path()).unwrap_err().explain();
        assert!(told.why.starts_with("invalid `secret-type` `other`"), "{}", told.why);
    }

    #[test]
    fn two_ways_to_log_in_are_one_too_many() {
        let folder = folder(&[("git/password", "a"), ("git/ssh-privatekey", "b")]);
        let error = Mounted::read(folder.path()).unwrap_err();
        assert_eq!(error.explain().exit, Exit::Configuration);
        assert!(matches!(error, MountedError::TwoLogins { .. }), "{error}");
    }
}
