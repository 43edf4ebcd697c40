//! Where commits show what became of their deployment: the commit statuses of a Git server.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `spec.deploy.commitStatus`, with what the platform file left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitStatus {
    pub provider: StatusProvider,
    /// The address of the server's API, without a slash at the end.
    pub api: String,
    /// As the server calls it: `owner/name`, or a path of groups.
    pub repository: String,
    /// What tells this status from others of the same commit.
    pub context: String,
    /// What a status links to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Whose API it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatusProvider {
    /// Also that of Gitea and Forgejo.
    GitHub,
    GitLab,
}

impl StatusProvider {
    pub const ALL: [StatusProvider; 2] = [StatusProvider::GitHub, StatusProvider::GitLab];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StatusProvider::GitHub => "github",
            StatusProvider::GitLab => "gitlab",
        }
    }

    /// Where the API of a server is, unless somebody has moved it.
    #[must_use]
    pub fn api_at(self, server: &str) -> String {
        match self {
            StatusProvider::GitHub if server == "github.com" => "https://api.github.com".to_owned(),
            StatusProvider::GitHub => format!("https://{server}/api/v3"),
            StatusProvider::GitLab => format!("https://{server}/api/v4"),
        }
    }
}

impl fmt::Display for StatusProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Server and path in the address of a repository: `https://git.example/team/platform.git`,
/// `ssh://git@git.example:22/team/platform`, or `git@git.example:team/platform.git`. A port counts only
/// in the first: the others name that of another service. `None` where there is no such path.
#[must_use]
pub fn server_and_path(repo_url: &str) -> Option<(&str, &str)> {
    let (server, path) = if let Some((scheme, rest)) = repo_url.split_once("://") {
        let (server, path) = rest.split_once('/')?;
        let port_counts = matches!(scheme, "https" | "http");
        (if port_counts { server } else { without_port(server) }, path)
    } else {
        repo_url.split_once(':')?
    };
    let server = server.rsplit('@').next()?;
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_path = path.contains('/') && path.split('/').all(|part| !part.is_empty());
    (is_path && !server.is_empty()).then_some((server, path))
}

fn without_port(server: &str) -> &str {
    match server.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_path_are_found_in_every_way_to_write_an_address() {
        let both = Some(("git.example", "team/platform"));
        for url in [
            "https://git.example/team/platform.git",
            "https://user@git.example/team/platform",
            "https://git.example/team/platform/",
            "ssh://git@git.example:2222/team/platform.git",
            "git@git.example:team/platform.git",
            "git.example:/team/platform",
        ] {
            assert_eq!(server_and_path(url), both, "{url}");
        }
        let nested = "https://git.example:8443/a/b/c.git";
        assert_eq!(server_and_path(nested), Some(("git.example:8443", "a/b/c")));
        for url in ["https://git.example/platform.git", "/srv/platform.git", "", "https://", "a:b"]
        {
            assert_eq!(server_and_path(url), None, "{url}");
        }
    }

    #[test]
    fn an_api_is_found_where_its_server_has_it() {
        let (github, gitlab) = (StatusProvider::GitHub, StatusProvider::GitLab);
        assert_eq!(github.api_at("github.com"), "https://api.github.com");
        assert_eq!(github.api_at("git.example"), "https://git.example/api/v3");
        assert_eq!(gitlab.api_at("git.example:8443"), "https://git.example:8443/api/v4");
    }
}
