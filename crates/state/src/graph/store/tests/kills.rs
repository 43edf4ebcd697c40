//! Whoever is killed between any two writes leaves the old graph or the new one, never an error
//! and never a mixture, and nothing of another platform changes.

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::runtime::Builder;

use super::*;

const SHARD: usize = 400;
/// As many ConfigMaps as a graph may have.
const MOST: usize = 4;
const NEIGHBOUR: &str = "/api/v1/namespaces/argocd/configmaps/tiphys-prod-1";

fn numbers(first: usize, count: usize) -> DeployedGraph {
    let number = |at: usize| (first * 10_000 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    graph((0..count).map(|at| format!("{:016x}", number(at))))
}

fn shards(graph: &DeployedGraph, shard: usize) -> usize {
    graph.encode().unwrap().len().div_ceil(shard)
}

/// A graph that takes this many ConfigMaps.
fn of_shards(count: usize, first: usize) -> DeployedGraph {
    let graphs = (0..).step_by(10).map(|size| numbers(first, size));
    graphs.into_iter().find(|graph| shards(graph, SHARD) == count).unwrap()
}

/// With one ConfigMap, with two, and so on.
fn of_all_sizes(first: usize) -> Vec<DeployedGraph> {
    (1..=MOST).map(|count| of_shards(count, first)).collect()
}

/// Killed after this many requests that change something.
fn kill_after(server: &Server, mut writes: usize) {
    let meant = move |asked: &tiphys_cluster::scripted::Asked| {
        if asked.method == Method::GET {
            return false;
        }
        let killed = writes == 0;
        writes = writes.saturating_sub(1);
        killed
    };
    server.next_where(meant, Answer::Cut);
}

/// A server on which the platform `prod-1` is deployed as well.
async fn with_neighbour() -> (Server, GraphStore, Value) {
    let server = Server::default();
    let name = PlatformName::parse("prod-1").unwrap();
    let neighbour = GraphStore::new(&server.client(), "argocd", &name);
    neighbour.write(&small("theirs")).await.unwrap();
    let theirs = server.get(NEIGHBOUR).expect("the first ConfigMap of `prod-1`");
    (server, neighbour, theirs)
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_cut_short_leaves_the_old_graph_or_the_new_one() {
    let [olds, news] = [1, 2].map(of_all_sizes);
    for old in 0..=MOST {
        for new in 1..=MOST {
            for kept in 0..=new {
                let (server, neighbour, theirs) = with_neighbour().await;
                let store = GraphStore { shard: SHARD, ..store(&server) };
                let before = (old > 0).then(|| olds[old - 1].clone());
                if let Some(before) = &before {
                    store.write(before).await.unwrap();
                }
                let after = news[new - 1].clone();
                kill_after(&server, kept);
                let written = store.write(&after).await;
                assert_eq!(written.is_ok(), kept == new, "{old} to {new}, {kept} writes");
                let expected = if kept == new { Some(after) } else { before };
                assert_eq!(store.read().await.unwrap(), expected, "{old} to {new}, {kept} writes");
                assert_eq!(server.get(NEIGHBOUR), Some(theirs));
                assert_eq!(neighbour.read().await.unwrap(), Some(small("theirs")));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_cut_short_leaves_the_graph_or_none_and_can_be_repeated() {
    let [olds, news] = [1, 2].map(of_all_sizes);
    for before in 0..=MOST {
        for now in 1..=MOST {
            for kept in 0..2 * MOST {
                let (server, _, theirs) = with_neighbour().await;
                let store = GraphStore { shard: SHARD, ..store(&server) };
                if before > 0 {
                    store.write(&olds[before - 1]).await.unwrap();
                }
                let graph = &news[now - 1];
                store.write(graph).await.unwrap();
                kill_after(&server, kept);
                if store.delete().await.is_err() {
                    let left = store.read().await.unwrap();
                    assert!(
                        left.is_none() || left.as_ref() == Some(graph),
                        "{before}, {now}, {kept}"
                    );
                    store.delete().await.unwrap();
                }
                let ours = store
                    .names
                    .all()
                    .filter(|name| server.get(&FIRST.replace("tiphys-prod", name)).is_some());
                assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new());
                assert_eq!(server.get(NEIGHBOUR), Some(theirs));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn many_writes_that_are_cut_short_leave_the_newest_that_was_not(
        shard in 150..900_usize,
        runs in vec((0..150_usize, 0..=MOST), 1..8),
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let (server, _, theirs) = with_neighbour().await;
            let store = GraphStore { shard, ..store(&server) };
            let mut newest = None;
            for (at, (size, kept)) in runs.into_iter().enumerate() {
                let graph = numbers(at, size);
                let needed = shards(&graph, shard);
                if kept < needed && needed <= MOST {
                    kill_after(&server, kept);
                }
                match store.write(&graph).await {
                    Ok(()) => newest = Some(graph),
                    Err(GraphError::TooLarge { .. }) => prop_assert!(needed > MOST),
                    Err(error) => prop_assert!(kept < needed, "{}", error),
                }
                prop_assert_eq!(&store.read().await.unwrap(), &newest);
            }
            prop_assert_eq!(server.get(NEIGHBOUR), Some(theirs));
            Ok(())
        })?;
    }
}

/// Both banks are written anew between two requests of a reader.
#[tokio::test(start_paused = true)]
async fn a_reader_that_is_overtaken_twice_reads_again() {
    let server = Server::default();
    let store = GraphStore { shard: SHARD, ..store(&server) };
    store.write(&of_shards(2, 1)).await.unwrap();
    let later = Server::default();
    let same = GraphStore { shard: SHARD, ..super::store(&later) };
    same.write(&of_shards(2, 3)).await.unwrap();
    let end = later.get(&FIRST.replace("prod", "prod.a1")).unwrap();
    let slow = Answer::After(Duration::from_secs(1), Box::new(Answer::Object(end)));
    server.next(Method::GET, "tiphys-prod.a1", slow);
    let overtake = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        store.write(&of_shards(2, 2)).await.unwrap();
        store.write(&of_shards(2, 3)).await.unwrap();
    };
    let (read, ()) = tokio::join!(store.read(), overtake);
    assert_eq!(read.unwrap(), Some(of_shards(2, 3)));
}
