//! Wrapping a client: a function sees every request before it is sent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;

pub(crate) type Answer = Result<Response<Body>, kube::Error>;

/// The same client, whose requests are sent by `send`.
pub(crate) fn layered<F, A>(client: &Client, send: F) -> Client
where
    F: Fn(Client, Request<Body>) -> A + Send + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let namespace = client.default_namespace().to_owned();
    Client::new(Layer { client: client.clone(), send }, namespace)
}

struct Layer<F> {
    client: Client,
    send: F,
}

impl<F, A> tower_service::Service<Request<Body>> for Layer<F>
where
    F: Fn(Client, Request<Body>) -> A,
    A: Future<Output = Answer> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin((self.send)(self.client.clone(), request))
    }
}
