//! Reading the document types that are not plain objects.

use tiphys_model::AppName;
use tiphys_model::platform::GroupKind;

use super::{DependencyDocument, Drift, EdgeOrigin, Metadata, PlatformDocument, SpecDocument};
use crate::decode::{Decode, Fields, expected};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::source::Spanned;
use crate::yaml::{Content, Node};

/// Reads a platform document whose `apiVersion` and `kind` are right.
pub(super) fn platform(
    root: Node<'_>,
    in_directory: bool,
    problems: &mut Diagnostics,
) -> Option<PlatformDocument> {
    let mut fields = Fields::open(root, "a platform", problems)?;
    let _claims: [Option<String>; 2] =
        ["apiVersion", "kind"].map(|name| fields.optional(name, problems));
    let metadata: Option<Metadata> = fields.optional("metadata", problems);
    let metadata_unread = metadata.is_none() && fields.has("metadata");
    let spec =
        fields.required_with("spec", problems, |node, problems| spec(node, in_directory, problems));
    fields.finish(problems);
    let spec = spec.unwrap_or_default();
    Some(PlatformDocument { api_version: (), kind: (), metadata, metadata_unread, spec })
}

/// Reads a file of a directory that holds nothing but `stacks`.
pub(super) fn bare_stacks(root: Node<'_>, problems: &mut Diagnostics) -> Option<PlatformDocument> {
    let mut fields = Fields::open(root, "a file of stacks", problems)?;
    let stacks = fields.required("stacks", problems);
    fields.finish(problems);
    let spec = SpecDocument { stacks, ..SpecDocument::default() };
    let (metadata, metadata_unread) = (None, false);
    Some(PlatformDocument { api_version: (), kind: (), metadata, metadata_unread, spec })
}

/// Reads a spec. In a directory, the stacks may stand in other files.
fn spec(node: Node<'_>, in_directory: bool, problems: &mut Diagnostics) -> Option<SpecDocument> {
    let mut fields = Fields::open(node, "a platform's spec", problems)?;
    let stacks_elsewhere = in_directory && !fields.has("stacks");
    let spec = SpecDocument {
        head: fields.first_other_than("stacks"),
        environment: fields.optional("environment", problems),
        source: fields.optional("source", problems),
        argocd: fields.optional("argocd", problems),
        bootstrap: fields.optional("bootstrap", problems),
        hold: fields.optional("hold", problems),
        concurrency: fields.optional("concurrency", problems),
        groups: fields.optional("groups", problems),
        timeout: fields.optional("timeout", problems),
        teardown: fields.optional("teardown", problems),
        workflows: fields.optional("workflows", problems),
        deploy: fields.optional("deploy", problems),
        triggers: fields.optional("triggers", problems),
        stacks: if stacks_elsewhere {
            // Asked for all the same, so that it counts as known.
            Some(fields.optional("stacks", problems).unwrap_or_default())
        } else {
            fields.required("stacks", problems)
        },
    };
    fields.finish(problems);
    Some(spec)
}

impl Decode for DependencyDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        match node.content() {
            Content::Scalar(_) => {
                let app = Spanned::<AppName>::decode(node, problems)?;
                Some(DependencyDocument { app, optional: false, origin: EdgeOrigin::Written })
            }
            Content::Mapping(_) => {
                let mut fields = Fields::open(node, "a dependency", problems)?;
                let app = fields.required("app", problems);
                let optional = fields.optional("optional", problems).unwrap_or(false);
                fields.finish(problems);
                Some(DependencyDocument { app: app?, optional, origin: EdgeOrigin::Written })
            }
            Content::Sequence(_) => {
                expected(node, "the name of an app, or an object with `app`", problems);
                None
            }
        }
    }
}

impl Decode for Drift {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        let well_formed = text.split_once('/').is_some_and(|(kind, name)| {
            !kind.is_empty() && !name.is_empty() && !name.contains('/')
        });
        if well_formed {
            return Some(Drift(text));
        }
        let title = format!("{} is not a resource", quoted(&text));
        problems.push(
            Diagnostic::new(title, node.span(), "must have the form `Kind/name`")
                .hint("for example `ConfigMap/settings`"),
        );
        None
    }
}

impl Decode for GroupKind {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        let (group, kind) = text.split_once('/').unwrap_or(("", &text));
        let well_formed = !kind.is_empty() && !kind.contains('/') && !text.starts_with('/');
        if well_formed {
            let [group, kind] = [group, kind].map(str::to_owned);
            return Some(GroupKind { group, kind });
        }
        let title = format!("{} is not a kind", quoted(&text));
        problems.push(
            Diagnostic::new(title, node.span(), "must have the form `Kind` or `group/Kind`")
                .hint("for example `Namespace` or `rbac.authorization.k8s.io/ClusterRole`"),
        );
        None
    }
}
