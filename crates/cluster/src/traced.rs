//! What `-v` and `-vv` show of requests: the method, the path, and what came of it. Never a header
//! or a body: those may hold secrets.

use std::time::Instant;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;

use crate::layer::{Answer, layered};

/// The same client, whose requests are traced as they are sent: one that is repeated appears twice.
pub(crate) fn traced(client: &Client) -> Client {
    layered(client, send)
}

async fn send(client: Client, request: Request<Body>) -> Answer {
    let began = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let answer = client.send(request).await;
    let outcome = match &answer {
        Ok(answer) => answer.status().as_u16().to_string(),
        Err(error) => tiphys_model::chain(error),
    };
    request_ended("kubernetes", &method, &path, &outcome, began);
    answer
}

/// Traces a request that has ended: one that may change something for `-v`, any other for `-vv`.
pub fn request_ended(server: &str, method: &Method, path: &str, outcome: &str, began: Instant) {
    let took = began.elapsed().as_millis();
    if [Method::GET, Method::HEAD].contains(method) {
        tracing::debug!("{server}: {method} {path}: {outcome} ({took} ms)");
    } else {
        tracing::info!("{server}: {method} {path}: {outcome} ({took} ms)");
    }
}
