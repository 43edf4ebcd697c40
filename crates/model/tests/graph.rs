//! The graph against petgraph, on random graphs with and without cycles.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::{dijkstra, has_path_connecting, is_cyclic_directed, tarjan_scc};
use petgraph::graph::{DiGraph, NodeIndex};
use proptest::prelude::*;
use tiphys_model::graph::Edge;
use tiphys_model::{AppIx, Graph};

/// Our graph, and petgraph's with the same numbers and edges from dependant to dependency.
#[derive(Debug, Clone)]
struct Pair {
    ours: Graph,
    theirs: DiGraph<(), ()>,
}

/// Few apps: the corners are knots that touch, loops on one app, and apps that hang off a knot,
/// and all of them fit in a dozen.
fn graphs() -> impl Strategy<Value = Pair> {
    (1..12usize)
        .prop_flat_map(|apps| {
            let edge = (0..apps, 0..apps);
            (Just(apps), proptest::collection::btree_set(edge, 0..=2 * apps))
        })
        .prop_map(|(apps, edges)| pair(apps, &edges))
}

fn pair(apps: usize, edges: &BTreeSet<(usize, usize)>) -> Pair {
    let ours: Vec<Edge> = edges
        .iter()
        .map(|(from, to)| Edge { dependant: AppIx::new(*from), dependency: AppIx::new(*to) })
        .collect();
    let mut theirs = DiGraph::new();
    for _ in 0..apps {
        theirs.add_node(());
    }
    for (from, to) in edges {
        theirs.add_edge(NodeIndex::new(*from), NodeIndex::new(*to), ());
    }
    Pair { ours: Graph::new(apps, &ours), theirs }
}

fn theirs(app: AppIx) -> NodeIndex {
    NodeIndex::new(app.position())
}

impl Pair {
    /// The sets of apps that depend on each other: petgraph's components without those that are
    /// a single app without a loop.
    fn knots(&self) -> Vec<BTreeSet<AppIx>> {
        let components = tarjan_scc(&self.theirs).into_iter();
        let knotted = components.filter(|component| {
            component.len() > 1 || self.theirs.contains_edge(component[0], component[0])
        });
        let mut knots: Vec<BTreeSet<AppIx>> = knotted
            .map(|component| component.iter().map(|node| AppIx::new(node.index())).collect())
            .collect();
        knots.sort();
        knots
    }

    /// Edges of the shortest way from an app back to itself.
    fn shortest_way_back(&self, app: AppIx) -> Option<usize> {
        let neighbours = self.theirs.neighbors(theirs(app));
        neighbours
            .filter_map(|next| {
                let ways = dijkstra(&self.theirs, next, Some(theirs(app)), |_| 1usize);
                ways.get(&theirs(app)).map(|length| length + 1)
            })
            .min()
    }
}

proptest! {
    #[test]
    fn neighbours_are_the_edges_in_ascending_order(pair in graphs()) {
        for app in pair.ours.apps() {
            let sorted = |direction| {
                let nodes = pair.theirs.neighbors_directed(theirs(app), direction);
                let apps: BTreeSet<AppIx> = nodes.map(|node| AppIx::new(node.index())).collect();
                apps.into_iter().collect::<Vec<AppIx>>()
            };
            prop_assert_eq!(pair.ours.dependencies(app), sorted(petgraph::Outgoing));
            prop_assert_eq!(pair.ours.dependants(app), sorted(petgraph::Incoming));
        }
    }

    #[test]
    fn cycles_are_found_exactly_where_there_are_any(pair in graphs()) {
        let cycles = pair.ours.cycles();
        prop_assert_eq!(!cycles.is_empty(), is_cyclic_directed(&pair.theirs));
        // One for each knot, and it begins with the smallest app of the knot.
        let begins: Vec<AppIx> = cycles.iter().map(|cycle| cycle[0]).collect();
        let smallest: Vec<AppIx> = pair.knots().iter().map(|knot| *knot.first().unwrap()).collect();
        prop_assert_eq!(begins, smallest);
    }

    #[test]
    fn every_cycle_is_a_shortest_way_back_along_real_edges(pair in graphs()) {
        for cycle in pair.ours.cycles() {
            for (step, app) in cycle.iter().enumerate() {
                let next = cycle[(step + 1) % cycle.len()];
                prop_assert!(pair.theirs.contains_edge(theirs(*app), theirs(next)), "{:?}", cycle);
            }
            let distinct: BTreeSet<AppIx> = cycle.iter().copied().collect();
            prop_assert_eq!(distinct.len(), cycle.len(), "{:?} passes an app twice", cycle);
            prop_assert_eq!(Some(cycle.len()), pair.shortest_way_back(cycle[0]), "{:?}", cycle);
        }
    }

    #[test]
    fn topological_order_has_each_app_after_its_dependencies_and_leaves_out_what_waits_for_a_cycle(
        pair in graphs(),
    ) {
        let knotted: Vec<AppIx> = pair.knots().into_iter().flatten().collect();
        let waits_for_a_cycle = |app: &AppIx| {
            knotted.iter().any(|k| has_path_connecting(&pair.theirs, theirs(*app), theirs(*k), None))
        };
        let order = pair.ours.topological();
        let place: BTreeMap<AppIx, usize> = order.iter().copied().zip(0..).collect();
        let placed: Vec<AppIx> = place.keys().copied().collect();
        let expected: Vec<AppIx> = pair.ours.apps().filter(|a| !waits_for_a_cycle(a)).collect();
        prop_assert_eq!(order.len(), placed.len(), "{:?} has an app twice", order);
        prop_assert_eq!(placed, expected);
        for app in &order {
            for dependency in pair.ours.dependencies(*app) {
                prop_assert!(place[dependency] < place[app], "{:?}", order);
            }
        }
    }
}

#[test]
fn a_chain_and_a_ring_of_a_hundred_thousand_apps_need_no_deep_stack() {
    const APPS: usize = 100_000;
    let chain: Vec<Edge> = (1..APPS)
        .map(|at| Edge { dependant: AppIx::new(at - 1), dependency: AppIx::new(at) })
        .collect();
    let back = Edge { dependant: AppIx::new(APPS - 1), dependency: AppIx::new(0) };
    assert_eq!(Graph::new(APPS, &chain).cycles(), Vec::<Vec<AppIx>>::new());
    let ring = [chain, vec![back]].concat();
    let whole: Vec<AppIx> = (0..APPS).map(AppIx::new).collect();
    assert_eq!(Graph::new(APPS, &ring).cycles(), vec![whole]);
}
