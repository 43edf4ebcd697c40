//! The shape of a platform file: what may stand where.
//!
//! These types are the file format. The JSON Schema is generated from them, their doc comments
//! are its descriptions, and [`decode`](crate::decode) fills them. Optional fields are not
//! nullable, which the derive cannot know: it is told which fields are required. What they refer
//! to (names, edges, groups) is checked later, in [`resolve`](crate::resolve).

pub(crate) mod argocd;
pub(crate) mod bootstrap;
pub(crate) mod criteria;
mod decode;
pub(crate) mod deploy;
mod object;
pub(crate) mod server;
pub(crate) mod teardown;
pub(crate) mod trigger;

use std::num::NonZeroU32;
use std::time::Duration;

use tiphys_model::platform::{AppType, Hold, WorkflowMode};
use tiphys_model::{AppName, GroupName, PlatformName, StackName};

use crate::decode::{List, expected};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
#[cfg(test)]
use crate::schema;
use crate::source::{SourceIx, Sources, Span, Spanned};
use crate::yaml::{self, Content, Meaning, Node, Scalar};
use argocd::ArgoCdDocument;
use bootstrap::BootstrapDocument;
use criteria::CriterionDocument;
use deploy::DeployDocument;
use object::document;
use teardown::TeardownDocument;
use trigger::TriggerDocument;

/// Of platform files.
pub const API_VERSION: &str = "tiphys.dev/v1alpha1";
pub(crate) const KIND: &str = "Platform";
/// More than any Argo CD could work on at once.
pub(crate) const MAX_CONCURRENCY: i64 = 10_000;
pub(crate) const MAX_COUNT: i64 = 100;

/// A platform: its stacks of Argo CD Applications, what depends on what, and how to deploy it.
#[derive(Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Platform", rename_all = "camelCase", deny_unknown_fields))]
#[cfg_attr(test, schemars(extend("required" = ["apiVersion", "kind", "metadata", "spec"])))]
pub(crate) struct PlatformDocument {
    #[cfg_attr(test, schemars(schema_with = "schema::api_version"))]
    #[expect(dead_code, reason = "checked before the rest is read; here for the schema")]
    pub(crate) api_version: (),
    #[cfg_attr(test, schemars(schema_with = "schema::kind"))]
    #[expect(dead_code, reason = "checked before the rest is read; here for the schema")]
    pub(crate) kind: (),
    #[cfg_attr(test, schemars(with = "Metadata"))]
    pub(crate) metadata: Option<Metadata>,
    /// There is metadata that could not be read, so a name may well be given.
    #[cfg_attr(test, schemars(skip))]
    pub(crate) metadata_unread: bool,
    pub(crate) spec: SpecDocument,
}

document! {
    Metadata, "metadata" {
        /// The platform's name. Its Lease and ConfigMap in the cluster are called `tiphys-NAME`.
        #[schemars(schema_with = "schema::platform_name")]
        name: Spanned<PlatformName> = required("name"),
    }
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Spec", rename_all = "camelCase", deny_unknown_fields))]
#[cfg_attr(test, schemars(extend("required" = ["stacks"])))]
pub(crate) struct SpecDocument {
    /// The environment that this file is for.
    #[cfg_attr(test, schemars(with = "EnvironmentDocument"))]
    pub(crate) environment: Option<EnvironmentDocument>,
    /// The source of the root app, which creates all others.
    #[cfg_attr(test, schemars(with = "SourceDocument"))]
    pub(crate) source: Option<SourceDocument>,
    /// Where the Applications live in Argo CD.
    #[cfg_attr(test, schemars(with = "ArgoCdDocument"))]
    pub(crate) argocd: Option<ArgoCdDocument>,
    #[cfg_attr(test, schemars(with = "BootstrapDocument"))]
    pub(crate) bootstrap: Option<BootstrapDocument>,
    /// How long automated sync is denied: while a run has authority, or always.
    #[cfg_attr(test, schemars(schema_with = "schema::hold"))]
    pub(crate) hold: Option<Hold>,
    /// How many apps may be in progress at once; 16 unless given.
    #[cfg_attr(test, schemars(schema_with = "schema::concurrency"))]
    pub(crate) concurrency: Option<NonZeroU32>,
    /// Groups of apps of which only a few may be in progress at once.
    #[cfg_attr(test, schemars(with = "Vec<GroupDocument>"))]
    pub(crate) groups: Option<List<GroupDocument>>,
    /// The run's own deadline; 3h unless given.
    #[cfg_attr(test, schemars(schema_with = "schema::duration"))]
    pub(crate) timeout: Option<Spanned<Duration>>,
    /// What a teardown may remove besides the platform's own objects.
    #[cfg_attr(test, schemars(with = "TeardownDocument"))]
    pub(crate) teardown: Option<TeardownDocument>,
    /// What a run on Argo Workflows consists of: one container, or also a node for each app.
    #[cfg_attr(test, schemars(schema_with = "schema::workflows"))]
    pub(crate) workflows: Option<WorkflowMode>,
    /// Who starts deployments: people and pipelines, or also the deploy loop in the cluster.
    #[cfg_attr(test, schemars(with = "DeployDocument"))]
    pub(crate) deploy: Option<DeployDocument>,
    /// What starts runs without a person, besides new commits.
    #[cfg_attr(test, schemars(with = "Vec<TriggerDocument>", extend("uniqueItems" = true)))]
    pub(crate) triggers: Option<List<TriggerDocument>>,
    /// The apps, in named stacks.
    #[cfg_attr(test, schemars(with = "Vec<StackDocument>"))]
    pub(crate) stacks: Option<List<StackDocument>>,
    /// The first field other than `stacks`: the head of a platform stands in one file only.
    #[cfg_attr(test, schemars(skip))]
    pub(crate) head: Option<Span>,
}

document! {
    #[schemars(rename = "Environment")]
    EnvironmentDocument, "an environment" {
        #[schemars(schema_with = "schema::text")]
        name: String = required("name"),
        #[schemars(schema_with = "schema::text")]
        domain: Option<String> = optional("domain"),
    }
}

document! {
    #[schemars(rename = "Source")]
    SourceDocument, "a source" {
        #[schemars(schema_with = "schema::text")]
        repo_url: String = required("repoURL"),
        /// `HEAD` unless given.
        #[schemars(schema_with = "schema::text")]
        target_revision: Option<String> = optional("targetRevision"),
        #[schemars(schema_with = "schema::text")]
        path: String = required("path"),
        /// Set this if the path is a folder of manifests instead of a chart.
        #[schemars(with = "DirectoryDocument")]
        directory: Option<DirectoryDocument> = optional("directory"),
    }
}

document! {
    #[schemars(rename = "Directory")]
    DirectoryDocument, "a directory" {
        /// Whether to read subfolders too.
        #[schemars(with = "bool")]
        recurse: Option<bool> = optional("recurse"),
    }
}

document! {
    #[schemars(rename = "Group")]
    GroupDocument, "a group" {
        #[schemars(schema_with = "schema::label")]
        name: Spanned<GroupName> = required("name"),
        #[schemars(schema_with = "schema::concurrency")]
        concurrency: NonZeroU32 = required("concurrency"),
    }
}

document! {
    #[schemars(rename = "Stack")]
    StackDocument, "a stack" {
        #[schemars(schema_with = "schema::label")]
        name: Spanned<StackName> = required("name"),
        #[schemars(with = "Vec<AppDocument>")]
        apps: List<AppDocument> = required("apps"),
    }
}

document! {
    #[schemars(rename = "App")]
    AppDocument, "an app" {
        /// The name of the Argo CD Application.
        #[schemars(schema_with = "schema::app_name")]
        name: Spanned<AppName> = required("name"),
        /// What the app is made of; decides default timeouts and estimates.
        #[schemars(schema_with = "schema::app_type")]
        app_type: Option<AppType> = optional("type"),
        /// One of `spec.groups`.
        #[schemars(schema_with = "schema::label")]
        group: Option<Spanned<GroupName>> = optional("group"),
        /// How long it typically takes from sync to Healthy.
        #[schemars(schema_with = "schema::duration")]
        typical: Option<Duration> = optional("typical"),
        /// The apps that must be Healthy before this one starts.
        #[schemars(with = "Vec<DependencyDocument>")]
        depends_on: List<DependencyDocument> = defaulted("dependsOn"),
        #[schemars(with = "TimeoutsDocument")]
        timeouts: Option<TimeoutsDocument> = optional("timeouts"),
        #[schemars(with = "RetryDocument")]
        retry: Option<RetryDocument> = optional("retry"),
        /// `Kind/name` of resources that may stay OutOfSync.
        #[schemars(schema_with = "schema::drift")]
        tolerate_drift: List<Drift> = defaulted("tolerateDrift"),
        /// Health criteria beyond Argo CD's verdict.
        #[schemars(with = "Vec<CriterionDocument>")]
        health: List<CriterionDocument> = defaulted("health"),
    }
}

/// An edge: the name of an app, or an object with options.
#[derive(Debug)]
pub(crate) struct DependencyDocument {
    pub(crate) app: Spanned<AppName>,
    pub(crate) optional: bool,
    pub(crate) origin: EdgeOrigin,
}

/// Why there is an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeOrigin {
    /// Somebody wrote it.
    Written,
    /// The dependant is in a later sync wave.
    SyncWave,
}

document! {
    #[schemars(rename = "Timeouts")]
    TimeoutsDocument, "timeouts" {
        /// From the sync request to the end of the operation.
        #[schemars(schema_with = "schema::duration")]
        sync: Option<Spanned<Duration>> = optional("sync"),
        /// From the end of the operation to Healthy.
        #[schemars(schema_with = "schema::duration")]
        health: Option<Spanned<Duration>> = optional("health"),
    }
}

document! {
    #[schemars(rename = "Retry")]
    RetryDocument, "a retry policy" {
        /// How often a failed attempt is repeated: 2 means three attempts.
        #[schemars(schema_with = "schema::count")]
        limit: Option<u32> = optional("limit"),
        #[schemars(with = "BackoffDocument")]
        backoff: Option<BackoffDocument> = optional("backoff"),
    }
}

document! {
    #[schemars(rename = "Backoff")]
    BackoffDocument, "a back-off" {
        #[schemars(schema_with = "schema::duration")]
        duration: Option<Spanned<Duration>> = optional("duration"),
        #[schemars(schema_with = "schema::factor")]
        factor: Option<Factor> = optional("factor"),
        #[schemars(schema_with = "schema::duration")]
        max: Option<Spanned<Duration>> = optional("max"),
    }
}

/// By what a wait grows: never less than 1, as it would shrink to nothing.
#[derive(Debug)]
pub(crate) struct Factor(pub(crate) u32);

/// `Kind/name` of a resource.
#[derive(Debug)]
pub(crate) struct Drift(pub(crate) String);

/// One file of a platform.
#[derive(Debug)]
pub(crate) struct PlatformFile {
    pub(crate) file: SourceIx,
    /// `None`: it could not be read, so nothing can be said about what the platform lacks.
    pub(crate) document: Option<PlatformDocument>,
}

/// Reads every file of a platform.
pub(crate) fn platform_files(sources: &Sources, problems: &mut Diagnostics) -> Vec<PlatformFile> {
    let files = sources.iter().map(|(file, source)| {
        let document = match yaml::compose(file, source) {
            Ok(tree) => single_document(file, tree.documents(), problems)
                .and_then(|root| platform_document(root, sources.is_directory(), problems)),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        PlatformFile { file, document }
    });
    files.collect()
}

fn single_document<'t>(
    file: SourceIx,
    documents: impl Iterator<Item = Node<'t>>,
    problems: &mut Diagnostics,
) -> Option<Node<'t>> {
    // Nothing but comments between two `---` is no document to anybody who writes it.
    let empty = |node: &Node<'_>| node.scalar().map(Scalar::meaning) == Some(Meaning::Null);
    let mut documents = documents.filter(|node| !empty(node));
    let Some(root) = documents.next() else {
        problems.push(
            Diagnostic::new("the file is empty", Span::start_of(file), "nothing here").hint(
                format!(
                    "a platform file begins with `apiVersion: {API_VERSION}` and `kind: {KIND}`"
                ),
            ),
        );
        return None;
    };
    if let Some(second) = documents.next() {
        let title = "the file has more than one YAML document";
        problems.push(Diagnostic::new(title, second.span(), "the second one begins here").hint(
            "put each platform in its own file; several files of one platform go in a directory",
        ));
    }
    Some(root)
}

/// Checks what the document claims to be before its fields, so that a file of another kind
/// gets one clear answer instead of a list of unknown fields.
fn platform_document(
    root: Node<'_>,
    in_directory: bool,
    problems: &mut Diagnostics,
) -> Option<PlatformDocument> {
    if !matches!(root.content(), Content::Mapping(_)) {
        expected(root, "a platform (an object)", problems);
        return None;
    }
    let has = |field| root.get(field).is_some();
    // In a directory, a file may hold nothing but `stacks`.
    let whole = ["apiVersion", "kind", "metadata", "spec"].into_iter().any(has);
    if in_directory && has("stacks") && !whole {
        return decode::bare_stacks(root, problems);
    }
    let claims = [("apiVersion", API_VERSION), ("kind", KIND)];
    let wrong = claims
        .iter()
        .filter(|(field, value)| !claim_holds(root, root.get(field), field, value, problems));
    if wrong.count() > 0 {
        return None;
    }
    decode::platform(root, in_directory, problems)
}

fn claim_holds(
    root: Node<'_>,
    found: Option<Node<'_>>,
    field: &str,
    value: &str,
    problems: &mut Diagnostics,
) -> bool {
    let Some(node) = found else {
        let span = Span { end: root.span().start, ..root.span() };
        let title = format!("`{field}` is missing");
        problems.push(
            Diagnostic::new(title, span, "in this document")
                .hint(format!("add `{field}: {value}`")),
        );
        return false;
    };
    let text = node.scalar().map_or("", |scalar| scalar.text);
    if text == value {
        return true;
    }
    let hint = if field == "kind" && text == "Application" {
        "to read dependencies from Application manifests, use `--from-applications DIR`".to_owned()
    } else {
        format!("this version supports `{field}: {value}`")
    };
    let title = format!("unsupported {field} {}", quoted(text));
    problems.push(Diagnostic::new(title, node.span(), "not supported").hint(hint));
    false
}
