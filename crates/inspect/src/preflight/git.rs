//! Whether the platform's repository can be read, with what, and whether it could be written to.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use tiphys_assess::preflight::Findings;
use tiphys_assess::preflight::address::{GitAddress, anonymous};
use tiphys_assess::preflight::connectivity::{Endpoint, Tried, judge};
use tiphys_assess::preflight::credentials::{Login, Write, git as judge_login};

use super::{Preflight, advice, answered, is_refusal, ssh};
use tiphys_install::https::{Answer, Authorization, Https, Unanswered};
use tiphys_install::mounted::{Git, Login as Mounted};

/// The services of a Git server: one to read, one to write.
const READ: &str = "git-upload-pack";
const WRITE: &str = "git-receive-pack";

/// `place` is none where the platform has no repository.
pub(super) async fn look(
    preflight: &Preflight<'_>,
    place: Option<&Endpoint>,
    mounted: &Git,
) -> Findings {
    let mut findings = Findings::default();
    let login = match place {
        None => Login::NotTried("the platform file has no `source`".to_owned()),
        Some(place) => {
            let (tried, login) = reach(&place.address, mounted).await;
            let (check, reach) = judge(place, &tried);
            findings.checks.push(check);
            findings.connectivity.push(reach);
            login
        }
    };
    let (checks, credential) = judge_login(&login, &preflight.folder(), preflight.strict);
    findings.checks.extend(checks);
    findings.credentials.push(credential);
    findings
}

pub(super) async fn reach(url: &str, mounted: &Git) -> (Tried, Login) {
    match GitAddress::parse(url) {
        GitAddress::Ssh(address) => ssh::reach(url, &address, mounted).await,
        GitAddress::Https => over_https(url, mounted).await,
        GitAddress::Other => {
            let why = "neither HTTPS nor SSH: only Argo CD can check it".to_owned();
            (Tried::NotTried(why.clone()), Login::NotTried(why))
        }
    }
}

async fn over_https(url: &str, mounted: &Git) -> (Tried, Login) {
    let away = |why: String| {
        let next = advice(&why);
        (Tried::Away(why, next), Login::NotTried("cannot reach the repository".to_owned()))
    };
    let https = match Https::new(mounted.authority.as_deref()) {
        Ok(https) => https,
        Err(why) => return away(why),
    };
    let url = anonymous(url);
    let open = match references(&https, &url, READ, None).await {
        Ok(answer) => answer,
        Err(why) => return away(why),
    };
    let tried = reading(&open);
    let login = match &mounted.login {
        Some(Mounted::Password { username, password }) => {
            let (username, password) = (username.clone(), password.clone());
            with_login(&https, &url, &Authorization::Basic { username, password }).await
        }
        Some(Mounted::Key(_)) if advertises(&open, READ) => {
            Login::NotTried("the key is for SSH, but the repository has an HTTPS address".into())
        }
        _ if advertises(&open, READ) => Login::NotNeeded,
        _ if is_refusal(&open) => Login::Wanted,
        _ => Login::NotTried("the server does not respond like a Git server".to_owned()),
    };
    // Some servers hide what one may not see; who may has seen it.
    match (tried, &login) {
        (Tried::Away(..), Login::Accepted(_)) => (Tried::Answers("answers".to_owned()), login),
        (tried, _) => (tried, login),
    }
}

/// What an answer to nobody in particular tells about the server.
fn reading(open: &Answer) -> Tried {
    match open.status {
        _ if advertises(open, READ) => Tried::Answers("readable without a login".to_owned()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Tried::Answers("answers, and requires a login".to_owned())
        }
        status if status.is_success() => Tried::Away(
            "answers, but not like a Git server".to_owned(),
            "check `source.repoURL`".to_owned(),
        ),
        status => Tried::Away(
            format!("answers with HTTP {}", status.as_u16()),
            "check `source.repoURL`: it must be an address that `git clone` accepts".to_owned(),
        ),
    }
}

async fn with_login(https: &Https, url: &str, authorization: &Authorization) -> Login {
    match references(https, url, READ, Some(authorization)).await {
        Ok(answer) if advertises(&answer, READ) => {
            Login::Accepted(write(references(https, url, WRITE, Some(authorization)).await))
        }
        Ok(answer) if is_refusal(&answer) => Login::Rejected(with_status(&answer)),
        Ok(answer) => Login::Unanswered(with_status(&answer)),
        Err(why) => Login::Unanswered(why),
    }
}

fn write(answer: Result<Answer, Unanswered>) -> Write {
    match answer {
        Ok(answer) if advertises(&answer, WRITE) => Write::Granted,
        Ok(answer) if is_refusal(&answer) => Write::Denied,
        Ok(answer) => Write::NotKnown(with_status(&answer)),
        Err(why) => Write::NotKnown(why),
    }
}

fn with_status(answer: &Answer) -> String {
    format!("the server answers with HTTP {}", answer.status.as_u16())
}

/// What a service has to offer; asking for it changes nothing.
async fn references(
    https: &Https,
    url: &str,
    service: &str,
    authorization: Option<&Authorization>,
) -> Result<Answer, Unanswered> {
    let url = format!("{}/info/refs?service={service}", url.trim_end_matches('/'));
    answered(https.look(&url, authorization)).await
}

/// A page for people is no answer of a Git server.
fn advertises(answer: &Answer, service: &str) -> bool {
    let kind = format!("application/x-{service}-advertisement");
    let said = answer.headers.get(CONTENT_TYPE).and_then(|said| said.to_str().ok());
    answer.status == StatusCode::OK && said == Some(&*kind)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use hyper::body::Bytes;

    use super::*;

    fn answer(status: u16, kind: &'static str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        Answer { status: StatusCode::from_u16(status).unwrap(), headers, body: Bytes::new() }
    }

    #[test]
    fn a_git_server_is_known_by_how_it_answers() {
        let (reads, page) = ("application/x-git-upload-pack-advertisement", "text/html");
        let told = |answer: &Answer| match reading(answer) {
            Tried::Answers(said) => format!("answers: {said}"),
            Tried::Away(said, _) => format!("away: {said}"),
            Tried::NotTried(said) => said,
        };
        let cases = [
            (answer(200, reads), "answers: readable without a login"),
            (answer(401, page), "answers: answers, and requires a login"),
            (answer(200, page), "away: answers, but not like a Git server"),
            (answer(404, page), "away: answers with HTTP 404"),
            (answer(503, page), "away: answers with HTTP 503"),
        ];
        for (answer, expected) in cases {
            assert_eq!(told(&answer), expected);
        }
    }

    #[test]
    fn who_is_offered_the_service_may_write() {
        let writes = "application/x-git-receive-pack-advertisement";
        assert_eq!(write(Ok(answer(200, writes))), Write::Granted);
        assert_eq!(write(Ok(answer(403, "text/plain"))), Write::Denied);
        assert_eq!(write(Ok(answer(401, "text/plain"))), Write::Denied);
        assert!(matches!(write(Ok(answer(500, "text/plain"))), Write::NotKnown(_)));
        assert!(matches!(write(Err("refused".to_owned())), Write::NotKnown(_)));
    }
}
