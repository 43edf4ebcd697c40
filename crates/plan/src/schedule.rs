//! The estimate: a run in which every app takes exactly its typical time.

use std::collections::BTreeMap;
use std::time::Duration;

use tiphys_model::platform::Policies;
use tiphys_model::{AppIx, Graph};

use crate::start_queue::StartQueue;

pub(crate) struct Schedule {
    /// All apps, in the order in which they would start.
    pub(crate) order: Vec<AppIx>,
    pub(crate) starts: Vec<Duration>,
    pub(crate) end: Duration,
}

/// Plays the run through: what is ready starts by priority while there is room.
pub(crate) fn estimate(
    graph: &Graph,
    times: &[Duration],
    priorities: &[u32],
    policies: &Policies,
    group_of: impl Fn(AppIx) -> Option<usize>,
) -> Schedule {
    let mut missing: Vec<usize> = graph.apps().map(|app| graph.dependencies(app).len()).collect();
    let mut queue = StartQueue::new(policies);
    for app in graph.apps().filter(|app| missing[app.position()] == 0) {
        queue.insert(app, priorities[app.position()], group_of(app));
    }
    let mut order = Vec::with_capacity(graph.len());
    let mut starts = vec![Duration::ZERO; graph.len()];
    let mut ends: BTreeMap<Duration, Vec<AppIx>> = BTreeMap::new();
    let mut now = Duration::ZERO;
    loop {
        while let Some(app) = queue.first() {
            queue.remove(app, priorities[app.position()], group_of(app));
            queue.occupy(group_of(app));
            starts[app.position()] = now;
            order.push(app);
            ends.entry(now + times[app.position()]).or_default().push(app);
        }
        let Some((end, apps)) = ends.pop_first() else { break };
        now = end;
        for app in apps {
            queue.release(group_of(app));
            for &dependant in graph.dependants(app) {
                let left = &mut missing[dependant.position()];
                *left -= 1;
                if *left == 0 {
                    queue.insert(dependant, priorities[dependant.position()], group_of(dependant));
                }
            }
        }
    }
    Schedule { order, starts, end: now }
}
