//! One odd answer is asked for again. While an API server starts it knows neither tokens nor roles,
//! and whatever stands before it may be busy for a moment; none of that means anything.

use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Method, Request, header};
use kube::Client;
use kube::client::Body;

use crate::layer::{Answer, layered};

/// How a request ended, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Answered(u16),
    /// The connection was refused, or ended without an answer.
    Cut,
}

/// How long to wait before it is sent again, if at all. `tried` counts from one.
fn again(repeatable: bool, outcome: Outcome, tried: u32) -> Option<Duration> {
    let most = match outcome {
        // What is really denied should not be slow: some ask for every kind there is.
        Outcome::Answered(401 | 403) => 2,
        // These have had no effect.
        Outcome::Answered(429 | 503) => 3,
        // Nobody knows what came of these.
        Outcome::Answered(500 | 502 | 504) | Outcome::Cut if repeatable => 3,
        Outcome::Answered(_) | Outcome::Cut => 1,
    };
    (tried < most).then_some(Duration::from_millis(if tried == 1 { 250 } else { 1000 }))
}

/// Whether a second time changes nothing: it only reads, deletes, or says how something should be.
fn is_repeatable(request: &Parts) -> bool {
    let content = request.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let applies = content.is_some_and(|content| content.starts_with(b"application/apply-patch"));
    match request.method {
        Method::GET | Method::HEAD | Method::DELETE => true,
        Method::PATCH => applies,
        _ => false,
    }
}

/// The same client, with patience.
pub(crate) fn patient(client: &Client) -> Client {
    layered(client, send)
}

async fn send(client: Client, request: Request<Body>) -> Answer {
    // Whoever watches goes on by itself, and a connection that is forwarded is another protocol.
    let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    if watches || request.headers().contains_key(header::UPGRADE) {
        return client.send(request).await;
    }
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let repeatable = is_repeatable(&parts);
    let mut tried = 0;
    loop {
        let copy = Request::from_parts(parts.clone(), Body::from(body.to_vec()));
        let answer = client.send(copy).await;
        tried += 1;
        let outcome = match &answer {
            Ok(answer) => Outcome::Answered(answer.status().as_u16()),
            Err(_) => Outcome::Cut,
        };
        match again(repeatable, outcome, tried) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::{Body, Method, Request, is_repeatable, patient};
    use crate::scripted::{self, Answer};

    /// The code that somebody gets who is patient, and how often the server was asked.
    async fn told(method: Method, path: &str, answers: &[Answer]) -> (Option<u16>, usize) {
        let asked = Arc::new(Mutex::new(0));
        let (count, answers) = (asked.clone(), answers.to_vec());
        let client = scripted::client(move |_| {
            let mut count = count.lock().unwrap();
            *count += 1;
            answers.get(*count - 1).cloned().unwrap_or(Answer::Object(json!({})))
        });
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::from(b"{}".to_vec())).unwrap();
        let answer = patient(&client).send(request).await;
        let asked = *asked.lock().unwrap();
        (answer.ok().map(|answer| answer.status().as_u16()), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_odd_is_asked_again_and_what_lasts_is_told() {
        let refused = |code| Answer::refused(code, "odd");
        let get = async |answers: &[Answer]| told(Method::GET, "/api/v1/pods", answers).await;
        for code in [401, 403, 429, 500, 502, 503, 504] {
            assert_eq!(get(&[refused(code)]).await, (Some(200), 2), "{code}");
            let lasts = if code < 429 { 2 } else { 3 };
            let most: Vec<Answer> = (0..5).map(|_| refused(code)).collect();
            assert_eq!(get(&most).await, (Some(code), lasts), "{code}");
        }
        assert_eq!(get(&[Answer::Cut, Answer::Cut]).await, (Some(200), 3));
        assert_eq!(get(&[Answer::Cut, Answer::Cut, Answer::Cut]).await, (None, 3));
        for code in [404, 409, 410, 422] {
            assert_eq!(get(&[refused(code)]).await, (Some(code), 1), "{code} is an answer");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_had_an_effect_is_not_sent_twice() {
        for method in [Method::POST, Method::PATCH, Method::PUT] {
            let send =
                async |answer: Answer| told(method.clone(), "/api/v1/pods/a", &[answer]).await;
            for code in [500, 502, 504] {
                assert_eq!(send(Answer::refused(code, "odd")).await, (Some(code), 1), "{method}");
            }
            assert_eq!(send(Answer::Cut).await, (None, 1), "{method}");
            for code in [401, 403, 429, 503] {
                assert_eq!(send(Answer::refused(code, "odd")).await, (Some(200), 2), "{method}");
            }
        }
    }

    #[test]
    fn deleting_and_applying_can_be_repeated() {
        let repeatable = |method: Method, content: &str| {
            let request = Request::builder().method(method).header("content-type", content);
            is_repeatable(&request.body(()).unwrap().into_parts().0)
        };
        assert!(repeatable(Method::DELETE, "application/json"));
        assert!(repeatable(Method::PATCH, "application/apply-patch+yaml"));
        assert!(!repeatable(Method::PATCH, "application/merge-patch+json"));
        assert!(!repeatable(Method::POST, "application/json"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_its_own_affair() {
        let path = "/api/v1/pods?watch=true";
        assert_eq!(told(Method::GET, path, &[Answer::refused(503, "odd")]).await, (Some(503), 1));
    }
}
