//! How we react to what an API server answers about a Lease, and that no two runs ever act at the
//! same time.

mod rivals;

use std::sync::Mutex;
use std::time::Duration;

use http::Method;
use serde_json::json;
use tiphys_cluster::scripted::{Answer, REFUSALS, Server};
use tiphys_model::{Exit, Explain};
use tiphys_run::Time;
use tokio::time::Instant;

use super::decide::RENEWAL;
use super::held::NotRenewed;
use super::*;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases/tiphys-prod";

/// Somebody else writes.
fn write(server: &Server, holder: Option<&str>) {
    server.put(LEASE, json!({ "spec": { "holderIdentity": holder, "leaseTransitions": 7 } }));
}

fn delete(server: &Server) {
    server.change(|objects| objects.remove(LEASE));
}

fn holder(server: &Server) -> Option<String> {
    let lease = server.get(LEASE)?;
    lease.pointer("/spec/holderIdentity")?.as_str().map(str::to_owned)
}

/// The next request of this method is answered so.
fn next(server: &Server, method: Method, answer: Answer) {
    server.next(method, "/leases", answer);
}

async fn acquire(server: &Server) -> Result<Lease, LeaseError> {
    Lease::acquire(server.client(), "argocd", "tiphys-prod", "us", "deploy", |_| {}).await
}

async fn held() -> (Server, Lease) {
    let server = Server::default();
    let lease = acquire(&server).await.unwrap();
    (server, lease)
}

/// One that only the test renews.
async fn held_by_hand() -> (Server, Lease) {
    let (server, lease) = held().await;
    lease.keeper.abort();
    (server, lease)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_free_is_taken_with_the_next_epoch() {
    let (server, lease) = held().await;
    assert_eq!((holder(&server).as_deref(), lease.epoch()), (Some("us"), 1));
    lease.release().await.unwrap();
    assert_eq!(holder(&server), None);
    assert_eq!(acquire(&server).await.unwrap().epoch(), 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_quicker_has_it() {
    let server = Server::default();
    next(&server, Method::POST, Answer::refused(409, "already exists"));
    let lease = acquire(&server).await.unwrap();
    assert_eq!(lease.epoch(), 1, "it was asked for again");
    let server = Server::default();
    write(&server, None);
    next(&server, Method::PUT, Answer::refused(409, "modified"));
    assert_eq!(acquire(&server).await.unwrap().epoch(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_replaced_after_the_duration_and_named_meanwhile() {
    let server = Server::default();
    write(&server, Some("the dead"));
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
    write(&server, Some("the living"));
    let renewing = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            write(&server, Some("the living"));
        }
    };
    let error = tokio::select! {
        taken = acquire(&server) => taken.err().unwrap(),
        () = renewing => unreachable!("renews for ever"),
    };
    assert_eq!(error.explain().exit, Exit::Held);
    assert!(error.explain().why.contains("the living"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_said_at_once() {
    for (code, exit) in REFUSALS {
        for method in [Method::GET, Method::POST] {
            let server = Server::default();
            next(&server, method.clone(), Answer::refused(code, "no"));
            let error = acquire(&server).await.err().unwrap();
            assert_eq!(error.explain().exit, exit, "{method} {code}: {error}");
        }
    }
    let server = Server::default();
    next(&server, Method::POST, Answer::Cut);
    assert_eq!(acquire(&server).await.err().unwrap().explain().exit, Exit::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_does_not_make_the_lease_longer() {
    let slow = Answer::After(seconds(25), Box::new(Answer::Cut));
    let (server, lease) = held_by_hand().await;
    assert!(lease.fence().allows(seconds(29)) && !lease.fence().allows(seconds(30)));
    next(&server, Method::PUT, slow);
    assert!(matches!(lease.held.renew().await, Err(NotRenewed::Unanswered(_))), "not awaited");
    assert!(lease.fence().allows(seconds(24)) && !lease.fence().allows(seconds(25)));
    tokio::time::sleep(seconds(25)).await;
    assert!(lease.held.has_run_out());
    // Nobody took it, so a late renewal makes it ours again, from when it was sent.
    lease.held.renew().await.unwrap();
    assert!(lease.fence().allows(seconds(29)) && !lease.held.has_run_out());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_was_lost_is_recognised() {
    let (server, lease) = held_by_hand().await;
    server.lose_answer(Method::PUT, "/leases");
    tokio::time::sleep(RENEWAL).await;
    assert!(matches!(lease.held.renew().await, Err(NotRenewed::Unanswered(_))));
    let fence = lease.fence();
    lease.held.renew().await.unwrap();
    assert!(!fence.allows(seconds(26)), "a conflict proves nothing about when it was renewed");
    lease.held.renew().await.unwrap();
    assert!(fence.allows(seconds(29)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_taken_or_deleted_is_lost_and_nothing_is_sent_any_more() {
    let other: fn(&Server) = |server| write(server, Some("another"));
    let nobody: fn(&Server) = |server| write(server, None);
    let gone: fn(&Server) = delete;
    for (change, expected) in [(other, "another"), (nobody, "nobody"), (gone, "nobody")] {
        let (server, lease) = held_by_hand().await;
        change(&server);
        match lease.held.renew().await {
            Err(NotRenewed::Lost { holder }) => assert_eq!(holder, expected),
            other => panic!("{other:?}"),
        }
        assert!(lease.held.has_run_out() && !lease.fence().allows(Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_renewals_ends_it_when_it_runs_out_and_not_before() {
    for code in [401, 403, 410, 429, 500] {
        let (server, lease) = held().await;
        for _ in 0..9 {
            next(&server, Method::PUT, Answer::refused(code, "no"));
        }
        let began = Instant::now();
        let error = lease.ended().await;
        assert_eq!(began.elapsed(), DURATION, "{code}: {error}");
    }
}

fn renewals(server: &Server) -> usize {
    server.asked().iter().filter(|asked| asked.method == Method::PUT).count()
}

#[tokio::test(start_paused = true)]
async fn it_is_renewed_whatever_its_holder_does_and_until_that_one_is_gone() {
    let (server, lease) = held().await;
    tokio::time::sleep(seconds(300)).await;
    assert!(lease.fence().allows(seconds(24)) && renewals(&server) >= 59);
    let fence = lease.fence();
    drop(lease);
    let before = renewals(&server);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(renewals(&server), before);
    assert!(!fence.allows(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn one_that_was_lost_stays_lost_for_whoever_asks() {
    let (server, lease) = held().await;
    write(&server, Some("another"));
    for _ in 0..2 {
        let error = lease.ended().await;
        assert!(matches!(error, LeaseError::Lost { ref holder } if holder == "another"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_under_way_does_not_keep_it_from_being_given_up() {
    let (server, lease) = held().await;
    let late = server.get(LEASE).unwrap();
    next(&server, Method::PUT, Answer::After(seconds(3), Box::new(Answer::Object(late))));
    tokio::time::sleep(RENEWAL + seconds(1)).await;
    let fence = lease.fence();
    lease.release().await.unwrap();
    assert_eq!(holder(&server), None);
    assert!(!fence.allows(Duration::ZERO), "the renewal does not open it again");
    tokio::time::sleep(seconds(60)).await;
    assert_eq!((holder(&server), renewals(&server)), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_late_is_not_taken_from_its_next_holder() {
    let (server, lease) = held().await;
    write(&server, Some("another"));
    lease.release().await.unwrap();
    assert_eq!(holder(&server).as_deref(), Some("another"));
}

/// A run that was stopped finds the connection closed first, and then who holds the Lease.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_stopped_learns_who_took_over_in_spite_of_a_closed_connection() {
    let (server, lease) = held().await;
    next(&server, Method::PUT, Answer::Cut);
    next(&server, Method::PUT, Answer::Cut);
    lease.held.fence.set(Time::START);
    write(&server, Some("another"));
    let error = lease.ended().await;
    assert!(matches!(error, LeaseError::Lost { ref holder } if holder == "another"), "{error}");

    let (server, lease) = held_by_hand().await;
    tokio::time::sleep(seconds(60)).await;
    next(&server, Method::PUT, Answer::Cut);
    write(&server, Some("another"));
    let error = lease.blame(timed_out()).await;
    assert!(matches!(error, LeaseError::Lost { ref holder } if holder == "another"), "{error}");
}

/// What a run that was stopped sees first when it goes on.
fn timed_out() -> LeaseError {
    let unanswered = std::io::Error::other("no answer within 60 s");
    RequestError::because("it cannot be read")(kube::Error::ReadEvents(unanswered)).into()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_stopped_blames_the_lease_that_it_lost() {
    let (server, lease) = held_by_hand().await;
    tokio::time::sleep(seconds(60)).await;
    write(&server, Some("another"));
    let error = lease.blame(timed_out()).await;
    assert!(matches!(error, LeaseError::Lost { ref holder } if holder == "another"), "{error}");
    assert!(lease.held.has_run_out());

    let (_server, lease) = held_by_hand().await;
    tokio::time::sleep(seconds(60)).await;
    let error = lease.blame(timed_out()).await;
    assert!(matches!(error, LeaseError::Request(_)), "nobody took it: {error}");
}
