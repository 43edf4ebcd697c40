//! From documents to a platform: merging files, resolving names, refusing cycles.

mod bootstrap;
mod criteria;
mod deploy;
mod edges;
mod head;
mod server;
mod trigger;

use std::time::Duration;

use tiphys_model::graph::Graph;
use tiphys_model::platform::{Backoff, Retry, Timeouts};
use tiphys_model::{App, AppIx, Platform, StackName};

use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::{AppDocument, BackoffDocument, PlatformFile, RetryDocument, StackDocument};
use crate::source::{Span, Spanned};

pub(crate) use head::{DEFAULT_PROJECT, Groups, Head, resolve as head};

/// Merges the files of a platform and resolves what they refer to.
pub(crate) fn platform(
    files: Vec<PlatformFile>,
    in_directory: bool,
    problems: &mut Diagnostics,
) -> Option<Platform> {
    let place = files.first().map(|file| Span::start_of(file.file))?;
    let mut apps = Apps { list: Vec::new(), incomplete: false };
    let mut heads = Vec::new();
    let unread = files.iter().any(|file| file.document.is_none());
    for PlatformFile { file, document } in files {
        let Some(mut document) = document else {
            apps.incomplete = true;
            continue;
        };
        match document.spec.stacks.take() {
            Some(stacks) => {
                apps.incomplete |= stacks.incomplete;
                apps.add_file(stacks.items, problems);
            }
            None => apps.incomplete = true,
        }
        heads.push((file, document));
    }
    let head = head::merge(heads, unread, in_directory, problems);
    let (apps, graph) = resolve_apps(apps, head.as_ref().map(|h| &h.groups), place, problems)?;
    Some(head?.platform(apps, graph))
}

/// The apps of all files, not yet resolved.
pub(crate) struct Apps {
    pub(crate) list: Vec<(StackName, AppDocument)>,
    /// Something could not be read, so an unknown name may well exist.
    pub(crate) incomplete: bool,
}

impl Apps {
    fn add_file(&mut self, stacks: Vec<StackDocument>, problems: &mut Diagnostics) {
        let mut names: Vec<&Spanned<StackName>> = stacks.iter().map(|stack| &stack.name).collect();
        names.sort_by(|a, b| (&a.value, a.span).cmp(&(&b.value, b.span)));
        for pair in names.windows(2).filter(|pair| pair[0].value == pair[1].value) {
            let name = quoted(pair[0].value.as_str());
            let title = format!("stack {name} is defined twice in one file");
            problems.push(
                Diagnostic::new(title, pair[1].span, "again here")
                    .related(pair[0].span, "first here")
                    .hint("put all of its apps into one entry"),
            );
        }
        for stack in stacks {
            self.incomplete |= stack.apps.incomplete;
            let apps = stack.apps.items.into_iter();
            self.list.extend(apps.map(|app| (stack.name.value.clone(), app)));
        }
    }
}

/// Sorts the apps by name, resolves their edges and groups, and refuses cycles.
pub(crate) fn resolve_apps(
    mut apps: Apps,
    groups: Option<&Groups>,
    place: Span,
    problems: &mut Diagnostics,
) -> Option<(Vec<App>, Graph)> {
    if apps.list.is_empty() && !apps.incomplete {
        problems.push(
            Diagnostic::new("the platform has no apps", place, "none in any of its files")
                .hint("add one under `spec.stacks`: `- { name: STACK, apps: [{ name: APP }] }`"),
        );
        return None;
    }
    apps.list
        .sort_by(|(_, a), (_, b)| (&a.name.value, a.name.span).cmp(&(&b.name.value, b.name.span)));
    apps.list.dedup_by(|(_, again), (_, first)| {
        let twice = again.name.value == first.name.value;
        if twice {
            let title = format!("app {} is defined twice", quoted(first.name.value.as_str()));
            problems.push(
                Diagnostic::new(title, again.name.span, "again here")
                    .related(first.name.span, "first here")
                    .hint("rename or remove one of them: each app is one Argo CD Application"),
            );
        }
        twice
    });
    let (dependencies, graph) = edges::resolve(&apps, problems);
    edges::refuse_cycles(&apps, &graph, problems);
    let resolved = apps.list.into_iter().zip(dependencies).map(|((stack, app), dependencies)| {
        let app_type = app.app_type.unwrap_or_default();
        let group = app.group.as_ref().and_then(|name| groups?.find(name, problems));
        let limit = |given: Option<Spanned<Duration>>, problems: &mut Diagnostics| {
            given.map_or(app_type.timeout(), |given| positive(&given, problems))
        };
        let (sync, health) = app.timeouts.map_or((None, None), |t| (t.sync, t.health));
        App {
            name: app.name.value,
            stack,
            app_type,
            group,
            typical: app.typical.unwrap_or(app_type.typical()),
            dependencies,
            timeouts: Timeouts { sync: limit(sync, problems), health: limit(health, problems) },
            retry: retry(app.retry, problems),
            tolerate_drift: sorted(app.tolerate_drift.items.into_iter().map(|drift| drift.0)),
            health: app.health.items.into_iter().map(criteria::resolve).collect(),
        }
    });
    Some((resolved.collect(), graph))
}

/// The position of an app among the sorted apps.
fn find(apps: &Apps, name: &str) -> Option<AppIx> {
    apps.list.binary_search_by(|(_, app)| app.name.value.as_str().cmp(name)).ok().map(AppIx::new)
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts.dedup();
    texts
}

/// A time limit of nothing can never be kept.
fn positive(given: &Spanned<Duration>, problems: &mut Diagnostics) -> Duration {
    if given.value.is_zero() {
        let problem =
            Diagnostic::new("a timeout cannot be zero", given.span, "must be greater than zero");
        problems.push(problem.hint("set a duration, or remove the field to use the default"));
    }
    given.value
}

fn retry(given: Option<RetryDocument>, problems: &mut Diagnostics) -> Retry {
    let default = Retry::default();
    let Some(given) = given else { return default };
    let backoff = given.backoff.map_or(default.backoff, |given| backoff(given, problems));
    Retry { limit: given.limit.unwrap_or(default.limit), backoff }
}

/// A first wait beyond the longest is never kept: one of the two is not what was meant.
fn backoff(given: BackoffDocument, problems: &mut Diagnostics) -> Backoff {
    let default = Backoff::default();
    let duration = given.duration.as_ref().map_or(default.duration, |given| given.value);
    let max = given.max.as_ref().map_or(default.max, |given| given.value);
    if duration > max {
        let [first, longest] = [duration, max].map(tiphys_model::duration::format);
        let problem = |span, label: &str| {
            let title = "`duration` of a back-off is longer than its `max`";
            Diagnostic::new(title, span, label)
        };
        match (given.duration, given.max) {
            (Some(duration), Some(max)) => problems.push(
                problem(duration.span, "the first wait")
                    .related(max.span, "the longest wait")
                    .hint("raise `max`, or lower `duration`"),
            ),
            (Some(duration), None) => problems.push(
                problem(duration.span, "the first wait")
                    .hint(format!("`max` is {longest} by default: set it too")),
            ),
            (None, Some(max)) => problems.push(
                problem(max.span, "the longest wait")
                    .hint(format!("`duration` is {first} by default: set it too")),
            ),
            (None, None) => unreachable!("the defaults are in order"),
        }
    }
    Backoff { duration, factor: given.factor.map_or(default.factor, |given| given.0), max }
}
