//! Dependencies that stand on Argo CD Applications, as annotations.
//!
//! ```yaml
//! metadata:
//!   name: vault
//!   annotations:
//!     tiphys.dev/depends-on: "storage-classes, ingress-nginx, falco?"   # `?`: optional
//!     tiphys.dev/stack: security
//!     tiphys.dev/type: vault
//! ```

mod passed_over;
mod waves;

use std::collections::{BTreeSet, VecDeque};

use tiphys_model::{AppName, NamespaceName, Platform, PlatformName, StackName};

use crate::decode::{Decode, List, bad_name, refuse_duplicates};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::{AppDocument, DependencyDocument, EdgeOrigin, SpecDocument};
use crate::resolve::{self, Apps, Head};
use crate::source::{Sources, Span, Spanned};
use crate::written;
use crate::yaml::{self, Content, Node};
pub use passed_over::{PassedOver, passed_over};
use waves::Waves;

const DEPENDS_ON: &str = "tiphys.dev/depends-on";
/// What public repositories write; Argo CD has no such annotation.
const UNKNOWN_TO_ARGOCD: &str = "argocd.argoproj.io/depends-on";
const STACK: &str = "tiphys.dev/stack";
const TYPE: &str = "tiphys.dev/type";
const PREFIX: &str = "tiphys.dev/";

/// What the sync waves of Applications mean for their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncWaves {
    Ignored,
    /// Every app of a wave depends on every app of the nearest earlier wave.
    Edges,
}

/// Reads every Application in the files, and a platform from their annotations. Everything but
/// Applications is passed over; settings that have no annotation keep their defaults.
pub fn platform_from_applications(
    name: PlatformName,
    waves: SyncWaves,
    sources: &Sources,
) -> Result<Platform, Diagnostics> {
    let mut problems = Diagnostics::default();
    let mut head = resolve::head(name, SpecDocument::default(), &mut problems);
    let apps = read_apps(&mut head, waves, sources, &mut problems);
    let platform = resolve_platform(head, apps, sources, &mut problems);
    problems.into_result(platform)
}

/// The text of a platform file that says what [`platform_from_applications`] reads. It also has the
/// optional dependencies on apps that are absent.
pub fn platform_file_from_applications(
    name: PlatformName,
    waves: SyncWaves,
    sources: &Sources,
) -> Result<String, Diagnostics> {
    let mut problems = Diagnostics::default();
    let mut head = resolve::head(name, SpecDocument::default(), &mut problems);
    let apps = read_apps(&mut head, waves, sources, &mut problems);
    let text = written::platform_file(&head, &apps);
    let platform = resolve_platform(head, apps, sources, &mut problems);
    problems.into_result(platform.map(|_| text))
}

/// The namespaces and projects that Applications name are those of the platform.
fn read_apps(
    head: &mut Head,
    sync_waves: SyncWaves,
    sources: &Sources,
    problems: &mut Diagnostics,
) -> Apps {
    let mut apps = Apps { list: Vec::new(), incomplete: false };
    let mut waves = Waves::default();
    let (mut namespaces, mut projects) = (BTreeSet::new(), BTreeSet::new());
    for (file, source) in sources.iter() {
        match yaml::compose(file, source) {
            Ok(tree) => {
                for application in documents_of(tree.documents(), problems).applications {
                    match read(application, sync_waves, problems) {
                        Some(Manifest { stack, app, wave, namespace, project }) => {
                            namespaces.extend(namespace);
                            projects.extend(project);
                            waves.insert(&app.name.value, wave);
                            apps.list.push((stack, app));
                        }
                        None => apps.incomplete = true,
                    }
                }
            }
            Err(problem) => {
                problems.push(if source.text().contains("{{") {
                    of_template(problem)
                } else {
                    problem
                });
                apps.incomplete = true;
            }
        }
    }
    waves.add_edges(&mut apps, problems);
    namespaces.retain(|namespace: &NamespaceName| namespace.as_str() != head.argocd.namespace);
    head.argocd.application_namespaces = namespaces.into_iter().collect();
    if !projects.is_empty() {
        head.argocd.projects = projects.into_iter().collect();
    }
    apps
}

/// A chart's templates have to be rendered before they are manifests.
fn of_template(problem: Diagnostic) -> Diagnostic {
    problem.hint(
        "this looks like a Helm template: render the chart first, with `helm template CHART | tiphys \
         plan --from-applications -`",
    )
}

fn resolve_platform(
    head: Head,
    apps: Apps,
    sources: &Sources,
    problems: &mut Diagnostics,
) -> Option<Platform> {
    let place = sources.iter().next().map(|(file, _)| Span::start_of(file))?;
    let (apps, graph) = resolve::resolve_apps(apps, Some(&head.groups), place, problems)?;
    Some(head.platform(apps, graph))
}

/// What of Argo CD's a file has.
#[derive(Default)]
struct Documents<'t> {
    applications: Vec<Node<'t>>,
    /// How many ApplicationSets.
    sets: usize,
}

/// The Applications among documents, also those in lists as `kubectl get -o yaml` prints them.
fn documents_of<'t>(
    documents: impl Iterator<Item = Node<'t>>,
    problems: &mut Diagnostics,
) -> Documents<'t> {
    let mut found = Documents::default();
    // Not recursive: aliases can nest lists deeper than the file is nested.
    let mut pending: VecDeque<Node<'t>> = documents.collect();
    while let Some(node) = pending.pop_front() {
        let text = |key| node.get(key).and_then(Node::scalar).map_or("", |scalar| scalar.text);
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let of_argocd = api_version.starts_with("argoproj.io/");
        if of_argocd && kind == "Application" {
            found.applications.push(node);
        } else if of_argocd && kind == "ApplicationSet" {
            found.sets += 1;
        } else if (api_version, kind) == ("v1", "List") {
            refuse_duplicates(node, problems);
            if let Some(Content::Sequence(items)) = node.get("items").map(Node::content) {
                pending.extend(items);
            }
        }
    }
    found
}

/// What one Application says.
struct Manifest {
    stack: StackName,
    app: AppDocument,
    /// `None`: it does not matter, or could not be read.
    wave: Option<Spanned<i64>>,
    /// `None`: that of whoever applies it.
    namespace: Option<NamespaceName>,
    project: Option<String>,
}

fn read(
    application: Node<'_>,
    sync_waves: SyncWaves,
    problems: &mut Diagnostics,
) -> Option<Manifest> {
    refuse_duplicates(application, problems);
    let metadata = application.get("metadata");
    let Some((metadata, name_node)) = metadata.and_then(|node| Some((node, node.get("name")?)))
    else {
        let span = metadata.unwrap_or(application).span();
        let title = "the Application has no name";
        problems.push(Diagnostic::new(title, span, "`metadata.name` is missing here"));
        return None;
    };
    refuse_duplicates(metadata, problems);
    let annotations = metadata.get("annotations");
    let annotation = |key| annotations.and_then(|node| node.get(key));
    if let Some(annotations) = annotations {
        refuse_duplicates(annotations, problems);
        refuse_unknown_annotations(annotations, problems);
    }
    let stack = match annotation(STACK) {
        Some(node) => StackName::decode(node, problems),
        None => Some(StackName::parse("default").expect("`default` is a valid name")),
    };
    // Everything is read before anything is missed, so that all problems show at once.
    let name = Decode::decode(name_node, problems);
    let namespace = metadata.get("namespace").and_then(|node| Decode::decode(node, problems));
    let wave = match sync_waves {
        SyncWaves::Ignored => None,
        SyncWaves::Edges => waves::read(annotation(waves::ANNOTATION), name_node, problems),
    };
    let app_type = annotation(TYPE).and_then(|node| Decode::decode(node, problems));
    let depends_on = annotation(DEPENDS_ON).or_else(|| annotation(UNKNOWN_TO_ARGOCD));
    let depends_on = depends_on.map_or_else(List::default, |node| edges(node, problems));
    let app = AppDocument {
        name: name?,
        app_type,
        group: None,
        typical: None,
        depends_on,
        timeouts: None,
        retry: None,
        tolerate_drift: List::default(),
        health: List::default(),
    };
    let project = application.get("spec").and_then(|node| node.get("project"));
    let project = project.and_then(Node::scalar).map(|scalar| scalar.text.to_owned());
    // Kubernetes has no project of any other name.
    let project = project.filter(|name| AppName::parse(name).is_ok());
    Some(Manifest { stack: stack?, app, wave, namespace, project })
}

/// Reads `a, b?`. An empty text is what a template makes of an empty list: no dependencies.
fn edges(node: Node<'_>, problems: &mut Diagnostics) -> List<DependencyDocument> {
    let mut list = List::default();
    if node.scalar().is_some_and(|scalar| scalar.text.is_empty() && !scalar.plain) {
        return list;
    }
    let Some(text) = String::decode(node, problems) else {
        list.incomplete = true;
        return list;
    };
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (name, optional) = match item.strip_suffix('?') {
            Some(name) => (name.trim_end(), true),
            None => (item, false),
        };
        match AppName::parse(name) {
            Ok(value) => {
                let app = Spanned { value, span: node.span() };
                list.items.push(DependencyDocument { app, optional, origin: EdgeOrigin::Written });
            }
            Err(error) => problems.push(bad_name(node, name, "an app", &error)),
        }
    }
    list
}

fn refuse_unknown_annotations(annotations: Node<'_>, problems: &mut Diagnostics) {
    let Content::Mapping(items) = annotations.content() else { return };
    for (key, _) in items.pairs() {
        let name = key.scalar().map_or("", |scalar| scalar.text);
        if name.starts_with(PREFIX) && ![DEPENDS_ON, STACK, TYPE].contains(&name) {
            let title = format!("unknown annotation {}", quoted(name));
            let hint = match crate::nearest(name, [DEPENDS_ON, STACK, TYPE]) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("known annotations: {DEPENDS_ON}, {STACK}, {TYPE}"),
            };
            problems.push(Diagnostic::new(title, key.span(), "not a Tiphys annotation").hint(hint));
        }
    }
}
