//! What a scope selects: the apps to deploy, and those outside that must be Healthy.

use tiphys_model::{AppIx, Platform, Role, Scope};

/// The scope names nothing in the platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the platform `{platform}` has nothing called `{scope}`")]
pub struct UnknownScope {
    pub platform: String,
    pub scope: Scope,
}

/// What is deployed along with a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Nothing: what it depends on must be Healthy.
    #[default]
    Exactly,
    /// Everything that it depends on, and so on.
    WithDependencies,
}

/// The apps of a plan, sorted by position, with their roles.
pub(crate) fn select(
    platform: &Platform,
    scope: &Scope,
    reach: Reach,
) -> Result<Vec<(AppIx, Role)>, UnknownScope> {
    let mut inside: Vec<bool> = platform
        .apps
        .iter()
        .map(|app| match scope {
            Scope::Platform => true,
            Scope::Stack(stack) => app.stack == *stack,
            Scope::App(name) => app.name == *name,
        })
        .collect();
    if !inside.contains(&true) {
        return Err(UnknownScope { platform: platform.name.to_string(), scope: scope.clone() });
    }
    if reach == Reach::WithDependencies {
        for app in platform.graph.topological().iter().rev() {
            let dependants = platform.graph.dependants(*app);
            inside[app.position()] |= dependants.iter().any(|d| inside[d.position()]);
        }
    }
    let verified = outside(platform, &inside);
    let selected = platform.graph.apps().filter_map(|app| {
        let at = app.position();
        let role =
            if inside[at] { Some(Role::Deploy) } else { verified[at].then_some(Role::Verify) };
        Some((app, role?))
    });
    Ok(selected.collect())
}

/// Which apps outside the scope a run must find Healthy: what the scope depends on directly,
/// and what lies between two of its apps, or the second could start before the first.
fn outside(platform: &Platform, inside: &[bool]) -> Vec<bool> {
    let graph = &platform.graph;
    let order = graph.topological();
    let mut above = inside.to_vec();
    for app in &order {
        above[app.position()] |= graph.dependencies(*app).iter().any(|d| above[d.position()]);
    }
    let mut below = inside.to_vec();
    for app in order.iter().rev() {
        below[app.position()] |= graph.dependants(*app).iter().any(|d| below[d.position()]);
    }
    graph
        .apps()
        .map(|app| {
            let needed = graph.dependants(app).iter().any(|d| inside[d.position()]);
            let between = above[app.position()] && below[app.position()];
            !inside[app.position()] && (needed || between)
        })
        .collect()
}
