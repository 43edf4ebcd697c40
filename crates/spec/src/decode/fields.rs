//! The fields of an object: each asked for by name, what is left over is unknown.

use super::{Decode, expected};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::nearest::nearest;
use crate::source::Span;
use crate::yaml::{Content, Node};

/// Names the fields of an object as they are asked for, and reports the rest at the end.
pub(crate) struct Fields<'t> {
    span: Span,
    /// "an app": for messages.
    noun: &'static str,
    entries: Vec<Entry<'t>>,
    known: Vec<&'static str>,
}

struct Entry<'t> {
    name: &'t str,
    key: Node<'t>,
    value: Node<'t>,
    asked_for: bool,
}

impl<'t> Fields<'t> {
    /// Opens an object. Fields given twice are reported here.
    pub(crate) fn open(
        node: Node<'t>,
        noun: &'static str,
        problems: &mut Diagnostics,
    ) -> Option<Self> {
        let Content::Mapping(items) = node.content() else {
            expected(node, &format!("{noun} (an object)"), problems);
            return None;
        };
        let mut entries = Vec::new();
        for (key, value) in items.pairs() {
            match key.scalar() {
                Some(scalar) => {
                    entries.push(Entry { name: scalar.text, key, value, asked_for: false });
                }
                None => problems.push(Diagnostic::new(
                    format!("a field name must be text, found {}", key.noun()),
                    key.span(),
                    "used as a field name",
                )),
            }
        }
        report_duplicates(entries.iter().map(|entry| (entry.name, entry.key.span())), problems);
        Some(Fields { span: node.span(), noun, entries, known: Vec::new() })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    /// The place of the first field that is not `name`.
    pub(crate) fn first_other_than(&self, name: &str) -> Option<Span> {
        self.entries.iter().find(|entry| entry.name != name).map(|entry| entry.key.span())
    }

    /// The value of a field, if it is there.
    fn take(&mut self, name: &'static str) -> Option<Node<'t>> {
        self.known.push(name);
        let mut found = None;
        for entry in self.entries.iter_mut().filter(|entry| entry.name == name) {
            entry.asked_for = true;
            found = found.or(Some(entry.value));
        }
        found
    }

    pub(crate) fn optional<T: Decode>(
        &mut self,
        name: &'static str,
        problems: &mut Diagnostics,
    ) -> Option<T> {
        T::decode(self.take(name)?, problems)
    }

    pub(crate) fn required<T: Decode>(
        &mut self,
        name: &'static str,
        problems: &mut Diagnostics,
    ) -> Option<T> {
        self.required_with(name, problems, T::decode)
    }

    pub(crate) fn required_with<T>(
        &mut self,
        name: &'static str,
        problems: &mut Diagnostics,
        decode: impl FnOnce(Node<'t>, &mut Diagnostics) -> Option<T>,
    ) -> Option<T> {
        if let Some(node) = self.take(name) {
            return decode(node, problems);
        }
        // The object can span pages; its first key is place enough.
        let span = self.entries.first().map_or(self.span, |entry| entry.key.span());
        let title = format!("{} needs the field `{name}`", self.noun);
        problems
            .push(Diagnostic::new(title, span, "in this object").hint(format!("add `{name}: …`")));
        None
    }

    /// Reports the fields that nobody asked for.
    pub(crate) fn finish(self, problems: &mut Diagnostics) {
        for entry in self.entries.iter().filter(|entry| !entry.asked_for) {
            let title = format!("unknown field {}", quoted(entry.name));
            let label = format!("not a field of {}", self.noun);
            let hint = match nearest(entry.name, self.known.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None if entry.name == "<<" => {
                    "merge keys are not part of YAML 1.2: write the fields out".to_owned()
                }
                None => format!("known fields: {}", self.known.join(", ")),
            };
            problems.push(Diagnostic::new(title, entry.key.span(), label).hint(hint));
        }
    }
}

/// Reports keys that are given twice, for an object of which only a part concerns us.
pub(crate) fn refuse_duplicates(node: Node<'_>, problems: &mut Diagnostics) {
    if let Content::Mapping(items) = node.content() {
        let keys = items.pairs().filter_map(|(key, _)| Some((key.scalar()?.text, key.span())));
        report_duplicates(keys, problems);
    }
}

fn report_duplicates<'t>(keys: impl Iterator<Item = (&'t str, Span)>, problems: &mut Diagnostics) {
    // Sorted: an object with a million fields must not cost a million squared.
    let mut keys: Vec<(&str, Span)> = keys.collect();
    keys.sort_unstable();
    for pair in keys.windows(2) {
        let [(name, first), (next, again)] = [pair[0], pair[1]];
        if name == next {
            let title = format!("the field {} is given twice", quoted(name));
            problems.push(
                Diagnostic::new(title, again, "again here")
                    .related(first, "first given here")
                    .hint("keep one of them"),
            );
        }
    }
}
