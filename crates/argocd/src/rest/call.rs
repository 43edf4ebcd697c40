//! One request to Argo CD's API, and what its answers mean.

use std::time::{Duration, Instant};

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{REQUEST_TIMEOUT, RestClient, Token};
use crate::messages::{BLOCKED_BY_WINDOW, OPERATION_IN_PROGRESS};
use tiphys_cluster::{agent, request_ended};
use tiphys_model::chain;

/// How long a large answer may take over a slow link.
const LONGEST_ANSWER: Duration = Duration::from_secs(120);
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

/// What is said instead of an answer. A stream says it inside of `error`.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Problem {
    Stream { error: Told },
    Plain(Told),
}

#[derive(serde::Deserialize)]
struct Told {
    message: String,
}

/// One line of a stream.
#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part<A> {
    Result(A),
    Error(Told),
}

impl RestClient {
    /// `path` is relative to `/api/v1/`, unless it begins with a slash. A token that was revoked is renewed as long as there is a
    /// new one: whoever rotates it does not disturb a run, not even by doing so twice.
    pub async fn call<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
        timeout: Duration,
    ) -> Result<A, CallError> {
        let answer = self.exchange(method, path, body, timeout).await?;
        serde_json::from_slice(&answer).map_err(|error| CallError::unreadable(&error))
    }

    /// The parts of an answer that Argo CD sends one by one, once it has sent them all.
    pub async fn read_stream<A: DeserializeOwned>(
        &self,
        path: &str,
        timeout: Duration,
    ) -> Result<Vec<A>, CallError> {
        parts(&self.exchange(Method::GET, path, None::<&()>, timeout).await?)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
        timeout: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let mut renewals = 0;
        loop {
            let used = self.token.as_ref().map(Token::now);
            let began = Instant::now();
            let answer = self.exchange_once(method.clone(), path, body, timeout).await;
            let outcome = answer.as_ref().map_or_else(ToString::to_string, |_| "ok".to_owned());
            request_ended("argocd", &method, path, &outcome, began);
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

    async fn exchange_once(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
        timeout: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let effect = effect_timeout(&method, path, timeout);
        if let (Some(guard), Some(effect)) = (&self.caller.guard, effect)
            && !guard(effect)
        {
            return Err(unanswered(agent::LATE.to_owned()));
        }
        let request = self.request(method, path, body).map_err(|error| CallError::Refused {
            refusal: Refusal::Other,
            message: chain(&*error),
        })?;
        let answer = self.http.request(request);
        let answer = agent::within(timeout, answer).await.ok_or_else(|| late(timeout))?;
        let answer = answer.map_err(|e| unanswered(chain(&e)))?;
        let status = answer.status();
        let body = read(answer.into_body(), timeout).await?;
        if status.is_success() { Ok(body) } else { Err(refused(status, told(status, &body))) }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Request<Full<Bytes>>, Box<dyn std::error::Error>> {
        let folder = if path.starts_with('/') { "" } else { "/api/v1/" };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{folder}{path}", self.base))
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

/// How long after it is sent a request may still change something; `None`: it only reads. A refresh
/// is a GET, is written into the Application at once, and then waited for.
fn effect_timeout(method: &Method, path: &str, timeout: Duration) -> Option<Duration> {
    let refreshes = path.contains("&refresh=");
    match *method {
        Method::GET if refreshes => Some(timeout.min(REQUEST_TIMEOUT)),
        Method::GET => None,
        _ => Some(timeout),
    }
}

fn unanswered(message: String) -> CallError {
    CallError::Unanswered { message }
}

impl CallError {
    pub(super) fn unreadable(error: &serde_json::Error) -> Self {
        unanswered(format!("invalid response: {error}"))
    }
}

/// The message of an error response.
fn told(status: StatusCode, body: &[u8]) -> String {
    match serde_json::from_slice(body) {
        Ok(Problem::Stream { error: told } | Problem::Plain(told)) => told.message,
        Err(_) => format!("{status} {}", String::from_utf8_lossy(body).trim()),
    }
}

fn parts<A: DeserializeOwned>(body: &[u8]) -> Result<Vec<A>, CallError> {
    let parts = serde_json::Deserializer::from_slice(body).into_iter();
    let part = |part| match part {
        Ok(Part::Result(part)) => Ok(part),
        Ok(Part::Error(told)) => Err(unanswered(told.message)),
        Err(error) => Err(CallError::unreadable(&error)),
    };
    parts.map(part).collect()
}

/// Reads an answer to its end. Over a slow link a large one takes its time: it is given up only when
/// nothing more comes, or never an end.
async fn read<B>(mut body: B, stalled: Duration) -> Result<Vec<u8>, CallError>
where
    B: Body + Unpin,
    B::Data: AsRef<[u8]>,
    B::Error: std::error::Error + 'static,
{
    let mut bytes = Vec::new();
    let all = async {
        loop {
            let next = tokio::time::timeout(stalled, body.frame()).await;
            let Some(frame) = next.map_err(|_| late(stalled))? else { return Ok(()) };
            let frame = frame.map_err(|e| CallError::Unanswered { message: chain(&e) })?;
            if let Some(data) = frame.data_ref() {
                bytes.extend_from_slice(data.as_ref());
            }
        }
    };
    let longest = stalled.max(LONGEST_ANSWER);
    tokio::time::timeout(longest, all).await.map_err(|_| late(longest))??;
    Ok(bytes)
}

fn late(timeout: Duration) -> CallError {
    CallError::Unanswered { message: format!("no answer within {} s", timeout.as_secs()) }
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
    use futures::StreamExt;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// How an answer of so many parts is read, each this long after the one before.
    async fn answer(parts: u64, pause: Duration) -> Result<Vec<u8>, CallError> {
        let body = futures::stream::iter(0..parts).then(async |_| {
            tokio::time::sleep(pause).await;
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(b"x")))
        });
        read(StreamBody::new(Box::pin(body)), Duration::from_secs(10)).await
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_take_its_time_as_long_as_it_goes_on() {
        assert_eq!(answer(12, Duration::from_secs(9)).await.unwrap(), [b'x'; 12]);
        for (parts, pause, expected) in [(2, 11, "within 10 s"), (20, 9, "within 120 s")] {
            let error = answer(parts, Duration::from_secs(pause)).await.unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_refresh_counts_as_a_change() {
        let minute = Duration::from_secs(60);
        let cases = [
            (Method::GET, "applications/a?project=p", None),
            (Method::GET, "applications/a?project=p&refresh=hard", Some(REQUEST_TIMEOUT)),
            (Method::POST, "applications/a/sync", Some(minute)),
        ];
        for (method, path, expected) in cases {
            assert_eq!(effect_timeout(&method, path, minute), expected, "{method} {path}");
        }
    }

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

    #[test]
    fn what_a_server_says_is_found_in_answers_and_in_streams() {
        let told = |body: &str| told(StatusCode::FORBIDDEN, body.as_bytes());
        let plain = r#"{"error":"permission denied","code":7,"message":"permission denied"}"#;
        let stream = r#"{"error":{"grpc_code":7,"http_code":403,"message":"permission denied"}}"#;
        assert_eq!([told(plain), told(stream)], ["permission denied"; 2]);
        assert_eq!(told("a proxy\n"), "403 Forbidden a proxy");
    }

    #[test]
    fn a_stream_is_read_to_its_end_or_to_what_went_wrong() {
        let read = |body: &str| parts::<u32>(body.as_bytes());
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("{\"result\":1}\n{\"result\":2}\n"), Ok(vec![1, 2]));
        let broken = read("{\"result\":1}\n{\"error\":{\"message\":\"no pod\"}}\n");
        assert_eq!(broken, Err(unanswered("no pod".to_owned())));
        assert!(read("{\"result\":1}\n{\"res").is_err());
    }
}
