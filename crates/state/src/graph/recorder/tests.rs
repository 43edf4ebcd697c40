//! When the graph of a run is written.

use http::Method;
use tiphys_cluster::scripted::Answer;

use super::super::tests::platform;
use super::*;
use crate::hold::tests::argocd;
use crate::lease::Lease;
use tiphys_argocd::Applications;
use tiphys_cluster::scripted::Server;

/// A recorder, and the Lease that it writes under.
async fn recorder(server: &Server) -> (GraphRecorder, Lease) {
    let platform = platform();
    let lease = Lease::acquire(server.client(), "argocd", "tiphys-prod", "us", "deploy", |_| {});
    let store = GraphStore::new(&server.client(), "argocd", &platform.name);
    let containers =
        Containers::new(&server.client(), Applications::of(&server.client(), &argocd(&["apps"])));
    let graph = DeployedGraph::new(&platform, None);
    (GraphRecorder::new(store, containers, graph), lease.await.unwrap())
}

async fn kept(server: &Server) -> Vec<String> {
    let store = GraphStore::new(&server.client(), "argocd", &platform().name);
    let graph = store.read().await.unwrap();
    graph.into_iter().flat_map(|graph| graph.gone).collect()
}

fn writes(server: &Server) -> usize {
    server.writes().iter().filter(|write| write.contains("configmaps")).count()
}

/// An app every 0.9 seconds.
async fn run(recorder: &GraphRecorder, apps: &str) {
    for app in apps.chars() {
        recorder.change(|graph| graph.removed(&app.to_string()));
        sleep(Duration::from_millis(900)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_written_in_batches() {
    let server = Server::default();
    let (recorder, lease) = recorder(&server).await;
    let looks = async {
        run(&recorder, "abcd").await;
        assert_eq!(writes(&server), 0);
        run(&recorder, "efg").await;
        assert_eq!((writes(&server), kept(&server).await.concat()), (1, "abcdef".to_owned()));
        sleep(Duration::from_secs(60)).await;
        assert_eq!((writes(&server), kept(&server).await.concat()), (2, "abcdefg".to_owned()));
        run(&recorder, "h").await;
    };
    recorder.during(&lease.fence(), looks).await;
    assert_eq!(writes(&server), 2);
    recorder.finish().await.unwrap();
    assert_eq!((writes(&server), kept(&server).await.concat()), (3, "abcdefgh".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_tried_again_and_ends_nothing() {
    let late = Answer::After(Duration::from_secs(20), Box::new(Answer::Cut));
    for answer in [Answer::refused(403, "no"), Answer::refused(500, "no"), Answer::Cut, late] {
        for method in [Method::GET, Method::PATCH] {
            let server = Server::default();
            let (recorder, lease) = recorder(&server).await;
            server.next(method, "configmaps", answer.clone());
            let run = async {
                run(&recorder, "a").await;
                sleep(Duration::from_secs(16)).await;
            };
            recorder.during(&lease.fence(), run).await;
            assert_eq!(kept(&server).await, ["a"], "{answer:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_run_waits_for_the_write_that_is_under_way() {
    let server = Server::default();
    let (recorder, lease) = recorder(&server).await;
    let slow = Answer::After(Duration::from_secs(3), Box::new(Answer::refused(404, "not found")));
    server.next(Method::GET, "configmaps", slow);
    // Nothing else happens while it is under way, not even another write.
    recorder.during(&lease.fence(), run(&recorder, "abcdef")).await;
    assert_eq!((writes(&server), kept(&server).await.concat()), (1, "abcdef".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_is_written() {
    let server = Server::default();
    let (recorder, lease) = recorder(&server).await;
    let fence = lease.fence();
    lease.release().await.unwrap();
    recorder.during(&fence, run(&recorder, "abcdefghijkl")).await;
    assert_eq!(writes(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn the_last_write_survives_an_odd_answer_and_tells_what_lasts() {
    for (times, ends_well) in [(1, true), (2, true), (3, false)] {
        let server = Server::default();
        let (recorder, _lease) = recorder(&server).await;
        recorder.change(|graph| graph.removed("a"));
        for _ in 0..times {
            server.next(Method::PATCH, "configmaps", Answer::refused(409, "odd"));
        }
        assert_eq!(recorder.finish().await.is_ok(), ends_well, "{times}");
    }
}
