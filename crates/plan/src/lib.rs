//! From a platform to a plan: scope, order, layers, critical path, estimate, digest.
//!
//! Same inputs, same bytes: nothing here depends on the order in which a file lists its apps,
//! on a clock, or on a hash map's mood.

pub mod advice;
mod definitions;
mod difference;
mod document;
mod paths;
mod schedule;
mod scope;
mod start_queue;

pub use definitions::HEALTH_DEFINITIONS;
pub use difference::{Change, ChangedApp, NewApp, PlanDifference, Setting, Start};
pub use document::{API_VERSION, PlanDocument};
pub use scope::{Reach, UnknownScope};
pub use start_queue::StartQueue;

use std::collections::BTreeSet;
use std::time::Duration;

use tiphys_model::graph::{Edge, Graph};
use tiphys_model::platform::Dependency;
use tiphys_model::{App, AppIx, AppName, Plan, PlannedApp, Platform, Role, Scope};

/// Plans the deployment of a scope.
pub fn plan(platform: &Platform, scope: &Scope) -> Result<Plan, UnknownScope> {
    plan_reaching(platform, scope, Reach::Exactly)
}

/// Plans the deployment or removal of a scope, and of what goes along with it.
pub fn plan_reaching(
    platform: &Platform,
    scope: &Scope,
    reach: Reach,
) -> Result<Plan, UnknownScope> {
    let selected = scope::select(platform, scope, reach)?;
    Ok(plan_of(platform, scope, &selected))
}

/// Plans the removal of these apps; `None` if the platform has none of them.
#[must_use]
pub fn plan_removal(platform: &Platform, apps: &BTreeSet<AppName>) -> Option<Plan> {
    let inside = |app: &App| apps.contains(&app.name);
    let selected = scope::select_where(platform, inside, Reach::Removal)?;
    Some(plan_of(platform, &Scope::Platform, &selected))
}

/// The plan for apps that are sorted by position.
fn plan_of(platform: &Platform, scope: &Scope, selected: &[(AppIx, Role)]) -> Plan {
    let graph = subgraph(&platform.graph, selected);
    let times: Vec<Duration> = selected
        .iter()
        .map(|(app, role)| match role {
            Role::Act => platform.apps[app.position()].typical,
            Role::Verify => Duration::ZERO,
        })
        .collect();
    let paths = paths::measure(&graph, &times);
    let group_of = |app: AppIx| platform.apps[selected[app.position()].0.position()].group;
    let schedule =
        schedule::estimate(&graph, &times, &paths.priorities, &platform.policies, group_of);

    let order = &schedule.order;
    let mut new_position = vec![AppIx::new(0); order.len()];
    for (position, app) in order.iter().enumerate() {
        new_position[app.position()] = AppIx::new(position);
    }
    let renumber = Renumber { selected, new_position: &new_position };
    let apps: Vec<PlannedApp> = order
        .iter()
        .map(|&at| {
            let (original, role) = selected[at.position()];
            let mut app = platform.apps[original.position()].clone();
            renumber.dependencies(&mut app.dependencies);
            PlannedApp {
                app,
                role,
                layer: paths.layers[at.position()],
                rank: paths.ranks[at.position()],
                priority: paths.priorities[at.position()],
                start: schedule.starts[at.position()],
            }
        })
        .collect();
    let edges: Vec<Edge> = apps
        .iter()
        .enumerate()
        .flat_map(|(position, planned)| {
            let dependant = AppIx::new(position);
            planned.app.dependencies.iter().map(move |d| Edge { dependant, dependency: d.app })
        })
        .collect();
    let graph = Graph::new(apps.len(), &edges);
    let critical_path = paths.critical.iter().map(|app| new_position[app.position()]).collect();
    let mut plan = Plan {
        platform: platform.name.clone(),
        scope: scope.clone(),
        policies: platform.policies.clone(),
        apps,
        graph,
        critical_path,
        estimate: schedule.end,
        digest: tiphys_model::plan::Digest::from_sha256([0; 32]),
    };
    plan.digest = document::digest(&plan);
    plan
}

/// The graph among the selected apps, which are sorted; edges to others are dropped.
fn subgraph(graph: &Graph, selected: &[(AppIx, Role)]) -> Graph {
    let mut edges = Vec::new();
    for (position, (app, _)) in selected.iter().enumerate() {
        for dependency in graph.dependencies(*app) {
            if let Ok(at) = selected.binary_search_by_key(dependency, |(app, _)| *app) {
                edges.push(Edge { dependant: AppIx::new(position), dependency: AppIx::new(at) });
            }
        }
    }
    Graph::new(selected.len(), &edges)
}

/// From positions in the platform to positions in the plan.
struct Renumber<'a> {
    selected: &'a [(AppIx, Role)],
    new_position: &'a [AppIx],
}

impl Renumber<'_> {
    /// Drops edges that leave the plan, and sorts the rest by the app's name, which is the order
    /// that the platform's positions have.
    fn dependencies(&self, dependencies: &mut Vec<Dependency>) {
        dependencies.retain_mut(|dependency| {
            let at = self.selected.binary_search_by_key(&dependency.app, |(app, _)| *app);
            if let Ok(at) = at {
                dependency.app = self.new_position[at];
            }
            at.is_ok()
        });
    }
}
