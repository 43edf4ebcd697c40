//! Container registries: who asks them, and what they hand out.

use base64::Engine;
use http::{StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;

use crate::https::{Answer, Authorization, Https, Unanswered};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Of answers that say something about other things.
const MOST_BYTES: usize = 1 << 20;

/// `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@DIGEST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<'a> {
    pub registry: &'a str,
    repository: &'a str,
    /// A tag or a digest.
    version: &'a str,
}

impl<'a> Reference<'a> {
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (registry, rest) = text.split_once('/')?;
        let (repository, version) = rest.split_once('@').or_else(|| rest.rsplit_once(':'))?;
        let all = [registry, repository, version];
        all.iter().all(|part| !part.is_empty()).then_some(Reference {
            registry,
            repository,
            version,
        })
    }
}

/// The registries of a Docker configuration; what is wrong with it, otherwise, and nothing of what
/// it holds.
pub fn hosts(config: &SecretString) -> Result<Vec<String>, String> {
    let config: Value = serde_json::from_str(config.expose_secret()).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("the Docker configuration is not valid JSON: line {line}, column {column}")
    })?;
    let entries = config["auths"].as_object().filter(|entries| !entries.is_empty());
    let entries = entries.ok_or("the Docker configuration has no entries in `auths`")?;
    Ok(entries.keys().map(|name| host(name).to_owned()).collect())
}

/// Registries may be written as addresses; Docker Hub always is.
fn host(name: &str) -> &str {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    name.split('/').next().unwrap_or_default()
}

/// The login for a registry in a Docker configuration.
#[must_use]
pub fn login(config: &SecretString, registry: &str) -> Option<Authorization> {
    let config: Value = serde_json::from_str(config.expose_secret()).ok()?;
    let entries = config["auths"].as_object()?;
    let entry = entries.iter().find(|(name, _)| host(name) == registry)?.1;
    if let Some(both) = entry["auth"].as_str() {
        let both = base64::engine::general_purpose::STANDARD.decode(both).ok()?;
        let both = String::from_utf8(both).ok()?;
        let (username, password) = both.split_once(':')?;
        return Some(Authorization::Basic {
            username: username.to_owned(),
            password: password.into(),
        });
    }
    let username = entry["username"].as_str()?.to_owned();
    Some(Authorization::Basic { username, password: entry["password"].as_str()?.into() })
}

/// Gets the one layer of an artifact.
pub async fn pull(
    https: &Https,
    reference: &Reference<'_>,
    login: Option<&Authorization>,
    most_bytes: usize,
) -> Result<Vec<u8>, Unanswered> {
    let Reference { registry, repository, version } = reference;
    let base = format!("https://{registry}/v2/{repository}");
    let url = format!("{base}/manifests/{version}");
    let first = https.get(&url, Some(MANIFEST), login, MOST_BYTES).await?;
    let (authorization, answer) = match challenge(&first) {
        Some(challenge) => {
            let scope = format!("repository:{repository}:pull");
            let token = Authorization::Bearer(token(https, &challenge, &scope, login).await?);
            let answer = https.get(&url, Some(MANIFEST), Some(&token), MOST_BYTES).await?;
            (Some(token), answer)
        }
        None => (login.cloned(), first),
    };
    let manifest: Value = read(&answer)?;
    let layers = manifest["layers"].as_array().map_or(&[][..], Vec::as_slice);
    let [layer] = layers else {
        return Err(format!("the artifact must have one layer, but has {}", layers.len()));
    };
    let digest = layer["digest"].as_str().unwrap_or_default();
    let url = format!("{base}/blobs/{digest}");
    let blob = https.get(&url, None, authorization.as_ref(), most_bytes).await?;
    fine(&blob)?;
    Ok(blob.body.to_vec())
}

/// Where tokens are had, as a registry says it.
#[derive(Debug, PartialEq, Eq)]
pub struct Challenge {
    realm: String,
    service: String,
}

/// The challenge of an answer that asks for a token; those that take a password ask for none.
pub fn challenge(answer: &Answer) -> Option<Challenge> {
    if answer.status != StatusCode::UNAUTHORIZED {
        return None;
    }
    parse_challenge(answer.headers.get(header::WWW_AUTHENTICATE)?.to_str().ok()?)
}

fn parse_challenge(text: &str) -> Option<Challenge> {
    let rest = text.strip_prefix("Bearer ")?;
    let value = |name: &str| {
        let (_, rest) = rest.split_once(&format!("{name}=\""))?;
        rest.split('"').next().map(str::to_owned)
    };
    Some(Challenge { realm: value("realm")?, service: value("service").unwrap_or_default() })
}

/// A token for a scope, such as `repository:NAME:pull`.
pub async fn token(
    https: &Https,
    challenge: &Challenge,
    scope: &str,
    login: Option<&Authorization>,
) -> Result<SecretString, Unanswered> {
    read_token(&ask_token(https, challenge, scope, login).await?)
}

/// Asks a token service for a token.
pub async fn ask_token(
    https: &Https,
    challenge: &Challenge,
    scope: &str,
    login: Option<&Authorization>,
) -> Result<Answer, Unanswered> {
    let Challenge { realm, service } = challenge;
    let join = if realm.contains('?') { '&' } else { '?' };
    let service = service.replace(' ', "%20");
    let url = format!("{realm}{join}service={service}&scope={scope}");
    https.get(&url, None, login, MOST_BYTES).await
}

pub fn read_token(answer: &Answer) -> Result<SecretString, Unanswered> {
    /// One of the two, or both alike.
    #[derive(Deserialize)]
    struct Token {
        token: Option<SecretString>,
        access_token: Option<SecretString>,
    }
    let token: Token = read(answer)?;
    token.token.or(token.access_token).ok_or_else(|| "the response contains no token".to_owned())
}

fn fine(answer: &Answer) -> Result<(), Unanswered> {
    if answer.status.is_success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&answer.body);
    let said: String = said.trim().chars().take(200).collect();
    Err(format!("{} {said}", answer.status).trim_end().to_owned())
}

fn read<T: serde::de::DeserializeOwned>(answer: &Answer) -> Result<T, Unanswered> {
    fine(answer)?;
    serde_json::from_slice(&answer.body)
        .map_err(|_| "invalid response from the registry".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_name_a_registry_a_repository_and_a_version() {
        let parse = |text| Reference::parse(text).map(|r| (r.registry, r.repository, r.version));
        assert_eq!(parse("r.example:5000/a/b:1.2"), Some(("r.example:5000", "a/b", "1.2")));
        assert_eq!(parse("r.example/a@sha256:0"), Some(("r.example", "a", "sha256:0")));
        for wrong in ["a", "r.example/a", "r.example/:1", "/a:1", "r.example/a:"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn logins_are_found_as_docker_writes_them() {
        let config = SecretString::from(
            r#"{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"},"q.io":{"username":"a","password":"b"}}}"#,
        );
        let found = |registry: &str| match login(&config, registry)? {
            Authorization::Basic { username, password } => {
                Some((username, password.expose_secret().to_owned()))
            }
            Authorization::Bearer(_) => None,
        };
        assert_eq!(found("index.docker.io"), Some(("u".to_owned(), "p".to_owned())));
        assert_eq!(found("q.io"), Some(("a".to_owned(), "b".to_owned())));
        assert_eq!(found("other.io"), None);
        assert_eq!(hosts(&config).unwrap(), ["index.docker.io", "q.io"]);
    }

    #[test]
    fn nothing_of_a_wrong_configuration_is_told() {
        let wrong = |text: &str| hosts(&text.into()).unwrap_err();
        let told = wrong(r#"{"auths": {"q.io": {"auth": hunter2}}}"#);
        assert!(told.contains("line 1, column 2") && !told.contains("hunter2"), "{told}");
        assert_eq!(wrong("{}"), "the Docker configuration has no entries in `auths`");
    }

    #[test]
    fn a_registry_says_where_tokens_are_had() {
        let text =
            r#"Bearer realm="https://auth.example/token",service="registry.example",scope="x""#;
        let expected = Challenge {
            realm: "https://auth.example/token".to_owned(),
            service: "registry.example".to_owned(),
        };
        assert_eq!(parse_challenge(text), Some(expected));
        assert_eq!(parse_challenge("Basic realm=\"r\""), None);
    }
}
