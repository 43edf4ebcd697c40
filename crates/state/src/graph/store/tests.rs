//! How we react to what an API server answers about the deployed graph.

mod kills;

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tiphys_cluster::scripted::Answer;
use tiphys_model::{Exit, Explain};

use super::super::tests::platform;
use super::*;
use tiphys_cluster::scripted::{REFUSALS, Server};

const FIRST: &str = "/api/v1/namespaces/argocd/configmaps/tiphys-prod";

fn store(server: &Server) -> GraphStore {
    GraphStore::new(&server.client(), "argocd", &platform().name)
}

fn graph(gone: impl IntoIterator<Item = String>) -> DeployedGraph {
    let mut graph = DeployedGraph::new(&platform(), None);
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
    assert_eq!(
        server.writes(),
        ["PATCH configmaps/tiphys-prod.a1", "PATCH configmaps/tiphys-prod"]
    );
    assert_eq!(store.read().await.unwrap(), Some(large));
    let labels = &server.get(FIRST).unwrap()["metadata"]["labels"];
    assert_eq!(labels["tiphys.dev/platform"], "prod");
}

#[tokio::test(start_paused = true)]
async fn a_graph_that_fits_into_one_config_map_takes_one_write_whatever_was_there() {
    let server = Server::default();
    let store = narrow(&server);
    store.write(&large(1)).await.unwrap();
    store.write(&small("a")).await.unwrap();
    assert_eq!(server.writes()[2..], ["PATCH configmaps/tiphys-prod"]);
    assert_eq!(store.read().await.unwrap(), Some(small("a")));
    store.delete().await.unwrap();
    assert_eq!(
        server.writes()[3..],
        ["DELETE configmaps/tiphys-prod.a1", "DELETE configmaps/tiphys-prod"]
    );
    assert_eq!(store.read().await.unwrap(), None);
    assert!(server.get(FIRST).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_graph_for_which_there_is_no_room_is_refused_before_anything_is_written() {
    let server = Server::default();
    let error = GraphStore { shard: 10, ..store(&server) }.write(&large(1)).await.unwrap_err();
    assert!(error.explain().why.contains("too large"), "{error}");
    assert!(server.writes().is_empty());
}

/// A ConfigMap with these labels and annotations.
fn map(labels: &Value, annotations: &Value, shard: &[u8]) -> Value {
    json!({
        "metadata": { "labels": labels, "annotations": annotations },
        "binaryData": { KEY: ByteString(shard.to_vec()) },
    })
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_as_a_graph_is_said_with_what_to_do() {
    let ours = json!({ PLATFORM_LABEL: "prod" });
    let whole = small("a").encode().unwrap();
    let elsewhere = |name: &str| map(&ours, &json!({ CONTINUED: name }), &whole);
    let other = json!({ "metadata": { "labels": ours }, "data": { "some": "text" } });
    for (found, expected) in [
        (map(&ours, &json!({}), b"no gzip"), true),
        (map(&ours, &json!({}), b""), true),
        (elsewhere("tiphys-prod.a1"), true),
        (elsewhere("tiphys-prod-1"), true),
        (other, false),
    ] {
        let server = Server::default();
        server.put(FIRST, found);
        match store(&server).read().await {
            Err(error) if expected => {
                assert!(error.explain().what.contains("tiphys-prod"), "{error}");
                let next = "delete the ConfigMap, then deploy again";
                assert_eq!(error.explain().next.as_deref(), Some(next));
            }
            read => assert_eq!((expected, read.unwrap()), (false, None)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_graph_of_an_older_tiphys_is_read_if_it_is_in_one_config_map() {
    let (server, ours) = (Server::default(), json!({ PLATFORM_LABEL: "prod" }));
    let whole = large(1).encode().unwrap();
    server.put(FIRST, map(&ours, &json!({}), &whole));
    assert_eq!(store(&server).read().await.unwrap(), Some(large(1)));
    let (beginning, end) = whole.split_at(whole.len() / 2);
    server.put(FIRST, map(&ours, &json!({}), beginning));
    server.put(&format!("{FIRST}-1"), map(&ours, &json!({}), end));
    let error = store(&server).read().await.unwrap_err();
    assert!(matches!(error, GraphError::Unreadable { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_this_platforms_is_neither_read_nor_written_nor_deleted() {
    for (labels, why) in [
        (json!({ PLATFORM_LABEL: "another" }), "its label tiphys.dev/platform is `another`"),
        (json!({ MANAGED_BY.0: MANAGED_BY.1 }), "it has no label tiphys.dev/platform"),
    ] {
        for name in ["tiphys-prod", "tiphys-prod.a1"] {
            let server = Server::default();
            let store = narrow(&server);
            store.write(&large(1)).await.unwrap();
            let path = FIRST.replace("tiphys-prod", name);
            server.change(|objects| {
                let mut map = objects.get(&path).unwrap();
                map["metadata"]["labels"] = labels.clone();
                objects.put(&path, map);
            });
            let (writes, before) = (server.writes(), server.get(&path));
            let read = store.read().await.map(|_| ());
            for refused in [read, store.delete().await] {
                let told = refused.unwrap_err().explain();
                assert_eq!((told.exit, &*told.why), (Exit::Configuration, why));
                assert!(told.what.contains(&format!("`{name}`")), "{}", told.what);
                assert!(told.next.is_some());
            }
            // The other bank is free for the first write, and the second would need this one.
            let twice = async {
                store.write(&large(2)).await?;
                store.write(&large(3)).await
            };
            let error = twice.await.unwrap_err();
            assert!(matches!(error, GraphError::Foreign { .. }), "{error}");
            let expected = if name == "tiphys-prod" { 0 } else { 2 };
            assert_eq!(server.writes().len(), writes.len() + expected);
            assert_eq!(server.get(&path), before);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_config_map_that_somebody_else_writes_at_the_same_time_is_not_overwritten() {
    let server = Server::default();
    store(&server).write(&small("a")).await.unwrap();
    let found = server.get(FIRST).unwrap();
    store(&server).write(&small("b")).await.unwrap();
    // What was looked at is older than what is there by now.
    server.next(Method::GET, "configmaps/tiphys-prod", Answer::Object(found));
    let error = store(&server).write(&small("c")).await.unwrap_err();
    assert_eq!(error.explain().exit, Exit::Held);
    assert_eq!(store(&server).read().await.unwrap(), Some(small("b")));
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
    assert_eq!(listed, [platform().name].into());
    // The rest of a graph whose beginning is gone.
    let ours = json!({ PLATFORM_LABEL: "another" });
    server.put(&FIRST.replace("prod", "another.b1"), map(&ours, &json!({}), b""));
    let listed = GraphStore::platforms(&server.client(), "argocd").await.unwrap();
    assert_eq!(listed, [platform().name].into());
    let selector = server.asked().last().unwrap().path.clone();
    assert!(selector.contains("labelSelector=") && selector.contains("managed-by"), "{selector}");
}
