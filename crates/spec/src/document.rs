//! The shape of a platform file: what may stand where.
//!
//! These types are the file format. The JSON Schema is generated from them, their doc comments
//! are its descriptions, and [`decode`](crate::decode) fills them. Optional fields are not
//! nullable, which the derive cannot know: `required` says which are not optional. What they refer to (names,
//! edges, groups) is checked later, in [`resolve`](crate::resolve).

pub(crate) mod bootstrap;
pub(crate) mod criteria;
mod decode;

use std::num::NonZeroU32;
use std::time::Duration;

use schemars::JsonSchema;
use tiphys_model::platform::{AppType, ArgoCdAccess, Hold};
use tiphys_model::{AppName, GroupName, PlatformName, StackName};

use crate::decode::{List, expected};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::schema;
use crate::source::{SourceIx, Sources, Span, Spanned};
use crate::yaml::{self, Content, Meaning, Node, Scalar};
use bootstrap::BootstrapDocument;
use criteria::CriterionDocument;

pub(crate) const API_VERSION: &str = "tiphys.dev/v1alpha1";
pub(crate) const KIND: &str = "Platform";
/// More than any Argo CD could work on at once.
pub(crate) const MAX_CONCURRENCY: i64 = 10_000;
pub(crate) const MAX_COUNT: i64 = 100;

/// A platform: its stacks of Argo CD Applications, what depends on what, and how to deploy it.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Platform", rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["apiVersion", "kind", "metadata", "spec"]))]
pub(crate) struct PlatformDocument {
    #[schemars(schema_with = "schema::api_version")]
    #[expect(dead_code, reason = "checked before the rest is read; here for the schema")]
    pub(crate) api_version: (),
    #[schemars(schema_with = "schema::kind")]
    #[expect(dead_code, reason = "checked before the rest is read; here for the schema")]
    pub(crate) kind: (),
    #[schemars(with = "Metadata")]
    pub(crate) metadata: Option<Metadata>,
    /// There is metadata that could not be read, so a name may well be given.
    #[schemars(skip)]
    pub(crate) metadata_unread: bool,
    pub(crate) spec: SpecDocument,
}

#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Metadata {
    /// The platform's name. Its Lease and ConfigMap in the cluster are called `tiphys-NAME`.
    #[schemars(schema_with = "schema::platform_name")]
    pub(crate) name: Spanned<PlatformName>,
}

#[derive(Debug, Default, JsonSchema)]
#[schemars(rename = "Spec", rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["stacks"]))]
pub(crate) struct SpecDocument {
    /// The environment that this file is for.
    #[schemars(with = "EnvironmentDocument")]
    pub(crate) environment: Option<EnvironmentDocument>,
    /// The source of the root app, which creates all others.
    #[schemars(with = "SourceDocument")]
    pub(crate) source: Option<SourceDocument>,
    /// Where the Applications live in Argo CD.
    #[schemars(with = "ArgoCdDocument")]
    pub(crate) argocd: Option<ArgoCdDocument>,
    #[schemars(with = "BootstrapDocument")]
    pub(crate) bootstrap: Option<BootstrapDocument>,
    /// How long automated sync is denied: while a run has authority, or always.
    #[schemars(schema_with = "schema::hold")]
    pub(crate) hold: Option<Hold>,
    /// How many apps may be in progress at once; 16 unless given.
    #[schemars(schema_with = "schema::concurrency")]
    pub(crate) concurrency: Option<NonZeroU32>,
    /// Groups of apps of which only a few may be in progress at once.
    #[schemars(with = "Vec<GroupDocument>")]
    pub(crate) groups: Option<List<GroupDocument>>,
    /// The run's own deadline; 3h unless given.
    #[schemars(schema_with = "schema::duration")]
    pub(crate) timeout: Option<Spanned<Duration>>,
    /// The apps, in named stacks.
    #[schemars(with = "Vec<StackDocument>")]
    pub(crate) stacks: Option<List<StackDocument>>,
    /// The first field other than `stacks`: the head of a platform stands in one file only.
    #[schemars(skip)]
    pub(crate) head: Option<Span>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Environment", deny_unknown_fields)]
#[schemars(extend("required" = ["name"]))]
pub(crate) struct EnvironmentDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) name: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) domain: Option<String>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Source", deny_unknown_fields)]
#[schemars(extend("required" = ["repoURL", "path"]))]
pub(crate) struct SourceDocument {
    #[schemars(rename = "repoURL", schema_with = "schema::text")]
    pub(crate) repo_url: String,
    /// `HEAD` unless given.
    #[schemars(rename = "targetRevision", schema_with = "schema::text")]
    pub(crate) target_revision: Option<String>,
    #[schemars(schema_with = "schema::text")]
    pub(crate) path: String,
}

#[derive(Debug, Default, JsonSchema)]
#[schemars(rename = "ArgoCD", rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = []))]
pub(crate) struct ArgoCdDocument {
    /// `argocd` unless given.
    #[schemars(schema_with = "schema::text")]
    pub(crate) namespace: Option<String>,
    /// The AppProject of the apps; `platform` unless given.
    #[schemars(schema_with = "schema::text")]
    pub(crate) project: Option<String>,
    /// The AppProject of the root app and other generators; `platform-root` unless given.
    #[schemars(schema_with = "schema::text")]
    pub(crate) root_project: Option<String>,
    /// How a run acts on Argo CD: through its API, or, where it has none, through the fields of
    /// Applications.
    #[schemars(schema_with = "schema::access")]
    pub(crate) access: Option<ArgoCdAccess>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Group", deny_unknown_fields)]
pub(crate) struct GroupDocument {
    #[schemars(schema_with = "schema::label")]
    pub(crate) name: Spanned<GroupName>,
    #[schemars(schema_with = "schema::concurrency")]
    pub(crate) concurrency: NonZeroU32,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Stack", deny_unknown_fields)]
pub(crate) struct StackDocument {
    #[schemars(schema_with = "schema::label")]
    pub(crate) name: Spanned<StackName>,
    #[schemars(with = "Vec<AppDocument>")]
    pub(crate) apps: List<AppDocument>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "App", rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["name"]))]
pub(crate) struct AppDocument {
    /// The name of the Argo CD Application.
    #[schemars(schema_with = "schema::app_name")]
    pub(crate) name: Spanned<AppName>,
    /// What the app is made of; decides default timeouts and estimates.
    #[schemars(rename = "type", schema_with = "schema::app_type")]
    pub(crate) app_type: Option<AppType>,
    /// One of `spec.groups`.
    #[schemars(schema_with = "schema::label")]
    pub(crate) group: Option<Spanned<GroupName>>,
    /// How long it typically takes from sync to Healthy.
    #[schemars(schema_with = "schema::duration")]
    pub(crate) typical: Option<Duration>,
    /// The apps that must be Healthy before this one starts.
    #[schemars(with = "Vec<DependencyDocument>")]
    pub(crate) depends_on: List<DependencyDocument>,
    #[schemars(with = "TimeoutsDocument")]
    pub(crate) timeouts: Option<TimeoutsDocument>,
    #[schemars(with = "RetryDocument")]
    pub(crate) retry: Option<RetryDocument>,
    /// `Kind/name` of resources that may stay OutOfSync.
    #[schemars(schema_with = "schema::drift")]
    pub(crate) tolerate_drift: List<Drift>,
    /// Health criteria beyond Argo CD's verdict.
    #[schemars(with = "Vec<CriterionDocument>")]
    pub(crate) health: List<CriterionDocument>,
}

/// An edge: the name of an app, or an object with options.
#[derive(Debug)]
pub(crate) struct DependencyDocument {
    pub(crate) app: Spanned<AppName>,
    pub(crate) optional: bool,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Timeouts", deny_unknown_fields)]
#[schemars(extend("required" = []))]
pub(crate) struct TimeoutsDocument {
    /// From the sync request to the end of the operation.
    #[schemars(schema_with = "schema::duration")]
    pub(crate) sync: Option<Spanned<Duration>>,
    /// From the end of the operation to Healthy.
    #[schemars(schema_with = "schema::duration")]
    pub(crate) health: Option<Spanned<Duration>>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Retry", deny_unknown_fields)]
#[schemars(extend("required" = []))]
pub(crate) struct RetryDocument {
    /// How often a failed attempt is repeated: 2 means three attempts.
    #[schemars(schema_with = "schema::count")]
    pub(crate) limit: Option<u32>,
    #[schemars(with = "BackoffDocument")]
    pub(crate) backoff: Option<BackoffDocument>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Backoff", deny_unknown_fields)]
#[schemars(extend("required" = []))]
pub(crate) struct BackoffDocument {
    #[schemars(schema_with = "schema::duration")]
    pub(crate) duration: Option<Spanned<Duration>>,
    #[schemars(schema_with = "schema::factor")]
    pub(crate) factor: Option<Factor>,
    #[schemars(schema_with = "schema::duration")]
    pub(crate) max: Option<Spanned<Duration>>,
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
        let title = format!("the file does not say its `{field}`");
        problems.push(
            Diagnostic::new(title, span, "missing in this document")
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
        format!("this version reads `{field}: {value}`")
    };
    let title = format!("the {field} {} is not one that Tiphys reads", quoted(text));
    problems.push(Diagnostic::new(title, node.span(), "not known").hint(hint));
    false
}
