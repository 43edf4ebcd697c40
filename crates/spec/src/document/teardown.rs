//! The rules of a teardown, as the file says them.

use tiphys_model::platform::GroupKind;

use super::object::document;
use crate::decode::{Decode, List};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
#[cfg(test)]
use crate::schema;
use crate::yaml::Node;

document! {
    #[derive(Default)]
    #[schemars(rename = "Teardown")]
    TeardownDocument, "the teardown settings" {
        /// Kinds whose objects a teardown removes even if they are not the platform's: `Kind` of
        /// the core group, or `group/Kind`.
        #[schemars(schema_with = "schema::disposable_kinds")]
        disposable: List<DisposableKind> = defaulted("disposable"),
    }
}

/// Exactly one kind: whatever a glob matches would be deleted.
#[derive(Debug)]
pub(crate) struct DisposableKind(pub(crate) GroupKind);

impl Decode for DisposableKind {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let decoded = GroupKind::decode(node, problems)?;
        let GroupKind { group, kind } = &decoded;
        let dashed = |c: char| c == '-' || c.is_ascii_alphanumeric();
        let in_group = |c: char| c == '.' || dashed(c) && !c.is_ascii_uppercase();
        if group.chars().all(in_group)
            && kind.starts_with(|first: char| first.is_ascii_uppercase())
            && kind.chars().all(dashed)
        {
            return Some(DisposableKind(decoded));
        }
        let text = if group.is_empty() { kind.clone() } else { format!("{group}/{kind}") };
        let title = format!("{} is not a single kind", quoted(&text));
        problems.push(
            Diagnostic::new(title, node.span(), "must start with a capital and have no globs")
                .hint("for example `Secret` or `cert-manager.io/Certificate`"),
        );
        None
    }
}
