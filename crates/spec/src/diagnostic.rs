//! What is wrong with a file, where, and what to do about it.

use crate::source::Span;

/// One problem: what, where, why, what next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, as one short sentence without a full stop.
    pub title: String,
    pub primary: Label,
    /// Other places that belong to the problem, such as a first definition.
    pub related: Vec<Label>,
    /// What to do next.
    pub hint: Option<String>,
    /// The text at the primary place must not be shown: it holds a secret.
    pub masked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

impl Diagnostic {
    pub(crate) fn new(title: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Diagnostic {
            title: title.into(),
            primary: Label { span, text: label.into() },
            related: Vec::new(),
            hint: None,
            masked: false,
        }
    }

    pub(crate) fn masked(mut self, masked: bool) -> Self {
        self.masked = masked;
        self
    }

    pub(crate) fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push(Label { span, text: text.into() });
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// All problems of a platform, up to a number that a person can still read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// In the order of their places.
    list: Vec<Diagnostic>,
    /// How many more there were than are kept.
    pub unlisted: usize,
}

/// A file generated wrongly can have a million problems; the first hundred tell the story.
const KEPT: usize = 100;

impl Diagnostics {
    pub(crate) fn push(&mut self, problem: Diagnostic) {
        if self.keeps(problem.primary.span) {
            let before = |other: &Diagnostic| other.primary.span <= problem.primary.span;
            self.list.insert(self.list.partition_point(before), problem);
        } else {
            self.unlisted += 1;
        }
        if self.list.len() > KEPT {
            self.list.pop();
            self.unlisted += 1;
        }
    }

    /// Whether a problem at this place would be kept: others need no explanation that costs time.
    pub(crate) fn keeps(&self, place: Span) -> bool {
        let last = self.list.get(KEPT - 1);
        last.is_none_or(|last| place < last.primary.span)
    }

    /// The problems in the order of their places.
    #[must_use]
    pub fn into_sorted(self) -> Vec<Diagnostic> {
        self.list
    }

    pub(crate) fn into_result<T>(self, value: Option<T>) -> Result<T, Diagnostics> {
        match value {
            Some(value) if self.list.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

/// Text from a file for use inside a message: short, and harmless to a terminal.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Source, Sources};

    #[test]
    fn the_first_problems_of_a_file_are_kept_whatever_is_found_first() {
        let sources = Sources::new(vec![Source::new("a.yaml", Vec::new()).unwrap()]);
        let (file, _) = sources.iter().next().unwrap();
        let at = |start| Span { file, start, end: start + 1 };
        let mut problems = Diagnostics::default();
        for start in (0..300).rev() {
            problems.push(Diagnostic::new("wrong", at(start), "here"));
        }
        assert!(!problems.keeps(at(100)) && problems.keeps(at(98)));
        assert_eq!(problems.unlisted, 200);
        let starts = problems.into_sorted().into_iter().map(|one| one.primary.span.start);
        assert!(starts.eq(0..100));
    }

    #[test]
    fn quoted_text_is_short_and_harmless() {
        assert_eq!(quoted("a\u{1b}[31m"), "`a\\u{1b}[31m`");
        assert_eq!(quoted(&"x".repeat(61)), format!("`{}…`", "x".repeat(60)));
        assert_eq!(quoted(&"x".repeat(60)), format!("`{}`", "x".repeat(60)));
    }
}
