//! Whether registries, chart repositories and manifests answer, and who one is at a registry.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::stream::{self, StreamExt};
use http::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tiphys_assess::preflight::connectivity::{Endpoint, Purpose, Tried, judge};
use tiphys_assess::preflight::credentials::{
    Login, Write, no_registries, probe_repository, registry_host,
};
use tiphys_assess::preflight::{Findings, Requirement, Section, Trouble};

use super::{AT_ONCE, Preflight, advice, answered, is_refusal};
use tiphys_install::https::{Answer, Https, Unanswered};
use tiphys_install::mounted::Mounted;
use tiphys_install::registry;

/// Whether a place answers: a registry, a chart repository, a file.
pub(super) async fn reach(place: &Endpoint, mounted: &Mounted) -> Findings {
    let tried = match Https::new(mounted.registry_authority.as_deref()) {
        Ok(https) => ask(&https, place).await,
        Err(why) => Err(why),
    };
    let tried = tried.unwrap_or_else(|why| {
        let next = advice(&why);
        Tried::Away(why, next)
    });
    let (check, reach) = judge(place, &tried);
    Findings { checks: vec![check], connectivity: vec![reach], ..Findings::default() }
}

async fn ask(https: &Https, place: &Endpoint) -> Result<Tried, Unanswered> {
    let url = match place.purpose {
        Purpose::Registry | Purpose::Mirror => root(&place.address),
        Purpose::Charts => format!("{}/index.yaml", place.address.trim_end_matches('/')),
        Purpose::Manifests | Purpose::Git => place.address.clone(),
    };
    let status = answered(https.look(&url, None)).await?.status;
    let code = status.as_u16();
    let registry = matches!(place.purpose, Purpose::Registry | Purpose::Mirror);
    Ok(match status {
        StatusCode::UNAUTHORIZED if registry => {
            Tried::Answers("answers, and requires a login".to_owned())
        }
        _ if status.is_success() => Tried::Answers("answers".to_owned()),
        _ => {
            let next = if registry {
                "check that this is a registry: `/v2/` must answer with HTTP 200 or 401"
            } else {
                "check the address in the platform file"
            };
            Tried::Away(format!("answers with HTTP {code}"), next.to_owned())
        }
    })
}

/// The first address of a registry's API.
fn root(host: &str) -> String {
    // Docker Hub's is not where its name says.
    let hub = ["docker.io", "index.docker.io"].contains(&host);
    let host = if hub { "registry-1.docker.io" } else { host };
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
    let https = Https::new(mounted.registry_authority.as_deref());
    let read = https.and_then(|https| registry::hosts(config).map(|hosts| (https, hosts)));
    let (https, hosts) = match read {
        Ok(read) => read,
        Err(why) => {
            let file = Requirement::new(Section::Credentials, "registry", "a Docker configuration");
            let next = "create one with `docker login` or `kubectl create secret docker-registry`";
            findings.checks.push(file.failed(Trouble::Missing, why, next));
            return findings;
        }
    };
    let images = preflight.bootstrap().map_or(&[] as &[_], |bootstrap| &bootstrap.images);
    let mirrors: Vec<&str> = images.iter().map(|mirror| mirror.to.as_str()).collect();
    let tries: Vec<_> = hosts
        .iter()
        .map(|host| login(&https, host, config, probe_repository(host, &mirrors)))
        .collect();
    let logins: Vec<Login> = stream::iter(tries).buffered(AT_ONCE).collect().await;
    let logins = hosts.iter().zip(logins);
    for (host, login) in logins {
        let (checks, credential) = registry_host(host, &login, &folder, preflight.strict);
        findings.checks.extend(checks);
        findings.credentials.push(credential);
    }
    findings
}

/// As `docker login` does it.
async fn login(https: &Https, host: &str, config: &SecretString, repository: String) -> Login {
    let Some(login) = registry::login(config, host) else {
        return Login::NotTried("no user name and password to check".to_owned());
    };
    let open = match answered(https.look(&root(host), None)).await {
        Ok(open) => open,
        Err(why) => return Login::Unanswered(why),
    };
    match (open.status, registry::challenge(&open)) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            let scope = format!("repository:{repository}:pull,push");
            let asked = registry::ask_token(https, &challenge, &scope, Some(&login));
            accepted(answered(asked).await, granted)
        }
        (StatusCode::UNAUTHORIZED, None) => {
            let why = "the registry has no token service".to_owned();
            let answer = answered(https.look(&root(host), Some(&login))).await;
            accepted(answer, |_| Write::NotKnown(why))
        }
        (StatusCode::OK, _) => Login::NotTried("the registry does not require a login".to_owned()),
        (status, _) => Login::Unanswered(with_status(status)),
    }
}

fn accepted(answer: Result<Answer, Unanswered>, write: impl FnOnce(&Answer) -> Write) -> Login {
    match answer {
        Ok(answer) if answer.status.is_success() => Login::Accepted(write(&answer)),
        Ok(answer) if is_refusal(&answer) => Login::Rejected(with_status(answer.status)),
        Ok(answer) => Login::Unanswered(with_status(answer.status)),
        Err(why) => Login::Unanswered(why),
    }
}

fn with_status(status: StatusCode) -> String {
    format!("the registry answers with HTTP {}", status.as_u16())
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
fn granted(answer: &Answer) -> Write {
    let silent = || Write::NotKnown("the registry's tokens do not list permissions".to_owned());
    let Ok(token) = registry::read_token(answer) else { return silent() };
    let claims = token.expose_secret().split('.').nth(1);
    let claims = claims.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims = claims.and_then(|json| serde_json::from_slice::<Claims>(&json).ok());
    let Some(Claims { access: Some(access) }) = claims else { return silent() };
    let push = |claim: &Claim| claim.actions.iter().any(|one| one == "push" || one == "*");
    if access.iter().any(push) { Write::Granted } else { Write::Denied }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn answer(body: String) -> Answer {
        Answer { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into() }
    }

    fn token(claims: &str) -> Answer {
        let token = format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims));
        answer(format!("{{\"token\": \"{token}\", \"access_token\": \"{token}\"}}"))
    }

    #[test]
    fn tokens_tell_what_they_allow() {
        let silent = Write::NotKnown("the registry's tokens do not list permissions".to_owned());
        let both = r#"{"access": [{"type": "repository", "actions": ["pull", "push"]}]}"#;
        let pull = r#"{"access": [{"type": "repository", "actions": ["pull"]}]}"#;
        let cases = [
            (both, Write::Granted),
            (pull, Write::Denied),
            (r#"{"access": []}"#, Write::Denied),
            (r#"{"sub": "me"}"#, silent.clone()),
        ];
        for (claims, expected) in cases {
            assert_eq!(granted(&token(claims)), expected, "{claims}");
        }
        for body in [r#"{"access_token": "opaque"}"#, "{}", "<html>"] {
            assert_eq!(granted(&answer(body.to_owned())), silent, "{body}");
        }
    }

    #[test]
    fn docker_hub_is_not_where_its_name_says() {
        assert_eq!(root("quay.io"), "https://quay.io/v2/");
        assert_eq!(root("index.docker.io"), "https://registry-1.docker.io/v2/");
    }
}
