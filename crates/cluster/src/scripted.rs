//! An API server that answers by script, for tests of how we react to answers that a real one
//! gives rarely: conflicts, refusals, slow answers and cut connections. What a server means by its
//! answers is tested on a real one.

mod server;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

pub use server::{Meant, Objects, REFUSALS, Server, failures};

/// A request, as the script sees it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// `Null` without a body.
    pub body: Value,
}

impl Asked {
    /// Method, kind and name: `PATCH applications/vault`.
    #[must_use]
    pub fn summary(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        let (kind, name) = kind_and_name(path);
        match name {
            Some(name) => format!("{} {kind}/{name}", self.method),
            None => format!("{} {kind}", self.method),
        }
    }
}

/// Of `/api/v1/[namespaces/x/]kind[/name]` or `/apis/group/version/[namespaces/x/]kind[/name]`.
fn kind_and_name(path: &str) -> (&str, Option<&str>) {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let rest = parts.get(if parts[0] == "api" { 2.. } else { 3.. }).unwrap_or_default();
    match rest {
        [kind] | ["namespaces", _, kind] => (kind, None),
        ["namespaces", _, kind, name, ..] | [kind, name, ..] => (kind, Some(name)),
        [] => (parts[0], None),
    }
}

/// What the script answers.
#[derive(Debug, Clone)]
pub enum Answer {
    Object(Value),
    /// A `Status` with this code and message.
    Refused(u16, String),
    /// Nobody knows the kind: the API server answers with plain text.
    UnknownKind,
    /// The connection is cut. Whether the request took effect is up to the script.
    Cut,
    /// The answer, later.
    After(Duration, Box<Answer>),
}

impl Answer {
    #[must_use]
    pub fn refused(code: u16, message: &str) -> Self {
        Answer::Refused(code, message.to_owned())
    }

    fn response(self) -> io::Result<Response<Body>> {
        let (code, body) = match self {
            Answer::Object(value) => (200, value.to_string()),
            Answer::UnknownKind => (404, "404 page not found\n".to_owned()),
            Answer::Refused(code, message) => {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "code": code, "reason": reason(code), "message": message,
                });
                (code, status.to_string())
            }
            Answer::Cut => return Err(io::ErrorKind::ConnectionReset.into()),
            Answer::After(..) => unreachable!("was waited for"),
        };
        let body = Body::from(body.into_bytes());
        let response = Response::builder().status(code).header("content-type", "application/json");
        Ok(response.body(body).expect("a code and a body make a response"))
    }
}

/// The word that an API server says with a code, where clients go by it.
fn reason(code: u16) -> &'static str {
    match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    }
}

/// A client whose requests `script` answers, one after the other.
pub fn client(script: impl FnMut(&Asked) -> Answer + Send + 'static) -> Client {
    Client::new(Scripted(Arc::new(Mutex::new(script))), "default")
}

type Script = Arc<Mutex<dyn FnMut(&Asked) -> Answer + Send>>;

struct Scripted(Script);

impl tower_service::Service<Request<Body>> for Scripted {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let script = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let asked = Asked {
                method: head.method,
                path: head.uri.to_string(),
                body: if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? },
            };
            let mut answer = (script.lock().expect("a script does not panic"))(&asked);
            while let Answer::After(wait, then) = answer {
                tokio::time::sleep(wait).await;
                answer = *then;
            }
            answer.response()
        })
    }
}
