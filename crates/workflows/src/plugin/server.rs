//! The plugin's side of the protocol: one path, one token, JSON.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tiphys_model::{Exit, Explain, Explanation};
use tokio::net::TcpListener;

use crate::nodes::PLUGIN_PORT;

const EXECUTE: &str = "/api/v1/template.execute";
/// Argo Workflows has put it there for this plugin alone.
const TOKEN: &str = "/var/run/argo/token";

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum PluginError {
    Token(#[source] io::Error),
    Listen(#[source] io::Error),
}

impl Explain for PluginError {
    fn explain(&self) -> Explanation {
        match self {
            PluginError::Token(source) => Explanation::new(
                Exit::Configuration,
                "the token of the plugin is missing",
                format!("cannot read {TOKEN}: {source}"),
            )
            .hint("`tiphys executor plugin` runs in the pods that Argo Workflows makes for nodes"),
            PluginError::Listen(source) => Explanation::new(
                Exit::Failed,
                format!("cannot listen on port {PLUGIN_PORT}"),
                source.to_string(),
            ),
        }
    }
}

/// Serves whoever is in the same pod and has the token.
pub(super) async fn serve(answer: impl Fn() -> Value) -> Result<(), PluginError> {
    let token = std::fs::read_to_string(Path::new(TOKEN)).map_err(PluginError::Token)?;
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, PLUGIN_PORT)).await.map_err(PluginError::Listen)?;
    let expected = format!("Bearer {}", token.trim());
    let mut connections = futures::stream::FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.map_err(PluginError::Listen)?;
                let respond = service_fn(|request: Request<Incoming>| {
                    let answered = respond(&request, &expected, &answer);
                    async move { Ok::<_, Infallible>(answered) }
                });
                connections.push(http1::Builder::new().serve_connection(TokioIo::new(stream), respond));
            }
            Some(ended) = futures::StreamExt::next(&mut connections) => {
                if let Err(error) = ended {
                    tracing::debug!("a connection of the agent ended: {error}");
                }
            }
        }
    }
}

/// What is asked about does not matter: all nodes are of one run.
fn respond<B>(
    request: &Request<B>,
    expected: &str,
    answer: &impl Fn() -> Value,
) -> Response<String> {
    let given = request.headers().get(header::AUTHORIZATION);
    let (status, body) = if given.is_none_or(|given| given.as_bytes() != expected.as_bytes()) {
        (StatusCode::UNAUTHORIZED, String::new())
    } else if (request.method(), request.uri().path()) != (&Method::POST, EXECUTE) {
        (StatusCode::NOT_FOUND, String::new())
    } else {
        (StatusCode::OK, answer().to_string())
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_agent_is_answered_and_only_about_nodes() {
        let asked = |method: &str, path: &str, token: Option<&str>| {
            let mut request = Request::builder().method(method).uri(path);
            if let Some(token) = token {
                request = request.header("authorization", token);
            }
            let request = request.body(()).unwrap();
            let response = respond(&request, "Bearer secret", &|| json!({ "node": {} }));
            (response.status().as_u16(), response.into_body())
        };
        let right = Some("Bearer secret");
        assert_eq!(asked("POST", EXECUTE, right), (200, r#"{"node":{}}"#.to_owned()));
        assert_eq!(asked("GET", EXECUTE, right).0, 404);
        assert_eq!(asked("POST", "/api/v1/workflow.preOperate", right).0, 404);
        for wrong in [None, Some("Bearer secre"), Some("Bearer secret2"), Some("secret")] {
            assert_eq!(asked("POST", EXECUTE, wrong).0, 401, "{wrong:?}");
        }
    }
}
