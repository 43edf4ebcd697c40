//! Finding cycles in a form that a person can act on.

use std::collections::VecDeque;

use super::{AppIx, Graph};

/// One shortest cycle through the smallest app of each strongly connected component, in order
/// of those apps. A knot can hold exponentially many cycles; one is enough to start untying it.
pub(super) fn cycles(graph: &Graph) -> Vec<Vec<AppIx>> {
    let component = components(graph);
    let mut seen = vec![false; graph.len()];
    // Shared by all searches: none of them leaves its component, so they cannot meet.
    let mut came_from = vec![None; graph.len()];
    let mut found = Vec::new();
    for app in graph.apps() {
        let knot = component[app.position()];
        if !std::mem::replace(&mut seen[knot], true)
            && let Some(cycle) = shortest_cycle(graph, app, &mut came_from, |other| {
                component[other.position()] == knot
            })
        {
            found.push(cycle);
        }
    }
    found
}

/// Breadth-first from `start` along dependencies inside its component until it comes back.
fn shortest_cycle(
    graph: &Graph,
    start: AppIx,
    came_from: &mut [Option<AppIx>],
    inside: impl Fn(AppIx) -> bool,
) -> Option<Vec<AppIx>> {
    let mut queue = VecDeque::from([start]);
    while let Some(app) = queue.pop_front() {
        for &dependency in graph.dependencies(app).iter().filter(|d| inside(**d)) {
            if dependency == start {
                let mut path: Vec<AppIx> =
                    std::iter::successors(Some(app), |a| came_from[a.position()]).collect();
                path.reverse();
                return Some(path);
            }
            if came_from[dependency.position()].is_none() {
                came_from[dependency.position()] = Some(app);
                queue.push_back(dependency);
            }
        }
    }
    None
}

/// Tarjan's strongly connected components: the component number of each app. With its own
/// stack, because a chain of a million dependencies must not overflow the thread's.
fn components(graph: &Graph) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let mut index = vec![UNSEEN; graph.len()];
    let mut low = vec![0; graph.len()];
    let mut component = vec![UNSEEN; graph.len()];
    let mut open: Vec<AppIx> = Vec::new();
    let mut visits: Vec<(AppIx, usize)> = Vec::new();
    let mut next_index = 0;
    let mut next_component = 0;
    for root in graph.apps() {
        if index[root.position()] != UNSEEN {
            continue;
        }
        visits.push((root, 0));
        while let Some((app, edge)) = visits.pop() {
            let at = app.position();
            if edge == 0 {
                index[at] = next_index;
                low[at] = next_index;
                next_index += 1;
                open.push(app);
            }
            if let Some(&dependency) = graph.dependencies(app).get(edge) {
                visits.push((app, edge + 1));
                let to = dependency.position();
                if index[to] == UNSEEN {
                    visits.push((dependency, 0));
                } else if component[to] == UNSEEN {
                    low[at] = low[at].min(index[to]);
                }
                continue;
            }
            if low[at] == index[at] {
                while let Some(member) = open.pop() {
                    component[member.position()] = next_component;
                    if member == app {
                        break;
                    }
                }
                next_component += 1;
            }
            if let Some(&(parent, _)) = visits.last() {
                low[parent.position()] = low[parent.position()].min(low[at]);
            }
        }
    }
    component
}
