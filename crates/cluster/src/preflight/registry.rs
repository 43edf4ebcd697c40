//! Whether registries, chart repositories and manifests answer, and who one is at a registry.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::stream::{self, StreamExt};
use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use secrecy::ExposeSecret;
use serde::Deserialize;
use tiphys_run::preflight::connectivity::{Endpoint, Purpose, Tried, judge};
use tiphys_run::preflight::credentials::{
    Login, Write, no_registries, probe_repository, registry_host,
};
use tiphys_run::preflight::{Findings, Requirement, Section, Trouble};

use super::docker::{self, Entry, SecretText};
use super::web::{Answer, Read, Web, advice, basic};
use super::{AT_ONCE, Preflight};
use crate::mounted::Mounted;

/// Whether a place answers: a registry, a chart repository, a file.
pub(super) async fn reach(place: &Endpoint, mounted: &Mounted) -> Findings {
    let tried = match Web::trusting(mounted.registry_authority.as_deref()) {
        Ok(web) => ask(&web, place).await,
        Err(why) => Err(why),
    };
    let tried = tried.unwrap_or_else(|why| {
        let next = advice(&why).to_owned();
        Tried::Away(why, next)
    });
    let (check, reach) = judge(place, &tried);
    Findings { checks: vec![check], connectivity: vec![reach], ..Findings::default() }
}

async fn ask(web: &Web, place: &Endpoint) -> Result<Tried, String> {
    let url = match place.purpose {
        Purpose::Registry | Purpose::Mirror => root(&place.address),
        Purpose::Charts => format!("{}/index.yaml", place.address.trim_end_matches('/')),
        Purpose::Manifests | Purpose::Git => place.address.clone(),
    };
    let status = web.get(&url, None, Read::Head).await?.status;
    let code = status.as_u16();
    let registry = matches!(place.purpose, Purpose::Registry | Purpose::Mirror);
    Ok(match status {
        StatusCode::UNAUTHORIZED if registry => {
            Tried::Answers("answers, and asks for a login".to_owned())
        }
        _ if status.is_success() => Tried::Answers("answers".to_owned()),
        // Whoever fetches it follows; where to is not ours to judge.
        _ if status.is_redirection() && !registry => {
            Tried::Answers(format!("answers {code}, and leads elsewhere"))
        }
        _ => {
            let next = if registry {
                "check that there is a registry: `/v2/` must answer with 200 or 401"
            } else {
                "check the address in the platform file"
            };
            Tried::Away(format!("answers {code}"), next.to_owned())
        }
    })
}

/// The first address of a registry's API.
fn root(host: &str) -> String {
    // Docker Hub's is not where its name says.
    let host = if host == "docker.io" { "registry-1.docker.io" } else { host };
    format!("https://{host}/v2/")
}

/// Each login of the Docker configuration.
pub(super) async fn log_in(preflight: &Preflight<'_>, mounted: &Mounted) -> Findings {
    let mut findings = Findings::default();
    let folder = preflight.folder();
    let Some(config) = &mounted.registry else {
        let (checks, credential) = no_registries(&folder, preflight.strict);
        return Findings { checks, credentials: vec![credential], ..findings };
    };
    let web = Web::trusting(mounted.registry_authority.as_deref());
    let read = web.and_then(|web| docker::read(config).map(|entries| (web, entries)));
    let (web, entries) = match read {
        Ok(read) => read,
        Err(why) => {
            let file = Requirement::new(Section::Credentials, "registry", "a Docker configuration");
            let next = "`docker login` writes one; `kubectl create secret docker-registry` too";
            findings.checks.push(file.failed(Trouble::Missing, why, next));
            return findings;
        }
    };
    let images = preflight.bootstrap().map_or(&[] as &[_], |bootstrap| &bootstrap.images);
    let mirrors: Vec<&str> = images.iter().map(|mirror| mirror.to.as_str()).collect();
    let (web, mirrors) = (&web, &mirrors);
    let logins = stream::iter(entries).map(async |(host, entry)| {
        let login = login(web, &host, &entry, &probe_repository(&host, mirrors)).await;
        (host, login)
    });
    let logins: Vec<(String, Login)> = logins.buffered(AT_ONCE).collect().await;
    for (host, login) in logins {
        let (checks, credential) = registry_host(&host, &login, &folder, preflight.strict);
        findings.checks.extend(checks);
        findings.credentials.push(credential);
    }
    findings
}

/// As `docker login` does it.
async fn login(web: &Web, host: &str, entry: &Entry, repository: &str) -> Login {
    let header = match entry {
        Entry::Password { username, password } => basic(username, password),
        Entry::Other(what) => return Login::NotTried(format!("it is {what}")),
    };
    let open = match web.get(&root(host), None, Read::Head).await {
        Ok(open) => open,
        Err(why) => return Login::NotTried(format!("the registry cannot be reached: {why}")),
    };
    let asked = match open.status {
        StatusCode::UNAUTHORIZED => open.header(WWW_AUTHENTICATE).and_then(Challenge::parse),
        StatusCode::OK => return Login::NotTried("the registry asks nobody to log in".to_owned()),
        status => return Login::NotTried(format!("the registry answers {}", status.as_u16())),
    };
    match asked {
        Some(Challenge::Basic) => {
            let why = "the registry has no token service that could tell".to_owned();
            accepted(web.get(&root(host), Some(&header), Read::Head).await, |_| {
                Write::NotKnown(why)
            })
        }
        Some(Challenge::Bearer { realm, service }) => {
            let url = token_url(&realm, &service, repository);
            accepted(web.get(&url, Some(&header), Read::Everything).await, |answer| {
                granted(&answer.body)
            })
        }
        None => Login::NotTried("the registry asks for a login of an unknown kind".to_owned()),
    }
}

fn accepted(answer: Result<Answer, String>, write: impl FnOnce(&Answer) -> Write) -> Login {
    match answer {
        Ok(answer) if answer.status.is_success() => Login::Accepted(write(&answer)),
        Ok(answer) if answer.is_refusal() => {
            Login::Rejected(format!("the registry answers {}", answer.status.as_u16()))
        }
        Ok(answer) => Login::NotTried(format!("the registry answers {}", answer.status.as_u16())),
        Err(why) => Login::NotTried(why),
    }
}

/// How a registry wants to be asked.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer { realm: String, service: String },
}

impl Challenge {
    /// `Bearer realm="https://auth.example/token",service="registry.example"`
    fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        let field = |name: &str| {
            let (_, value) = rest.split_once(&format!("{name}=\""))?;
            value.split_once('"').map(|(value, _)| value.to_owned())
        };
        let service = field("service").unwrap_or_default();
        let realm = field("realm").filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
        Some(Challenge::Bearer { realm, service })
    }
}

fn token_url(realm: &str, service: &str, repository: &str) -> String {
    let joint = if realm.contains('?') { '&' } else { '?' };
    let service = service.replace(' ', "%20");
    format!("{realm}{joint}service={service}&scope=repository:{repository}:pull,push")
}

/// Some servers write both, some one of them.
#[derive(Deserialize)]
struct Token {
    token: Option<SecretText>,
    access_token: Option<SecretText>,
}

#[derive(Deserialize)]
struct Claims {
    access: Option<Vec<Claim>>,
}

#[derive(Deserialize)]
struct Claim {
    actions: Vec<String>,
}

/// What a token allows, if it says so.
fn granted(body: &[u8]) -> Write {
    let silent = || Write::NotKnown("the registry's tokens do not tell".to_owned());
    let Ok(answer) = serde_json::from_slice::<Token>(body) else { return silent() };
    let Some(token) = answer.token.or(answer.access_token) else { return silent() };
    let claims = token.0.expose_secret().split('.').nth(1);
    let claims = claims.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims = claims.and_then(|json| serde_json::from_slice::<Claims>(&json).ok());
    let Some(Claims { access: Some(access) }) = claims else { return silent() };
    let push = |claim: &Claim| claim.actions.iter().any(|one| one == "push" || one == "*");
    if access.iter().any(push) { Write::Granted } else { Write::Denied }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> Vec<u8> {
        let token = format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims));
        format!("{{\"token\": \"{token}\", \"access_token\": \"{token}\"}}").into_bytes()
    }

    #[test]
    fn tokens_tell_what_they_allow() {
        let silent = Write::NotKnown("the registry's tokens do not tell".to_owned());
        let both =
            r#"{"access": [{"type": "repository", "name": "a", "actions": ["pull", "push"]}]}"#;
        let pull = r#"{"access": [{"type": "repository", "name": "a", "actions": ["pull"]}]}"#;
        let cases = [
            (both, Write::Granted),
            (pull, Write::Denied),
            (r#"{"access": []}"#, Write::Denied),
            (r#"{"sub": "me"}"#, silent.clone()),
        ];
        for (claims, expected) in cases {
            assert_eq!(granted(&token(claims)), expected, "{claims}");
        }
        assert_eq!(granted(b"{\"access_token\": \"opaque\"}"), silent);
        assert_eq!(granted(b"{}"), silent);
        assert_eq!(granted(b"<html>"), silent);
    }

    #[test]
    fn challenges_of_real_registries() {
        let bearer = |realm: &str, service: &str| {
            Some(Challenge::Bearer { realm: realm.to_owned(), service: service.to_owned() })
        };
        let cases = [
            (
                "Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\"",
                bearer("https://auth.docker.io/token", "registry.docker.io"),
            ),
            ("Basic realm=\"Registry Realm\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            ("Bearer service=\"x\"", None),
            ("Negotiate", None),
        ];
        for (header, expected) in cases {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
        assert_eq!(
            token_url("https://auth.example/token", "registry.example", "mirror/preflight"),
            "https://auth.example/token?service=registry.example\
             &scope=repository:mirror/preflight:pull,push"
        );
    }
}
