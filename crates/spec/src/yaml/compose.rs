//! From parser events to a [`Tree`], within budgets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, Span as ParserSpan, Tag, options};

use super::{Kind, NodeData, Tree};
use crate::diagnostic::{Diagnostic, quoted};
use crate::source::{Source, SourceIx, Span};

const MAX_DEPTH: usize = 64;
/// How deep the scanner may go. It looks up to 1,024 characters ahead, as far as a key can reach,
/// and must not refuse what it sees there: only we know the place of the level that is too deep.
const SCANNED: usize = MAX_DEPTH + 2 * 1024;
/// Counted as if every alias were written out.
const MAX_NODES: u64 = 4_000_000;
const MAX_ALIASES: usize = 100;

/// Parses a file. The first problem ends it: behind a syntax error everything is guesswork.
pub(crate) fn compose(file: SourceIx, source: &Source) -> Result<Tree<'_>, Diagnostic> {
    let text = source.text();
    // Comments are off unless another crate in the same build switches the parser's feature on.
    let options = options! {
        block_nesting_limit: SCANNED, flow_nesting_limit: SCANNED, emit_comments: false
    };
    let mut composer = Composer {
        tree: Tree { file, text, nodes: Vec::new(), unescaped: Vec::new(), roots: Vec::new() },
        open: Vec::new(),
        anchors: BTreeMap::new(),
        aliases: 0,
        expanded: 0,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| composer.syntax_error(&error))?;
        composer.take(event, &span)?;
    }
    Ok(composer.tree)
}

struct Composer<'a> {
    tree: Tree<'a>,
    /// Containers whose end has not come yet.
    open: Vec<Open>,
    anchors: BTreeMap<usize, Anchored>,
    aliases: usize,
    /// Nodes so far, with aliases written out.
    expanded: u64,
}

struct Open {
    at: u32,
    anchor: usize,
    expanded_before: u64,
}

#[derive(Clone, Copy)]
struct Anchored {
    at: u32,
    /// What an alias to it adds to the count; `None` while it is still open.
    expanded: Option<u64>,
}

impl<'a> Composer<'a> {
    fn take(&mut self, event: Event<'a>, span: &ParserSpan) -> Result<(), Diagnostic> {
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let forced_text = self.check_tag(tag.as_deref(), span)?;
                let plain = style == ScalarStyle::Plain && !forced_text;
                let kind = self.scalar(value, plain);
                self.push(kind, span)?;
                self.remember(anchor, Some(1));
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), span)?;
                self.open(Kind::Sequence { end: 0 }, anchor, span)?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), span)?;
                self.open(Kind::Mapping { end: 0 }, anchor, span)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => self.alias(anchor, span)?,
            Event::DocumentEnd => self.anchors.clear(),
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::Anchor(..)
            | Event::UnresolvedAlias(_) => {}
            other => {
                let what = format!("unexpected event of the YAML parser: {other:?}");
                return Err(Diagnostic::new(what, self.span(span), ""));
            }
        }
        Ok(())
    }

    fn scalar(&mut self, value: Cow<'a, str>, plain: bool) -> Kind {
        // A borrowed value is a slice of the text, so its address tells where.
        if let Cow::Borrowed(slice) = value {
            let from = (slice.as_ptr() as usize).wrapping_sub(self.tree.text.as_ptr() as usize);
            if self.tree.text.get(from..from.wrapping_add(slice.len())) == Some(slice) {
                return Kind::Slice { from: offset(from), to: offset(from + slice.len()), plain };
            }
        }
        let index = offset(self.tree.unescaped.len());
        self.tree.unescaped.push(value.into_owned());
        Kind::Unescaped { index, plain }
    }

    fn push(&mut self, kind: Kind, span: &ParserSpan) -> Result<(), Diagnostic> {
        if self.open.is_empty() {
            self.tree.roots.push(offset(self.tree.nodes.len()));
        }
        let Span { start, end, .. } = self.span(span);
        self.tree.nodes.push(NodeData { start, end, kind });
        self.count(1, span)
    }

    fn count(&mut self, more: u64, span: &ParserSpan) -> Result<(), Diagnostic> {
        self.expanded = self.expanded.saturating_add(more);
        if self.expanded <= MAX_NODES {
            return Ok(());
        }
        let title = "the file has more than 4,000,000 values, counting expanded aliases";
        Err(Diagnostic::new(title, self.span(span), "the limit is exceeded here")
            .hint("split the platform, or remove the aliases that multiply it"))
    }

    fn open(&mut self, kind: Kind, anchor: usize, span: &ParserSpan) -> Result<(), Diagnostic> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(self.span(span)));
        }
        let expanded_before = self.expanded;
        self.push(kind, span)?;
        self.remember(anchor, None);
        let at = offset(self.tree.nodes.len() - 1);
        self.open.push(Open { at, anchor, expanded_before });
        Ok(())
    }

    fn close(&mut self, span: &ParserSpan) {
        let Some(open) = self.open.pop() else { return };
        let end_of_text = self.span(span).end;
        let next = offset(self.tree.nodes.len());
        let node = &mut self.tree.nodes[open.at as usize];
        node.end = node.end.max(end_of_text);
        if let Kind::Sequence { end } | Kind::Mapping { end } = &mut node.kind {
            *end = next;
        }
        if open.anchor != 0 {
            let expanded = Some(self.expanded - open.expanded_before);
            self.anchors.insert(open.anchor, Anchored { at: open.at, expanded });
        }
    }

    fn remember(&mut self, anchor: usize, expanded: Option<u64>) {
        if anchor != 0 {
            let at = offset(self.tree.nodes.len() - 1);
            self.anchors.insert(anchor, Anchored { at, expanded });
        }
    }

    fn alias(&mut self, anchor: usize, span: &ParserSpan) -> Result<(), Diagnostic> {
        self.aliases += 1;
        if self.aliases > MAX_ALIASES {
            return Err(Diagnostic::new(
                format!("the file has more than {MAX_ALIASES} aliases"),
                self.span(span),
                "one alias too many",
            )
            .hint("write the values instead of aliases"));
        }
        let target = self.anchors.get(&anchor).copied();
        let Some((at, expanded)) = target.and_then(|t| Some((t.at, t.expanded?))) else {
            let title = "an alias cannot be inside the value it refers to";
            return Err(Diagnostic::new(title, self.span(span), "it would contain itself"));
        };
        self.push(Kind::Alias { target: at }, span)?;
        self.count(expanded, span)
    }

    /// Whether the tag says that the scalar is text. Other tags have no meaning here.
    fn check_tag(&self, tag: Option<&Tag>, span: &ParserSpan) -> Result<bool, Diagnostic> {
        match tag {
            None => Ok(false),
            Some(tag) if tag.is_yaml_core_schema_tag("str") => Ok(true),
            Some(tag) => {
                let title = format!("unsupported tag {}", quoted(&tag.to_string()));
                let problem = Diagnostic::new(title, self.span(span), "on this value");
                Err(problem.hint("remove the tag"))
            }
        }
    }

    fn span(&self, span: &ParserSpan) -> Span {
        let range = span.byte_range().unwrap_or(0..0);
        Span { file: self.tree.file, start: offset(range.start), end: offset(range.end) }
    }

    fn syntax_error(&self, error: &granit_parser::ScanError) -> Diagnostic {
        let at = offset(error.marker().byte_offset().unwrap_or(0).min(self.tree.text.len()));
        let span = Span { file: self.tree.file, start: at, end: at };
        let problem = Diagnostic::new(format!("invalid YAML: {}", error.info()), span, "here");
        match error.kind() {
            granit_parser::ErrorKind::RecursionLimitExceeded => too_deep(span),
            granit_parser::ErrorKind::TabInIndentation
            | granit_parser::ErrorKind::TabInBlockIndentation
            | granit_parser::ErrorKind::TabNotAllowed => problem.hint("indent with spaces"),
            granit_parser::ErrorKind::UnknownAnchor => {
                problem.hint("an alias (`*name`) needs an anchor (`&name`) before it")
            }
            _ => {
                problem.hint("check indentation, quotes and colons on this line and the one above")
            }
        }
    }
}

fn too_deep(span: Span) -> Diagnostic {
    let title = format!("the file is nested deeper than {MAX_DEPTH} levels");
    Diagnostic::new(title, span, "one level too many")
        .hint("a platform file needs fewer than ten levels")
}

/// Sources are at most 64 MiB and trees at most 4 million nodes, so positions fit.
fn offset(position: usize) -> u32 {
    u32::try_from(position).expect("positions in a budgeted file fit in 32 bits")
}
