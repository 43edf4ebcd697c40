//! One request to Argo CD's API, and what its answers mean.

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{RestClient, Token};
use crate::messages::{BLOCKED_BY_WINDOW, OPERATION_IN_PROGRESS};
use tiphys_cluster::agent;
use tiphys_model::chain;

/// How many new tokens one request may find refused as well.
const MOST_RENEWALS: u32 = 5;

/// Why a request did not get what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("{message}")]
    Refused { refusal: Refusal, message: String },
    /// Nobody knows whether it arrived.
    #[error("{message}")]
    Unanswered { message: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The token is not accepted.
    Unauthenticated,
    /// The account lacks a right.
    Forbidden,
    /// A window denies it, to everybody.
    Window,
    NotFound,
    /// Another operation is under way, or somebody else has just changed it.
    Busy,
    /// Something went wrong inside the server; the next time it may not.
    Broken,
    Other,
}

#[derive(serde::Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
}

impl RestClient {
    /// `path` is relative to `/api/v1/`. A token that was revoked is renewed as long as there is a
    /// new one: whoever rotates it does not disturb a run, not even by doing so twice.
    pub async fn call<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
        timeout: Duration,
    ) -> Result<A, CallError> {
        let mut renewals = 0;
        loop {
            let used = self.token.as_ref().map(Token::now);
            let answer = self.call_once(method.clone(), path, body, timeout).await;
            let (Some(token), Some(used), Err(CallError::Refused { refusal, .. })) =
                (&self.token, used, &answer)
            else {
                return answer;
            };
            let revoked = *refusal == Refusal::Unauthenticated && renewals < MOST_RENEWALS;
            if !revoked || !token.renew(&used).await {
                return answer;
            }
            renewals += 1;
        }
    }

    async fn call_once<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
        timeout: Duration,
    ) -> Result<A, CallError> {
        let unanswered = |message: String| CallError::Unanswered { message };
        if method != Method::GET && self.caller.guard.as_ref().is_some_and(|guard| !guard(timeout))
        {
            return Err(unanswered(agent::LATE.to_owned()));
        }
        let request = self.request(method, path, body).map_err(|error| CallError::Refused {
            refusal: Refusal::Other,
            message: chain(&*error),
        })?;
        let exchange = async {
            let answer = self.http.request(request).await.map_err(|e| unanswered(chain(&e)))?;
            let status = answer.status();
            let body = answer.into_body().collect().await.map_err(|e| unanswered(chain(&e)))?;
            Ok((status, body.to_bytes()))
        };
        let (status, body) = tokio::time::timeout(timeout, exchange)
            .await
            .map_err(|_| unanswered(format!("no answer within {} s", timeout.as_secs())))??;
        if status.is_success() {
            return serde_json::from_slice(&body)
                .map_err(|error| unanswered(format!("an answer that cannot be read: {error}")));
        }
        let problem: Option<Problem> = serde_json::from_slice(&body).ok();
        let message = problem.map_or_else(
            || format!("{status} {}", String::from_utf8_lossy(&body).trim()),
            |problem| problem.message,
        );
        Err(refused(status, message))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Request<Full<Bytes>>, Box<dyn std::error::Error>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}/api/v1/{path}", self.base))
            .header(header::USER_AGENT, self.caller.agent.clone())
            // Compared as a whole: a charset behind it would be refused.
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            let mut value =
                header::HeaderValue::try_from(format!("Bearer {}", token.now().expose_secret()))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        Ok(request.body(Full::new(body.into()))?)
    }
}

fn refused(status: StatusCode, message: String) -> CallError {
    let refusal = match status {
        StatusCode::UNAUTHORIZED => Refusal::Unauthenticated,
        // The same status as for lack of rights.
        StatusCode::FORBIDDEN if message.contains(BLOCKED_BY_WINDOW) => Refusal::Window,
        StatusCode::FORBIDDEN => Refusal::Forbidden,
        StatusCode::NOT_FOUND => Refusal::NotFound,
        StatusCode::BAD_REQUEST if message.contains(OPERATION_IN_PROGRESS) => Refusal::Busy,
        StatusCode::CONFLICT => Refusal::Busy,
        StatusCode::TOO_MANY_REQUESTS => return CallError::Unanswered { message },
        status if status.is_server_error() => return CallError::Unanswered { message },
        _ => Refusal::Other,
    };
    CallError::Refused { refusal, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_mean_what_argo_cd_means_by_them() {
        let refusal = |status: StatusCode, message: &str| match refused(status, message.to_owned())
        {
            CallError::Refused { refusal, .. } => Some(refusal),
            CallError::Unanswered { .. } => None,
        };
        let cases = [
            (StatusCode::UNAUTHORIZED, "invalid session", Some(Refusal::Unauthenticated)),
            (StatusCode::FORBIDDEN, "permission denied", Some(Refusal::Forbidden)),
            (StatusCode::FORBIDDEN, "cannot sync: blocked by sync window", Some(Refusal::Window)),
            (
                StatusCode::NOT_FOUND,
                "applications.argoproj.io \"a\" not found",
                Some(Refusal::NotFound),
            ),
            (
                StatusCode::BAD_REQUEST,
                "another operation is already in progress",
                Some(Refusal::Busy),
            ),
            (StatusCode::BAD_REQUEST, "auto-sync currently set to main", Some(Refusal::Other)),
            (StatusCode::CONFLICT, "the object has been modified", Some(Refusal::Busy)),
            (StatusCode::TOO_MANY_REQUESTS, "", None),
            (StatusCode::SERVICE_UNAVAILABLE, "", None),
            (StatusCode::INTERNAL_SERVER_ERROR, "", None),
        ];
        for (status, message, expected) in cases {
            assert_eq!(refusal(status, message), expected, "{status} {message}");
        }
    }
}
