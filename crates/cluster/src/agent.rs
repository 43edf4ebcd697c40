//! As whom we ask: each request names the program and, in a run, the run, so that it can be found
//! again in the logs of whoever answered. None is waited for for ever.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response, header};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use crate::request::no_answer;

/// How long an answer may take to begin. A watch begins at once, and then goes on for long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The program alone.
pub const PROGRAM: HeaderValue =
    HeaderValue::from_static(concat!("tiphys/", env!("CARGO_PKG_VERSION")));

/// The program within a run. A run's name is made of letters, digits and dashes.
pub fn in_run(run: &str) -> HeaderValue {
    let name = format!("tiphys/{} run {run}", env!("CARGO_PKG_VERSION"));
    HeaderValue::try_from(name).unwrap_or(PROGRAM)
}

/// The same client, whose requests carry a name. The name that was given last counts.
pub fn named(client: &Client, agent: HeaderValue) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Named { client: client.clone(), agent }, namespace)
}

struct Named {
    client: Client,
    agent: HeaderValue,
}

impl tower_service::Service<Request<Body>> for Named {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, kube::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().entry(header::USER_AGENT).or_insert(self.agent.clone());
        let client = self.client.clone();
        Box::pin(async move {
            let answer = timeout(ANSWER_TIMEOUT, client.send(request)).await;
            answer.unwrap_or_else(|_| Err(no_answer(ANSWER_TIMEOUT)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Answers nothing, and keeps what it was told.
    #[derive(Clone, Default)]
    struct Ear(Arc<Mutex<Vec<String>>>);

    impl tower_service::Service<Request<Body>> for Ear {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            let agents = request.headers().get_all(header::USER_AGENT);
            let agents: Vec<&str> = agents.iter().map(|agent| agent.to_str().unwrap()).collect();
            self.0.lock().unwrap().push(agents.join(" and "));
            std::future::ready(Ok(Response::new(Body::empty())))
        }
    }

    /// Takes requests, and never answers.
    struct Silent;

    impl tower_service::Service<Request<Body>> for Silent {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = std::future::Pending<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            std::future::pending()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_cannot_be_reached() {
        let began = tokio::time::Instant::now();
        let client = named(&Client::new(Silent, "default"), PROGRAM);
        let error = client.send(Request::new(Body::empty())).await.unwrap_err();
        let error = crate::RequestError::because("it cannot be read")(error);
        assert_eq!(error.cause(), crate::Cause::Unreachable);
        assert!(error.why().contains("no answer within 20 s"), "{error}");
        assert_eq!(began.elapsed(), ANSWER_TIMEOUT);
    }

    #[tokio::test]
    async fn the_run_stands_in_every_request_of_a_run() {
        let ear = Ear::default();
        let program = named(&Client::new(ear.clone(), "default"), PROGRAM);
        let run = named(&program, in_run("0123456789ab-7"));
        for client in [program, run] {
            client.send(Request::new(Body::empty())).await.unwrap();
        }
        let version = env!("CARGO_PKG_VERSION");
        let expected =
            [format!("tiphys/{version}"), format!("tiphys/{version} run 0123456789ab-7")];
        assert_eq!(*ear.0.lock().unwrap(), expected);
    }
}
