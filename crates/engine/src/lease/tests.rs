//! How we react to what an API server answers about a Lease, and that no two runs ever act at the
//! same time.

mod rivals;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tiphys_cluster::scripted::{self, Answer, Asked};

use super::*;

/// A Lease in a server that checks versions as a real one does, and answers as it should unless a
/// test says otherwise.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    /// What the next requests are answered with instead.
    instead: Vec<Instead>,
}

/// An answer that replaces the right one.
struct Instead {
    to: Method,
    answer: Answer,
    /// The request takes effect all the same.
    done: bool,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        scripted::client(move |asked| server.answer(asked))
    }

    fn answer(&self, asked: &Asked) -> Answer {
        let mut state = self.0.lock().unwrap();
        let instead = match state.instead.first() {
            Some(next) if next.to == asked.method => Some(state.instead.remove(0)),
            Some(_) | None => None,
        };
        match instead {
            Some(Instead { answer, done: false, .. }) => answer,
            Some(Instead { answer, done: true, .. }) => {
                state.serve(asked);
                answer
            }
            None => state.serve(asked),
        }
    }

    fn next(&self, to: Method, answer: Answer) {
        self.0.lock().unwrap().instead.push(Instead { to, answer, done: false });
    }

    /// The request arrives, and its answer does not.
    fn lose_answer(&self, to: Method) {
        self.0.lock().unwrap().instead.push(Instead { to, answer: Answer::Cut, done: true });
    }

    fn holder(&self) -> Option<String> {
        let state = self.0.lock().unwrap();
        let holder = state.lease.as_ref()?.pointer("/spec/holderIdentity")?;
        holder.as_str().map(str::to_owned)
    }

    /// Somebody else writes.
    fn write(&self, holder: Option<&str>) {
        let mut state = self.0.lock().unwrap();
        let lease = json!({ "spec": { "holderIdentity": holder, "leaseTransitions": 7 } });
        state.store(lease);
    }

    fn delete(&self) {
        self.0.lock().unwrap().lease = None;
    }
}

impl State {
    fn store(&mut self, mut lease: Value) -> Answer {
        self.version += 1;
        lease["metadata"]["name"] = "tiphys-prod".into();
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(lease.clone());
        Answer::Object(lease)
    }

    fn serve(&mut self, asked: &Asked) -> Answer {
        match (&asked.method, &self.lease) {
            (&Method::GET, Some(lease)) => Answer::Object(lease.clone()),
            (&Method::POST, None) => self.store(asked.body.clone()),
            (&Method::POST, Some(_)) => Answer::refused(409, "already exists"),
            (&Method::PUT, Some(lease)) => {
                let version = "/metadata/resourceVersion";
                if asked.body.pointer(version) == lease.pointer(version) {
                    self.store(asked.body.clone())
                } else {
                    Answer::refused(409, "the object has been modified")
                }
            }
            _ => Answer::refused(404, "not found"),
        }
    }
}

async fn acquire(server: &Server) -> Result<Lease, ClusterError> {
    Lease::acquire(server.client(), "argocd", "tiphys-prod", "us", "deploy", |_| {}).await
}

async fn held() -> (Server, Lease) {
    let server = Server::default();
    let lease = acquire(&server).await.unwrap();
    (server, lease)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_free_is_taken_with_the_next_epoch() {
    let (server, lease) = held().await;
    assert_eq!((server.holder().as_deref(), lease.epoch()), (Some("us"), 1));
    lease.release().await.unwrap();
    assert_eq!(server.holder(), None);
    assert_eq!(acquire(&server).await.unwrap().epoch(), 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_quicker_has_it() {
    let server = Server::default();
    server.next(Method::POST, Answer::refused(409, "already exists"));
    let lease = acquire(&server).await.unwrap();
    assert_eq!(lease.epoch(), 1, "it was asked for again");
    let server = Server::default();
    server.write(None);
    server.next(Method::PUT, Answer::refused(409, "modified"));
    assert_eq!(acquire(&server).await.unwrap().epoch(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_replaced_after_the_duration_and_named_meanwhile() {
    let server = Server::default();
    server.write(Some("the dead"));
    let began = Instant::now();
    let named = Mutex::new(Vec::new());
    let tell = |holder: &str| named.lock().unwrap().push(holder.to_owned());
    let lease = Lease::acquire(server.client(), "argocd", "tiphys-prod", "us", "deploy", tell);
    lease.await.unwrap();
    assert_eq!(began.elapsed(), DURATION);
    assert_eq!(*named.lock().unwrap(), ["the dead"]);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_is_alive_keeps_it() {
    let server = Server::default();
    server.write(Some("the living"));
    let renewing = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            server.write(Some("the living"));
        }
    };
    let error = tokio::select! {
        taken = acquire(&server) => taken.err().unwrap(),
        () = renewing => unreachable!("renews for ever"),
    };
    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.why.contains("the living"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_said_at_once() {
    for (code, kind) in [
        (401, Kind::Denied),
        (403, Kind::Denied),
        (410, Kind::Failed),
        (429, Kind::Unreachable),
        (500, Kind::Failed),
        (503, Kind::Unreachable),
    ] {
        for method in [Method::GET, Method::POST] {
            let server = Server::default();
            server.next(method.clone(), Answer::refused(code, "no"));
            let error = acquire(&server).await.err().unwrap();
            assert_eq!(error.kind, kind, "{method} {code}: {error}");
        }
    }
    let server = Server::default();
    server.next(Method::POST, Answer::Cut);
    assert_eq!(acquire(&server).await.err().unwrap().kind, Kind::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_does_not_make_the_lease_longer() {
    let server = Server::default();
    let slow = Answer::After(seconds(25), Box::new(Answer::Cut));
    let lease = acquire(&server).await;
    let mut lease = lease.unwrap();
    assert!(lease.fence().allows(seconds(29)) && !lease.fence().allows(seconds(30)));
    server.next(Method::PUT, slow);
    assert!(matches!(lease.renew().await, Err(NotRenewed::Unanswered(_))));
    assert!(lease.fence().allows(seconds(4)) && !lease.fence().allows(seconds(5)));
    tokio::time::sleep(seconds(5)).await;
    assert!(lease.has_run_out());
    // Nobody took it, so a late renewal makes it ours again, from when it was sent.
    lease.renew().await.unwrap();
    assert!(lease.fence().allows(seconds(29)) && !lease.has_run_out());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_was_lost_is_recognised() {
    let (server, mut lease) = held().await;
    server.lose_answer(Method::PUT);
    tokio::time::sleep(RENEWAL).await;
    assert!(matches!(lease.renew().await, Err(NotRenewed::Unanswered(_))));
    let fence = lease.fence();
    lease.renew().await.unwrap();
    assert!(!fence.allows(seconds(26)), "a conflict proves nothing about when it was renewed");
    lease.renew().await.unwrap();
    assert!(fence.allows(seconds(29)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_taken_or_deleted_is_lost_and_nothing_is_sent_any_more() {
    let other: fn(&Server) = |server| server.write(Some("another"));
    let nobody: fn(&Server) = |server| server.write(None);
    let gone: fn(&Server) = Server::delete;
    for (change, expected) in [(other, "another"), (nobody, "nobody"), (gone, "nobody")] {
        let (server, mut lease) = held().await;
        change(&server);
        match lease.renew().await {
            Err(NotRenewed::Lost { holder }) => assert_eq!(holder, expected),
            other => panic!("{other:?}"),
        }
        assert!(lease.has_run_out() && !lease.fence().allows(Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_renewals_ends_it_when_it_runs_out_and_not_before() {
    for code in [401, 403, 410, 429, 500] {
        let (server, mut lease) = held().await;
        for _ in 0..9 {
            server.next(Method::PUT, Answer::refused(code, "no"));
        }
        let began = Instant::now();
        let error = lease.keep().await;
        assert_eq!(began.elapsed(), DURATION, "{code}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_late_is_not_taken_from_its_next_holder() {
    let (server, lease) = held().await;
    server.write(Some("another"));
    lease.release().await.unwrap();
    assert_eq!(server.holder().as_deref(), Some("another"));
}
