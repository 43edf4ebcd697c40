//! How Argo CD's API server is reached, as far as the platform file says it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::SecretName;

/// What the platform file says of Argo CD's API server. Without any of it, the server is found in the
/// cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiServer {
    /// Where it is, if not at its pods in the cluster.
    pub address: Option<ServerAddress>,
    pub tls: ServerTls,
    /// What its paths begin with: nothing, or a slash and no slash at its end.
    pub root_path: Option<String>,
    /// The Secret with the token that deploys, if it is not the one that `configure` makes.
    pub token_secret: Option<SecretName>,
}

/// How the connection is secured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ServerTls {
    /// A server in the cluster as `configure` has found it, one with an address by the authorities
    /// that this machine trusts.
    #[default]
    Default,
    /// Certificates in PEM: its authority, or its own.
    Authority(String),
    /// Plain HTTP.
    Off,
}

/// A server by its name or IP address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAddress {
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerAddress { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// The path below which a server serves. People write it with and without slashes.
#[must_use]
pub fn root_path(text: &str) -> String {
    match text.trim().trim_matches('/') {
        "" => String::new(),
        path => format!("/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_path_begins_with_a_slash_or_is_nothing() {
        for (written, expected) in
            [("", ""), ("/", ""), ("argocd", "/argocd"), ("/argocd", "/argocd"), ("/a/b/", "/a/b")]
        {
            assert_eq!(root_path(written), expected, "{written}");
        }
    }

    #[test]
    fn an_ipv6_address_is_written_in_brackets() {
        let address = |host: &str| ServerAddress { host: host.to_owned(), port: 443 }.to_string();
        assert_eq!(address("argocd.example.org"), "argocd.example.org:443");
        assert_eq!(address("2001:db8::1"), "[2001:db8::1]:443");
    }
}
