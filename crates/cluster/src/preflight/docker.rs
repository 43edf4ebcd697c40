//! Docker configurations: who one is at which registry.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// A way to log in.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Password {
        username: String,
        password: SecretString,
    },
    /// Something that this cannot use: what.
    Other(&'static str),
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Given>,
}

#[derive(Deserialize)]
struct Given {
    auth: Option<SecretText>,
    username: Option<String>,
    password: Option<SecretText>,
    identitytoken: Option<SecretText>,
}

/// Never printed, not even in an error.
#[derive(Deserialize)]
#[serde(from = "String")]
pub(super) struct SecretText(pub(super) SecretString);

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        SecretText(text.into())
    }
}

/// By registry; what is wrong with it, otherwise, and nothing of what it holds.
pub(super) fn read(config: &SecretString) -> Result<BTreeMap<String, Entry>, String> {
    let config: Config = serde_json::from_str(config.expose_secret()).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("no Docker configuration in JSON: wrong at line {line}, column {column}")
    })?;
    if config.auths.is_empty() {
        return Err("the Docker configuration has no `auths`".to_owned());
    }
    Ok(config.auths.into_iter().map(|(place, given)| (host(&place), entry(given))).collect())
}

/// Keys may be addresses, and Docker Hub's always is one.
fn host(place: &str) -> String {
    let place = place.split_once("://").map_or(place, |(_, rest)| rest);
    let host = place.split('/').next().unwrap_or_default();
    if host == "index.docker.io" { "docker.io".to_owned() } else { host.to_owned() }
}

fn entry(given: Given) -> Entry {
    if let (Some(username), Some(password)) = (given.username, given.password) {
        return Entry::Password { username, password: password.0 };
    }
    let Some(pair) = given.auth.filter(|auth| !auth.0.expose_secret().is_empty()) else {
        let identity = given.identitytoken.is_some();
        return Entry::Other(if identity { "an identity token" } else { "nothing to log in with" });
    };
    let decoded = STANDARD.decode(pair.0.expose_secret()).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).map(SecretString::from);
    let pair = decoded.as_ref().and_then(|text| text.expose_secret().split_once(':'));
    match pair {
        Some((username, password)) => {
            Entry::Password { username: username.to_owned(), password: password.to_owned().into() }
        }
        None => Entry::Other("an `auth` that is no name and password in base64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(json: &str) -> Vec<String> {
        let entries = read(&json.to_owned().into()).unwrap();
        let told = entries.into_iter().map(|(host, entry)| match entry {
            Entry::Password { username, password } => {
                format!("{host} {username} {}", password.expose_secret())
            }
            Entry::Other(what) => format!("{host} {what}"),
        });
        told.collect()
    }

    #[test]
    fn configurations_of_docker_and_kubernetes() {
        let json = r#"{"auths": {
            "https://index.docker.io/v1/": {"auth": "bWU6aHVudGVyMg=="},
            "quay.io": {"username": "robot", "password": "a:b"},
            "registry.example:5000": {"auth": "bWU6YTpi", "email": "me@example.org"},
            "token.example": {"auth": "", "identitytoken": "t"},
            "helper.example": {},
            "wrong.example": {"auth": "?"}
        }}"#;
        let expected = [
            "docker.io me hunter2",
            "helper.example nothing to log in with",
            "quay.io robot a:b",
            "registry.example:5000 me a:b",
            "token.example an identity token",
            "wrong.example an `auth` that is no name and password in base64",
        ];
        assert_eq!(told(json), expected);
    }

    #[test]
    fn nothing_of_it_is_in_an_error() {
        let secret = r#"{"auths": {"quay.io": {"auth": hunter2}}}"#;
        let error = read(&secret.to_owned().into()).unwrap_err();
        assert!(error.contains("line 1") && !error.contains("hunter2"), "{error}");
        let wrong_kind = r#"{"auths": {"quay.io": {"auth": ["hunter2"]}}}"#;
        assert!(!read(&wrong_kind.to_owned().into()).unwrap_err().contains("hunter2"));
        assert!(read(&"{}".to_owned().into()).is_err());
    }
}
