//! As whom we ask: each request names the program and, in a run, the run, so that it can be found
//! again in the logs of whoever answered. None is waited for for ever.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, header};
use kube::Client;

use crate::layer::layered;
use crate::request::no_answer;

/// How long an answer may take to begin. A watch begins at once, and then goes on for long. As long as
/// a Lease lasts: a cluster that is away for less should not end a run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for what changes something in a run: it must not arrive when the Lease may be another's.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Why something was not sent.
pub const LATE: &str = "the Lease was about to run out";

/// The program alone.
pub const PROGRAM: HeaderValue =
    HeaderValue::from_static(concat!("tiphys/", env!("CARGO_PKG_VERSION")));

/// The program within a run. A run's name is made of letters, digits and dashes.
pub fn in_run(run: &str) -> HeaderValue {
    let name = format!("tiphys/{} run {run}", env!("CARGO_PKG_VERSION"));
    HeaderValue::try_from(name).unwrap_or(PROGRAM)
}

/// Whether something may still be changed by a request that is given up after this time.
pub type Guard = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// The same client, whose requests carry a name. The name that was given last counts.
pub fn named(client: &Client, agent: HeaderValue) -> Client {
    wrapped(client, agent, None)
}

/// The same client as part of a run: what changes something is only sent while that is allowed.
pub fn guarded(client: &Client, run: &str, guard: Guard) -> Client {
    wrapped(client, in_run(run), Some(guard))
}

fn wrapped(client: &Client, agent: HeaderValue, guard: Option<Guard>) -> Client {
    layered(client, move |client, mut request| {
        request.headers_mut().entry(header::USER_AGENT).or_insert(agent.clone());
        let reads = [Method::GET, Method::HEAD].contains(request.method());
        let limit = match &guard {
            Some(guard) if !reads && !guard(WRITE_TIMEOUT) => None,
            Some(_) if !reads => Some(WRITE_TIMEOUT),
            Some(_) | None => Some(ANSWER_TIMEOUT),
        };
        async move {
            let limit = limit.ok_or_else(|| kube::Error::Service(LATE.into()))?;
            let answer = within(limit, client.send(request)).await;
            answer.unwrap_or_else(|| Err(no_answer(limit)))
        }
    })
}

/// What something comes to, unless the time is over. A process that was stopped for long finds its
/// time over and its connection ready at once: what was about to be sent must not be sent then.
pub async fn within<T>(limit: Duration, attempt: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = tokio::time::sleep(limit) => None,
        done = attempt => Some(done),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll};

    use http::{Request, Response};
    use kube::client::Body;

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

    #[tokio::test]
    async fn nothing_is_changed_when_the_guard_does_not_allow_it() {
        let ear = Ear::default();
        let allowed = Arc::new(AtomicBool::new(true));
        let guard = allowed.clone();
        let guard: Guard = Arc::new(move |_| guard.load(Ordering::Relaxed));
        let client = guarded(&Client::new(ear.clone(), "default"), "0123456789ab-7", guard);
        for (allow, sent) in [(true, 4), (false, 1)] {
            allowed.store(allow, Ordering::Relaxed);
            ear.0.lock().unwrap().clear();
            for method in [Method::GET, Method::POST, Method::PATCH, Method::DELETE] {
                let request = Request::builder().method(method).body(Body::empty()).unwrap();
                client.send(request).await.ok();
            }
            assert_eq!(ear.0.lock().unwrap().len(), sent, "{allow}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_cannot_be_reached() {
        let began = tokio::time::Instant::now();
        let client = named(&Client::new(Silent, "default"), PROGRAM);
        let error = client.send(Request::new(Body::empty())).await.unwrap_err();
        let error = crate::RequestError::because("it cannot be read")(error);
        assert_eq!(error.cause(), crate::Cause::Unreachable);
        assert!(error.why().contains("no answer within 30 s"), "{error}");
        assert_eq!(began.elapsed(), ANSWER_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_stopped_for_long_sends_nothing_any_more() {
        let sent = AtomicBool::new(false);
        let attempt = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            sent.store(true, Ordering::Relaxed);
        };
        let mut attempt = Box::pin(within(WRITE_TIMEOUT, attempt));
        assert!(futures::poll!(&mut attempt).is_pending());
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(attempt.await, None);
        assert!(!sent.load(Ordering::Relaxed));
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
