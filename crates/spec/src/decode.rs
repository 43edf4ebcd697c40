//! From YAML nodes to typed values, reporting every problem instead of the first.
//!
//! `None` always means: a problem has been reported. Callers go on with what they have, so one
//! pass over a file finds everything that is wrong with its shape.

mod fields;
mod values;

pub(crate) use fields::{Fields, refuse_duplicates};
pub(crate) use values::bad_name;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Spanned;
use crate::yaml::{Content, Node};

pub(crate) trait Decode: Sized {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self>;
}

impl<T: Decode> Decode for Spanned<T> {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        Some(Spanned { span: node.span(), value: T::decode(node, problems)? })
    }
}

/// A list of which some items may have been unreadable.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// An item is missing here, so nothing can be said about what the list lacks.
    pub(crate) incomplete: bool,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List { items: Vec::new(), incomplete: false }
    }
}

impl<T: Decode> Decode for List<T> {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let Content::Sequence(nodes) = node.content() else {
            expected(node, "a list", problems);
            return None;
        };
        let mut list = List::default();
        for item in nodes {
            match T::decode(item, problems) {
                Some(value) => list.items.push(value),
                None => list.incomplete = true,
            }
        }
        Some(list)
    }
}

/// Reports that a node is of the wrong kind.
pub(crate) fn expected(node: Node<'_>, what: &str, problems: &mut Diagnostics) {
    let title = format!("expected {what}, found {}", node.noun());
    problems.push(Diagnostic::new(title, node.span(), format!("this should be {what}")));
}
