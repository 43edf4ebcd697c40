//! What a scope selects: the apps to deploy or remove, and those outside that are in the way.

use tiphys_model::scope::Selector;
use tiphys_model::{App, AppIx, Graph, Platform, Role, Scope};

/// A part of a scope that selects no app.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scope `{part}` not found in platform `{platform}`")]
pub struct UnknownScope {
    pub platform: String,
    pub part: Selector,
}

/// What an action means for what lies around its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Deploys the scope alone: what it depends on must be Healthy.
    #[default]
    Exactly,
    /// Deploys everything that it depends on, too.
    WithDependencies,
    /// Removes the scope alone: what depends on it must not exist.
    Removal,
    /// Removes everything that depends on it, too.
    RemovalWithDependents,
}

impl Reach {
    fn is_removal(self) -> bool {
        matches!(self, Reach::Removal | Reach::RemovalWithDependents)
    }
}

/// The apps of a plan, sorted by position, with their roles.
pub(crate) fn select(
    platform: &Platform,
    scope: &Scope,
    reach: Reach,
) -> Result<Vec<(AppIx, Role)>, UnknownScope> {
    if let Scope::Parts(parts) = scope {
        let selects_nothing = |part: &&Selector| !platform.apps.iter().any(|app| part.selects(app));
        if let Some(part) = parts.iter().find(selects_nothing) {
            return Err(UnknownScope { platform: platform.name.to_string(), part: part.clone() });
        }
    }
    // All of nothing is nothing: what is left of a platform that was taken down.
    Ok(select_where(platform, |app| scope.covers(app), reach).unwrap_or_default())
}

/// The same for apps that are chosen in another way; `None` if there are none.
pub(crate) fn select_where(
    platform: &Platform,
    inside: impl Fn(&App) -> bool,
    reach: Reach,
) -> Option<Vec<(AppIx, Role)>> {
    let graph = &platform.graph;
    let mut inside: Vec<bool> = platform.apps.iter().map(inside).collect();
    if !inside.contains(&true) {
        return None;
    }
    match reach {
        Reach::Exactly | Reach::Removal => {}
        Reach::WithDependencies => spread_to_dependencies(graph, &mut inside),
        Reach::RemovalWithDependents => spread_to_dependants(graph, &mut inside),
    }
    let verified = outside(graph, &inside, reach);
    let selected = graph.apps().filter_map(|app| {
        let at = app.position();
        let role = if inside[at] { Some(Role::Act) } else { verified[at].then_some(Role::Verify) };
        Some((app, role?))
    });
    Some(selected.collect())
}

/// Which apps outside the scope a run must look at: what the scope needs directly, which is what
/// it depends on, or in a removal what depends on it; and what lies between two of its apps, or
/// the second could be touched before the first is done.
fn outside(graph: &Graph, inside: &[bool], reach: Reach) -> Vec<bool> {
    let mut above = inside.to_vec();
    spread_to_dependants(graph, &mut above);
    let mut below = inside.to_vec();
    spread_to_dependencies(graph, &mut below);
    graph
        .apps()
        .map(|app| {
            let users =
                if reach.is_removal() { graph.dependencies(app) } else { graph.dependants(app) };
            let needed = users.iter().any(|user| inside[user.position()]);
            let between = above[app.position()] && below[app.position()];
            !inside[app.position()] && (needed || between)
        })
        .collect()
}

fn spread_to_dependants(graph: &Graph, marked: &mut [bool]) {
    for app in graph.topological() {
        marked[app.position()] |= graph.dependencies(app).iter().any(|d| marked[d.position()]);
    }
}

fn spread_to_dependencies(graph: &Graph, marked: &mut [bool]) {
    for app in graph.topological().into_iter().rev() {
        marked[app.position()] |= graph.dependants(app).iter().any(|d| marked[d.position()]);
    }
}
