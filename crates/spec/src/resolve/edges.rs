//! Resolving what apps depend on.

use tiphys_model::graph::{Edge, Graph};
use tiphys_model::platform::Dependency;
use tiphys_model::{AppIx, AppName};

use super::{Apps, find};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::{AppDocument, DependencyDocument, EdgeOrigin};
use crate::nearest::nearest;

/// The edges of each app, sorted, and the graph they make.
pub(super) fn resolve(apps: &Apps, problems: &mut Diagnostics) -> (Vec<Vec<Dependency>>, Graph) {
    let mut edges = Vec::new();
    let mut all = Vec::with_capacity(apps.list.len());
    for (position, (_, app)) in apps.list.iter().enumerate() {
        let dependant = AppIx::new(position);
        let dependencies = resolve_app(apps, dependant, app, problems);
        edges.extend(dependencies.iter().map(|d| Edge { dependant, dependency: d.app }));
        all.push(dependencies);
    }
    let graph = Graph::new(apps.list.len(), &edges);
    (all, graph)
}

fn resolve_app(
    apps: &Apps,
    dependant: AppIx,
    app: &AppDocument,
    problems: &mut Diagnostics,
) -> Vec<Dependency> {
    let mut found: Vec<(AppIx, &DependencyDocument)> =
        Vec::with_capacity(app.depends_on.items.len());
    for dependency in &app.depends_on.items {
        let name = dependency.app.value.as_str();
        match find(apps, name) {
            Some(this) if this == dependant => problems.push(
                Diagnostic::new(
                    format!("app {} depends on itself", quoted(name)),
                    dependency.app.span,
                    "its own name",
                )
                .hint("remove it"),
            ),
            Some(other) => found.push((other, dependency)),
            None if dependency.optional || apps.incomplete => {}
            None => {
                let briefly = !problems.keeps(dependency.app.span);
                problems.push(unknown(apps, &app.name.value, dependency, briefly));
            }
        }
    }
    found.sort_by_key(|(app, dependency)| (*app, dependency.app.span));
    found.dedup_by(|(again, second), (app, first)| {
        let twice = again == app;
        if twice {
            let title =
                format!("the dependency on {} is given twice", quoted(first.app.value.as_str()));
            problems.push(
                Diagnostic::new(title, second.app.span, "again here")
                    .related(first.app.span, "first here")
                    .hint("keep one of them"),
            );
        }
        twice
    });
    found.into_iter().map(|(app, d)| Dependency { app, optional: d.optional }).collect()
}

fn unknown(apps: &Apps, app: &AppName, dependency: &DependencyDocument, quick: bool) -> Diagnostic {
    let name = dependency.app.value.as_str();
    let title = format!("{} depends on unknown app {}", quoted(app.as_str()), quoted(name));
    let problem = Diagnostic::new(title, dependency.app.span, "not in the platform");
    // Comparing with every name takes time that nobody will see the result of.
    let candidates = apps.list.iter().map(|(_, app)| app.name.value.as_str());
    match if quick { None } else { nearest(name, candidates) } {
        Some(name) => problem.hint(format!("did you mean `{name}`?")),
        None => problem.hint(format!(
            "add the app, or write `{{ app: {name}, optional: true }}` if it may be absent"
        )),
    }
}

/// Reports each knot of apps that wait for each other.
pub(super) fn refuse_cycles(apps: &Apps, graph: &Graph, problems: &mut Diagnostics) {
    if graph.topological().len() == graph.len() {
        return;
    }
    for cycle in graph.cycles() {
        let app = |at: AppIx| &apps.list[at.position()].1;
        let next = |step: usize| cycle[(step + 1) % cycle.len()];
        let mut by_wave = false;
        let places = cycle.iter().enumerate().map(|(step, at)| {
            let (from, to) = (app(*at), &app(next(step)).name.value);
            let edge = from.depends_on.items.iter().find(|d| d.app.value == *to);
            let span = edge.map_or(from.name.span, |edge| edge.app.span);
            let mut label = format!("{} depends on {to}", from.name.value);
            if edge.is_some_and(|edge| edge.origin == EdgeOrigin::SyncWave) {
                by_wave = true;
                label += ": its sync wave is later";
            }
            (span, label)
        });
        let mut places: Vec<_> = places.collect();
        let (span, label) = places.remove(0);
        let path = path(cycle.iter().map(|at| &app(*at).name.value));
        let title = match cycle.len() {
            2 => "two apps depend on each other".to_owned(),
            more => format!("{more} apps depend on each other in a cycle"),
        };
        let hint = if by_wave {
            "none of them could ever start: remove one of these dependencies, or change a sync wave"
        } else {
            "none of them could ever start: remove one of these dependencies"
        };
        let mut problem = Diagnostic::new(format!("{title}: {path}"), span, label).hint(hint);
        // The path is enough for a cycle of fifty; a handful is easier to read with its lines.
        if places.len() < 5 {
            for (span, label) in places {
                problem = problem.related(span, label);
            }
        }
        problems.push(problem);
    }
}

/// `a → b → a`
fn path<'a>(names: impl Iterator<Item = &'a AppName> + Clone) -> String {
    let first = names.clone().take(1);
    let names: Vec<&str> = names.chain(first).map(AppName::as_str).collect();
    // A circle through a whole generated platform would fill the screen.
    if names.len() > 102 {
        let (head, tail) = (&names[..50], &names[names.len() - 50..]);
        let left_out = names.len() - 100;
        return format!("{} → … {left_out} more … → {}", head.join(" → "), tail.join(" → "));
    }
    names.join(" → ")
}
