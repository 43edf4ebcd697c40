//! How we react to what an API server answers about the deployed graph.

use std::time::Duration;

use http::Method;
use serde_json::json;
use tiphys_cluster::scripted::Answer;
use tiphys_model::{Exit, Explain};

use super::*;
use crate::testkit::{self, REFUSALS, Server};

const FIRST: &str = "/api/v1/namespaces/argocd/configmaps/tiphys-prod";

fn store(server: &Server) -> GraphStore {
    GraphStore::new(&server.client(), "argocd", &testkit::platform().name)
}

fn graph(gone: impl IntoIterator<Item = String>) -> DeployedGraph {
    let mut graph = DeployedGraph::new(&testkit::platform(), None);
    graph.gone.extend(gone);
    graph
}

fn small(app: &str) -> DeployedGraph {
    graph([app.to_owned()])
}

/// A store in which a large graph takes two ConfigMaps, and a small one takes one.
fn narrow(server: &Server) -> GraphStore {
    let shard = large(1).encode().unwrap().len() * 2 / 3;
    GraphStore { shard, ..store(server) }
}

fn large(first: u64) -> DeployedGraph {
    graph(
        (first..first + 20)
            .map(|number| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
    )
}

#[tokio::test(start_paused = true)]
async fn it_is_read_as_it_was_written_in_as_many_config_maps_as_it_takes() {
    let (server, large) = (Server::default(), large(1));
    let store = narrow(&server);
    assert_eq!(store.read().await.unwrap(), None);
    store.write(&large).await.unwrap();
    assert_eq!(server.writes(), ["PATCH configmaps/tiphys-prod", "PATCH configmaps/tiphys-prod-1"]);
    assert_eq!(store.read().await.unwrap(), Some(large));
    let labels = &server.get(FIRST).unwrap()["metadata"]["labels"];
    assert_eq!(labels["tiphys.dev/platform"], "prod");
}

#[tokio::test(start_paused = true)]
async fn fewer_config_maps_than_before_leave_nothing_behind() {
    let server = Server::default();
    let store = narrow(&server);
    store.write(&large(1)).await.unwrap();
    store.write(&small("a")).await.unwrap();
    assert_eq!(
        server.writes()[2..],
        ["PATCH configmaps/tiphys-prod", "DELETE configmaps/tiphys-prod-1",]
    );
    assert_eq!(store.read().await.unwrap(), Some(small("a")));
    store.delete().await.unwrap();
    assert_eq!(store.read().await.unwrap(), None);
    assert!(server.get(FIRST).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_graph_for_which_there_is_no_room_is_refused_before_anything_is_written() {
    let server = Server::default();
    let error = GraphStore { shard: 10, ..store(&server) }.write(&large(1)).await.unwrap_err();
    assert!(error.explain().why.contains("more than there is room for"), "{error}");
    assert!(server.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_graph_that_was_written_halfway_is_not_believed() {
    let server = Server::default();
    let store = narrow(&server);
    store.write(&large(1)).await.unwrap();
    let other = large(2);
    server.next(Method::PATCH, "tiphys-prod-1", Answer::refused(500, "no"));
    assert_eq!(store.write(&other).await.unwrap_err().explain().exit, Exit::Failed);
    assert_eq!(store.read().await.unwrap_err().explain().exit, Exit::Failed);
    store.write(&other).await.unwrap();
    assert_eq!(store.read().await.unwrap(), Some(other), "writing it again repairs it");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_as_a_graph_is_said_with_what_to_do() {
    let text = |text: &str| json!({ "binaryData": { KEY: ByteString(text.into()) } });
    let other = json!({ "data": { "some": "text" } });
    for (found, expected) in [(text("no gzip"), true), (text(""), true), (other, false)] {
        let server = Server::default();
        server.put(FIRST, found);
        match store(&server).read().await {
            Err(error) if expected => {
                assert!(error.explain().what.contains("tiphys-prod"), "{error}");
                assert_eq!(error.explain().next.as_deref(), Some("delete it, and deploy again"));
            }
            read => assert_eq!((expected, read.unwrap()), (false, None)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_said_at_once_and_never_taken_for_no_graph() {
    for (code, exit) in REFUSALS {
        let server = Server::default();
        let store = store(&server);
        store.write(&small("a")).await.unwrap();
        let refuse = |method: Method| {
            server.next(method, "configmaps/tiphys-prod", Answer::refused(code, "no"));
        };
        refuse(Method::GET);
        assert_eq!(store.read().await.unwrap_err().explain().exit, exit, "read: {code}");
        refuse(Method::PATCH);
        assert_eq!(
            store.write(&small("b")).await.unwrap_err().explain().exit,
            exit,
            "write: {code}"
        );
        refuse(Method::DELETE);
        assert_eq!(store.delete().await.unwrap_err().explain().exit, exit, "delete: {code}");
        assert_eq!(store.read().await.unwrap(), Some(small("a")), "{code}");
    }
    let server = Server::default();
    server.next(Method::PATCH, "configmaps", Answer::refused(409, "another manager has it"));
    assert_eq!(store(&server).write(&small("a")).await.unwrap_err().explain().exit, Exit::Held);
}

#[tokio::test(start_paused = true)]
async fn slow_and_lost_answers() {
    let server = Server::default();
    let store = store(&server);
    server.lose_answer(Method::PATCH, "configmaps");
    assert_eq!(store.write(&small("a")).await.unwrap_err().explain().exit, Exit::Unreachable);
    assert_eq!(store.read().await.unwrap(), Some(small("a")), "it had arrived");
    let slow = Answer::After(Duration::from_secs(9), Box::new(Answer::Cut));
    server.next(Method::GET, "configmaps", slow);
    assert_eq!(store.read().await.unwrap_err().explain().exit, Exit::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn platforms_are_found_by_their_label() {
    let server = Server::default();
    store(&server).write(&small("a")).await.unwrap();
    let listed = GraphStore::platforms(&server.client(), "argocd").await.unwrap();
    assert_eq!(listed, [testkit::platform().name].into());
    let selector = server.asked().last().unwrap().path.clone();
    assert!(selector.contains("labelSelector=") && selector.contains("managed-by"), "{selector}");
}

#[tokio::test(start_paused = true)]
async fn what_was_there_before_is_unknown_only_to_who_may_not_list_it() {
    for path in ["/api/v1/namespaces", "customresourcedefinitions"] {
        for (code, exit) in REFUSALS {
            let server = Server::default();
            server.next(Method::GET, path, Answer::refused(code, "no"));
            match store(&server).list_before().await {
                Ok(None) => assert_eq!(exit, Exit::Credentials, "{path} {code}"),
                Err(error) => {
                    assert_eq!(error.explain().exit, exit, "{path} {code}");
                    assert_ne!(exit, Exit::Credentials);
                }
                Ok(Some(names)) => panic!("{names:?}"),
            }
        }
    }
    assert_eq!(store(&Server::default()).list_before().await.unwrap(), Some(Names::default()));
}
