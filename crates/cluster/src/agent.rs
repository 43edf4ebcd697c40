//! As whom we ask: each request names the program and, in a run, the run, so that it can be found
//! again in the logs of whoever answered.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, header};
use kube::Client;
use kube::client::Body;

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
        Box::pin(async move { client.send(request).await })
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
