//! Commits show on the Git server what became of their deployment.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use secrecy::SecretString;
use serde_json::{Value, json};
use tiphys_assess::deploy_loop::Next;
use tiphys_assess::deploy_loop::commit::{CommitNews, CommitState, Told};
use tiphys_cluster::RequestError;
use tiphys_cluster::names::{self, STATUS_AUTHORITY, STATUS_TOKEN, SYSTEM_NAMESPACE};
use tiphys_install::https::{Answer, Authorization, Https};
use tiphys_model::{CommitStatus, StatusProvider};
use tiphys_state::deploy_loop::{LoopState, LoopStore};
use tokio::time::Instant;

use crate::announce::cause;

/// GitHub takes no more characters, GitLab 255.
const LONGEST_WORDS: usize = 140;
/// Of what a server says to a request that it refuses.
const LONGEST_REFUSAL: usize = 200;
/// What was refused is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// What the Git server does not know yet.
#[derive(Default)]
pub(crate) struct Commits {
    refused: Option<Instant>,
}

impl Commits {
    /// Sets the status, if it is new. A refusal is noted for `status` and does not stop the loop.
    pub(crate) async fn show(
        &mut self,
        client: &Client,
        state: &LoopState,
        to: &CommitStatus,
        next: &Next,
    ) -> Result<(), RequestError> {
        let Some(mut news) = next.commit_news(state.told.as_ref()) else { return Ok(()) };
        if self.refused.is_some_and(|since| since.elapsed() < AGAIN) {
            return Ok(());
        }
        if news.state == CommitState::Failed
            && let Some(cause) = cause(client, state).await?
        {
            news.words = format!("{}: {cause}", news.words);
        }
        let refused = post(client, state, to, &news).await.err();
        self.refused = refused.is_some().then(Instant::now);
        let told = Told { revision: news.revision, state: news.state, refused };
        if state.told.as_ref() == Some(&told) {
            return Ok(());
        }
        LoopStore::new(client).note_told(&state.argocd, &state.platform, &told).await
    }
}

/// Why it was not taken, in words.
async fn post(
    client: &Client,
    state: &LoopState,
    to: &CommitStatus,
    news: &CommitNews,
) -> Result<(), String> {
    let name = names::commit_status(&state.argocd, &state.platform);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let what = format!("cannot read the Secret {name} in {SYSTEM_NAMESPACE}");
    let secret = secrets.get(&name).await.map_err(RequestError::because(what));
    let secret = secret.map_err(|error| error.to_string())?;
    let value = |key: &str| {
        let value = secret.data.as_ref()?.get(key)?;
        String::from_utf8(value.0.clone()).ok()
    };
    let token = value(STATUS_TOKEN).ok_or_else(|| format!("the Secret {name} has no token"))?;
    let https = Https::new(value(STATUS_AUTHORITY).as_deref())?;
    let (url, body) = request(to, news);
    let token = Authorization::Bearer(SecretString::from(token));
    judged(to.provider, &https.post(&url, &token, &body.to_string()).await?)
}

/// Where it is posted, and what.
fn request(to: &CommitStatus, news: &CommitNews) -> (String, Value) {
    let CommitStatus { provider, api, repository, context, link } = to;
    let words: String = news.words.chars().take(LONGEST_WORDS).collect();
    let (url, context_field) = match provider {
        StatusProvider::GitHub => (format!("{api}/repos/{repository}"), "context"),
        StatusProvider::GitLab => {
            (format!("{api}/projects/{}", repository.replace('/', "%2F")), "name")
        }
    };
    let mut body = json!({
        "state": word(*provider, news.state), "description": words, context_field: context,
    });
    if let Some(link) = link {
        body["target_url"] = link.as_str().into();
    }
    (format!("{url}/statuses/{}", news.revision), body)
}

/// What the server calls a state. GitHub has no word for what was given up for something newer.
fn word(provider: StatusProvider, state: CommitState) -> &'static str {
    match (provider, state) {
        (_, CommitState::Pending) => "pending",
        (_, CommitState::Succeeded) => "success",
        (StatusProvider::GitHub, CommitState::Failed) => "failure",
        (StatusProvider::GitHub, CommitState::Superseded) => "error",
        (StatusProvider::GitLab, CommitState::Failed) => "failed",
        (StatusProvider::GitLab, CommitState::Superseded) => "canceled",
    }
}

/// Whether the server has taken it.
fn judged(provider: StatusProvider, answer: &Answer) -> Result<(), String> {
    if answer.status.is_success() {
        return Ok(());
    }
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let said = match &said["message"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    // Somebody who died before it could be noted had told GitLab the same.
    let known = provider == StatusProvider::GitLab
        && answer.status == StatusCode::BAD_REQUEST
        && said.starts_with("Cannot transition status");
    if known {
        return Ok(());
    }
    let said: String = said.chars().take(LONGEST_REFUSAL).collect();
    Err(if said.is_empty() {
        answer.status.to_string()
    } else {
        format!("{}: {said}", answer.status)
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn to(provider: StatusProvider) -> CommitStatus {
        CommitStatus {
            provider,
            api: "https://git.example/api".to_owned(),
            repository: "team/sub/platform".to_owned(),
            context: "tiphys/prod".to_owned(),
            link: Some("https://page.example".to_owned()),
        }
    }

    fn news(state: CommitState) -> CommitNews {
        CommitNews { revision: "0123".to_owned(), state, words: "wörds".repeat(100) }
    }

    #[test]
    fn each_server_is_asked_in_its_own_way() {
        let (url, body) = request(&to(StatusProvider::GitHub), &news(CommitState::Failed));
        assert_eq!(url, "https://git.example/api/repos/team/sub/platform/statuses/0123");
        let words = "wörds".repeat(28);
        let expected = json!({
            "state": "failure", "context": "tiphys/prod", "description": words,
            "target_url": "https://page.example",
        });
        assert_eq!(body, expected);
        let without = CommitStatus { link: None, ..to(StatusProvider::GitLab) };
        let (url, body) = request(&without, &news(CommitState::Superseded));
        assert_eq!(url, "https://git.example/api/projects/team%2Fsub%2Fplatform/statuses/0123");
        let expected = json!({ "state": "canceled", "name": "tiphys/prod", "description": words });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_refusal_is_said_in_the_servers_words() {
        let answered = |code: u16, body: &str| Answer {
            status: StatusCode::from_u16(code).unwrap(),
            headers: HeaderMap::new(),
            body: body.to_owned().into(),
        };
        let (github, gitlab) = (StatusProvider::GitHub, StatusProvider::GitLab);
        let known = r#"{"message":"Cannot transition status via :enqueue from :pending"}"#;
        assert_eq!(judged(github, &answered(201, "")), Ok(()));
        assert_eq!(judged(gitlab, &answered(400, known)), Ok(()));
        assert!(judged(github, &answered(400, known)).is_err());
        let refused = |answer: &Answer| judged(gitlab, answer).unwrap_err();
        let bad = answered(401, r#"{"message":"401 Unauthorized"}"#);
        assert_eq!(refused(&bad), "401 Unauthorized: 401 Unauthorized");
        assert_eq!(refused(&answered(502, "<html>")), "502 Bad Gateway");
        let object = answered(400, r#"{"message":{"name":["is too long"]}}"#);
        assert_eq!(refused(&object), r#"400 Bad Request: {"name":["is too long"]}"#);
        let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(1000));
        assert_eq!(refused(&answered(500, &long)).len(), "500 Internal Server Error: ".len() + 200);
    }
}
