//! Longest paths: layers, ranks, the critical path.

use std::cmp::Reverse;
use std::time::Duration;

use tiphys_model::{AppIx, Graph};

pub(crate) struct Paths {
    /// Topological depth of each app.
    pub(crate) layers: Vec<u32>,
    /// Longest sum of times from each app to an end, its own included.
    pub(crate) ranks: Vec<Duration>,
    /// The place of each app in the order of rank, then name: the smallest starts first.
    pub(crate) priorities: Vec<u32>,
    /// The chain of apps that no amount of concurrency can shorten.
    pub(crate) critical: Vec<AppIx>,
}

/// Measures a graph without cycles whose apps are sorted by name.
pub(crate) fn measure(graph: &Graph, times: &[Duration]) -> Paths {
    let order = graph.topological();
    let mut layers = vec![0; graph.len()];
    for &app in &order {
        let below = graph.dependencies(app).iter().map(|d| layers[d.position()] + 1);
        layers[app.position()] = below.max().unwrap_or(0);
    }
    let mut ranks = vec![Duration::ZERO; graph.len()];
    for &app in order.iter().rev() {
        let rest = graph.dependants(app).iter().map(|d| ranks[d.position()]);
        ranks[app.position()] = times[app.position()] + rest.max().unwrap_or_default();
    }
    let mut by_rank: Vec<AppIx> = graph.apps().collect();
    by_rank.sort_by_key(|app| (Reverse(ranks[app.position()]), *app));
    let mut priorities = vec![0; graph.len()];
    for (priority, app) in (0..).zip(&by_rank) {
        priorities[app.position()] = priority;
    }
    let critical = critical_path(graph, by_rank.first().copied(), &priorities);
    Paths { layers, ranks, priorities, critical }
}

/// From the app of the highest rank, always on to the dependant of the highest rank.
fn critical_path(graph: &Graph, first: Option<AppIx>, priorities: &[u32]) -> Vec<AppIx> {
    std::iter::successors(first, |app| {
        graph.dependants(*app).iter().copied().min_by_key(|app| priorities[app.position()])
    })
    .collect()
}
