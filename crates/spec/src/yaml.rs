//! YAML as a tree in which every node knows its place.
//!
//! The grammar is the parser library's; ours are the budgets, so that a hostile file ends in an
//! error before it costs memory or time, and the layout: nodes lie in document order in one
//! array, a container knows where its last descendant ends, an alias is a pointer. So 100,000
//! apps cost a few allocations, and an alias bomb costs nothing until its size is refused.

mod compose;
mod scalar;

pub(crate) use compose::compose;
pub(crate) use scalar::{Meaning, Scalar};

use std::borrow::Cow;

use crate::source::{SourceIx, Span};

/// The documents of one file.
pub(crate) struct Tree<'a> {
    file: SourceIx,
    text: &'a str,
    nodes: Vec<NodeData>,
    /// Scalars whose value is not a slice of the file: escapes, folded lines.
    unescaped: Vec<String>,
    /// Positions of the root node of each document.
    roots: Vec<u32>,
}

#[derive(Clone, Copy)]
struct NodeData {
    start: u32,
    end: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// The value is `text[from..to]`.
    Slice {
        from: u32,
        to: u32,
        plain: bool,
    },
    /// The value is `unescaped[index]`.
    Unescaped {
        index: u32,
        plain: bool,
    },
    /// Items are the nodes from the next one up to `end`, each skipping its own descendants.
    Sequence {
        end: u32,
    },
    /// Keys and values alternate.
    Mapping {
        end: u32,
    },
    Alias {
        target: u32,
    },
}

/// A node of a [`Tree`]. Aliases have been followed, but keep the place of the alias.
#[derive(Clone, Copy)]
pub(crate) struct Node<'t> {
    tree: &'t Tree<'t>,
    span: Span,
    at: u32,
}

/// What a node is.
pub(crate) enum Content<'t> {
    Scalar(Scalar<'t>),
    Sequence(Items<'t>),
    Mapping(Items<'t>),
}

impl<'t> Tree<'t> {
    pub(crate) fn documents(&'t self) -> impl Iterator<Item = Node<'t>> {
        self.roots.iter().map(|root| self.node(*root))
    }

    fn node(&'t self, at: u32) -> Node<'t> {
        let data = &self.nodes[at as usize];
        let span = Span { file: self.file, start: data.start, end: data.end };
        match data.kind {
            Kind::Alias { target } => Node { tree: self, span, at: target },
            _ => Node { tree: self, span, at },
        }
    }

    /// The position after a node and all that it contains.
    fn after(&self, at: u32) -> u32 {
        match self.nodes[at as usize].kind {
            Kind::Sequence { end } | Kind::Mapping { end } => end,
            Kind::Slice { .. } | Kind::Unescaped { .. } | Kind::Alias { .. } => at + 1,
        }
    }
}

impl<'t> Node<'t> {
    pub(crate) fn span(self) -> Span {
        self.span
    }

    pub(crate) fn content(self) -> Content<'t> {
        let items = |end| Items { tree: self.tree, next: self.at + 1, end };
        match self.tree.nodes[self.at as usize].kind {
            Kind::Slice { from, to, plain } => {
                let text = &self.tree.text[from as usize..to as usize];
                Content::Scalar(Scalar { text, plain })
            }
            Kind::Unescaped { index, plain } => {
                Content::Scalar(Scalar { text: &self.tree.unescaped[index as usize], plain })
            }
            Kind::Sequence { end } => Content::Sequence(items(end)),
            Kind::Mapping { end } => Content::Mapping(items(end)),
            Kind::Alias { .. } => unreachable!("aliases point at nodes, never at aliases"),
        }
    }

    pub(crate) fn scalar(self) -> Option<Scalar<'t>> {
        match self.content() {
            Content::Scalar(scalar) => Some(scalar),
            Content::Sequence(_) | Content::Mapping(_) => None,
        }
    }

    /// The value under a key of a mapping, for documents of which only a part concerns us.
    pub(crate) fn get(self, key: &str) -> Option<Node<'t>> {
        let Content::Mapping(items) = self.content() else { return None };
        items.pairs().find(|(name, _)| name.scalar().is_some_and(|s| s.text == key)).map(|p| p.1)
    }

    /// What the node is, for "expected …, found …".
    pub(crate) fn noun(self) -> Cow<'static, str> {
        match self.content() {
            Content::Scalar(scalar) => scalar.noun(),
            Content::Sequence(_) => "a list".into(),
            Content::Mapping(_) => "an object".into(),
        }
    }
}

/// The children of a container.
#[derive(Clone)]
pub(crate) struct Items<'t> {
    tree: &'t Tree<'t>,
    next: u32,
    end: u32,
}

impl<'t> Items<'t> {
    /// The children of a mapping, two by two.
    pub(crate) fn pairs(mut self) -> impl Iterator<Item = (Node<'t>, Node<'t>)> {
        std::iter::from_fn(move || Some((self.next()?, self.next()?)))
    }
}

impl<'t> Iterator for Items<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        (self.next < self.end).then(|| {
            let node = self.tree.node(self.next);
            self.next = self.tree.after(self.next);
            node
        })
    }
}
