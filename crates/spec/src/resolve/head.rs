//! The head of a platform: everything but its stacks.

use std::num::NonZeroU32;
use std::time::Duration;

use tiphys_model::platform::{
    Allowed, ArgoCd, ArgoCdAccess, Destination, DestinationCluster, Environment, Group, Hold,
    Policies, Source, SourceTool, TeardownPolicy, WorkflowMode,
};
use tiphys_model::{
    App, Bootstrap, DeployPolicy, Graph, GroupName, NamespaceName, Platform, PlatformName, Trigger,
};

use super::{bootstrap, deploy, positive, server, trigger};
use crate::decode::List;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::argocd::{ArgoCdDocument, DestinationDocument};
use crate::document::{API_VERSION, GroupDocument, KIND, Metadata, PlatformDocument, SpecDocument};
use crate::nearest::nearest;
use crate::source::{SourceIx, Span, Spanned};

const DEFAULT_CONCURRENCY: NonZeroU32 = NonZeroU32::new(16).expect("16 is not 0");
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3 * 3600);

pub(crate) struct Head {
    pub(crate) name: PlatformName,
    pub(crate) environment: Option<Environment>,
    pub(crate) source: Option<Source>,
    pub(crate) argocd: ArgoCd,
    pub(crate) bootstrap: Option<Bootstrap>,
    pub(crate) policies: Policies,
    pub(crate) teardown: TeardownPolicy,
    pub(crate) workflows: WorkflowMode,
    pub(crate) deploy: DeployPolicy,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) groups: Groups,
}

impl Head {
    /// The platform with these apps.
    pub(crate) fn platform(self, apps: Vec<App>, graph: Graph) -> Platform {
        Platform {
            name: self.name,
            environment: self.environment,
            source: self.source,
            argocd: self.argocd,
            bootstrap: self.bootstrap,
            policies: self.policies,
            teardown: self.teardown,
            workflows: self.workflows,
            deploy: self.deploy,
            triggers: self.triggers,
            apps,
            graph,
        }
    }
}

/// The groups that apps may name.
pub(crate) struct Groups {
    /// Sorted.
    names: Vec<GroupName>,
    /// Some could not be read, so an unknown name may well exist.
    incomplete: bool,
}

impl Groups {
    pub(crate) fn find(
        &self,
        name: &Spanned<GroupName>,
        problems: &mut Diagnostics,
    ) -> Option<usize> {
        let found = self.names.binary_search(&name.value).ok();
        if found.is_none() && !self.incomplete {
            let known = self.names.iter().map(GroupName::as_str);
            let hint = match nearest(name.value.as_str(), known) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("add it: `groups: [{{ name: {}, concurrency: 2 }}]`", name.value),
            };
            let title = format!("unknown group {}", quoted(name.value.as_str()));
            let label = "not in `spec.groups`";
            problems.push(Diagnostic::new(title, name.span, label).hint(hint));
        }
        found
    }
}

/// Merges the heads of all files: `spec` fields stand in one file only, and all agree on the name.
/// What is in a file that is `unread`, nobody knows: it may be the name, and the groups.
pub(super) fn merge(
    files: Vec<(SourceIx, PlatformDocument)>,
    unread: bool,
    in_directory: bool,
    problems: &mut Diagnostics,
) -> Option<Head> {
    let place = files.first().map(|(file, _)| Span::start_of(*file))?;
    let mut metadata: Option<Metadata> = None;
    let mut metadata_unread = unread;
    let mut head: Option<(Span, SpecDocument)> = None;
    for (_, document) in files {
        metadata_unread |= document.metadata_unread;
        match (&metadata, document.metadata) {
            (Some(first), Some(other)) => same_name(&first.name, &other.name, problems),
            (None, given) => metadata = given,
            (Some(_), None) => {}
        }
        match (&head, document.spec.head) {
            (Some((first, _)), Some(span)) => problems.push(
                Diagnostic::new(
                    "two files set fields of `spec` other than `stacks`",
                    span,
                    "again here",
                )
                .related(*first, "first here")
                .hint("keep `environment`, `source`, `argocd` and the like in one file"),
            ),
            (None, Some(span)) => head = Some((span, document.spec)),
            (_, None) => {}
        }
    }
    let Some(metadata) = metadata else {
        if !metadata_unread {
            problems.push(no_name(place, in_directory));
        }
        return None;
    };
    let spec = head.map_or_else(SpecDocument::default, |(_, spec)| spec);
    let mut head = resolve(metadata.name.value, spec, problems);
    head.groups.incomplete |= unread;
    Some(head)
}

fn no_name(place: Span, in_directory: bool) -> Diagnostic {
    let title = "the platform has no name";
    if in_directory {
        Diagnostic::new(title, place, "no file of the directory has `metadata.name`").hint(format!(
            "begin one of them with `apiVersion: {API_VERSION}`, `kind: {KIND}` and \
             `metadata: {{ name: NAME }}`, and put its `stacks` under `spec`"
        ))
    } else {
        Diagnostic::new(title, place, "`metadata.name` is missing")
            .hint("add `metadata: { name: NAME }`")
    }
}

fn same_name(
    first: &Spanned<PlatformName>,
    other: &Spanned<PlatformName>,
    problems: &mut Diagnostics,
) {
    if first.value != other.value {
        problems.push(
            Diagnostic::new("the files have different platform names", other.span, "this name")
                .related(first.span, "and this one")
                .hint("use one name: a directory describes one platform"),
        );
    }
}

pub(crate) fn resolve(name: PlatformName, spec: SpecDocument, problems: &mut Diagnostics) -> Head {
    let given = spec.groups.unwrap_or_default();
    let groups = unique_groups(given.items, problems);
    let names = groups.iter().map(|group| group.name.clone()).collect();
    let policies = Policies {
        hold: spec.hold.unwrap_or(Hold::DuringRun),
        concurrency: spec.concurrency.unwrap_or(DEFAULT_CONCURRENCY),
        groups,
        timeout: spec.timeout.map_or(DEFAULT_TIMEOUT, |given| positive(&given, problems)),
    };
    let disposable = spec.teardown.unwrap_or_default().disposable.items.into_iter();
    let teardown = TeardownPolicy { disposable: disposable.map(|kind| kind.0).collect() };
    let has_root_app = spec.source.is_some();
    let argocd = argocd(spec.argocd.unwrap_or_default(), has_root_app, problems);
    let bootstrap =
        spec.bootstrap.and_then(|given| bootstrap::resolve(given, &argocd.namespace, problems));
    let subject = deploy::Subject {
        repository: spec.source.as_ref().map(|source| source.repo_url.as_str()),
        platform: &name,
        environment: spec.environment.as_ref().map(|environment| environment.name.as_str()),
    };
    let deploy = spec.deploy.map(|given| deploy::resolve(given, subject, problems));
    let deploy = deploy.unwrap_or_default();
    Head {
        name,
        environment: spec.environment.map(|e| Environment { name: e.name, domain: e.domain }),
        source: spec.source.map(|s| Source {
            repo_url: s.repo_url,
            target_revision: s.target_revision.unwrap_or_else(|| "HEAD".to_owned()),
            path: s.path,
            tool: s.directory.map_or(SourceTool::Chart, |directory| SourceTool::Directory {
                recurse: directory.recurse.unwrap_or_default(),
            }),
        }),
        bootstrap,
        argocd,
        policies,
        teardown,
        workflows: spec.workflows.unwrap_or_default(),
        triggers: trigger::resolve(spec.triggers.unwrap_or_default(), &deploy, problems),
        deploy,
        groups: Groups { names, incomplete: given.incomplete },
    }
}

fn argocd(mut given: ArgoCdDocument, has_root_app: bool, problems: &mut Diagnostics) -> ArgoCd {
    let server = server::resolve(&mut given, problems);
    let namespace = given.namespace.unwrap_or_else(|| "argocd".to_owned());
    ArgoCd {
        application_namespaces: namespaces(given.application_namespaces, &namespace, problems),
        namespace,
        projects: projects(given.project, given.projects, problems),
        root_project: given.root_project.unwrap_or_else(|| "platform-root".to_owned()),
        has_root_app,
        access: given.access.map_or_else(ArgoCdAccess::default, |access| access.value),
        server,
        allowed: Allowed {
            sources: given.sources.map(|given| given.items),
            destinations: given.destinations.map(|given| destinations(given.items)),
            cluster_kinds: given.cluster_kinds.map(|given| given.items),
        },
    }
}

/// Argo CD's own namespace need not be said: Applications may always be there.
fn namespaces(
    given: List<Spanned<NamespaceName>>,
    own: &str,
    problems: &mut Diagnostics,
) -> Vec<NamespaceName> {
    let mut different: Vec<Spanned<NamespaceName>> = Vec::new();
    for namespace in given.items {
        let name = quoted(namespace.value.as_str());
        if let Some(first) = different.iter().find(|first| first.value == namespace.value) {
            let title = format!("the namespace {name} is given twice");
            problems.push(
                Diagnostic::new(title, namespace.span, "again here")
                    .related(first.span, "first here")
                    .hint("keep one of them"),
            );
        } else if namespace.value.as_str() == own {
            let title = format!("{name} is Argo CD's own namespace");
            problems.push(
                Diagnostic::new(title, namespace.span, "not needed here")
                    .hint("remove it: Applications are always allowed there"),
            );
        } else {
            different.push(namespace);
        }
    }
    different.into_iter().map(|namespace| namespace.value).collect()
}

/// The project of the apps, if none is named.
pub(crate) const DEFAULT_PROJECT: &str = "platform";

fn projects(
    one: Option<Spanned<String>>,
    several: Option<Spanned<List<String>>>,
    problems: &mut Diagnostics,
) -> Vec<String> {
    let Some(several) = several else {
        return vec![one.map_or_else(|| DEFAULT_PROJECT.to_owned(), |one| one.value)];
    };
    if let Some(one) = one {
        let title = "`project` and `projects` are both given";
        let said = Diagnostic::new(title, one.span, "here").related(several.span, "and here");
        problems.push(said.hint("keep only `projects` and list all of them there"));
    }
    let List { items, incomplete } = several.value;
    if items.is_empty() && !incomplete {
        let title = "`projects` is empty";
        let hint = "list at least one, or remove `projects` to use the default `[platform]`";
        problems.push(Diagnostic::new(title, several.span, "nothing is listed").hint(hint));
    }
    let mut different: Vec<String> = Vec::new();
    for project in items {
        if different.contains(&project) {
            let title = format!("the project {} is given twice", quoted(&project));
            problems.push(Diagnostic::new(title, several.span, "in this list"));
        } else {
            different.push(project);
        }
    }
    different
}

/// One without a cluster, or with two, has been reported.
fn destinations(given: Vec<DestinationDocument>) -> Vec<Destination> {
    let destination = |given: DestinationDocument| {
        let cluster = match (given.server, given.name) {
            (Some(server), None) => DestinationCluster::Server(server),
            (None, Some(name)) => DestinationCluster::Name(name),
            (None, None) | (Some(_), Some(_)) => return None,
        };
        Some(Destination { cluster, namespace: given.namespace })
    };
    given.into_iter().filter_map(destination).collect()
}

fn unique_groups(mut given: Vec<GroupDocument>, problems: &mut Diagnostics) -> Vec<Group> {
    given.sort_by(|a, b| (&a.name.value, a.name.span).cmp(&(&b.name.value, b.name.span)));
    given.dedup_by(|again, first| {
        let twice = again.name.value == first.name.value;
        if twice {
            let title = format!("group {} is defined twice", quoted(first.name.value.as_str()));
            problems.push(
                Diagnostic::new(title, again.name.span, "again here")
                    .related(first.name.span, "first here")
                    .hint("keep one of them"),
            );
        }
        twice
    });
    let groups = given.into_iter();
    groups.map(|group| Group { concurrency: group.concurrency, name: group.name.value }).collect()
}
