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
        }
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
    list: Vec<Diagnostic>,
    /// How many more there were than are kept.
    pub unlisted: usize,
}

/// A file generated wrongly can have a million problems; the first hundred tell the story.
const KEPT: usize = 100;

impl Diagnostics {
    pub(crate) fn push(&mut self, problem: Diagnostic) {
        if self.list.len() < KEPT {
            self.list.push(problem);
        } else {
            self.unlisted += 1;
        }
    }

    /// Whether one more problem would still be kept: what costs time to explain can stop then.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= KEPT
    }

    /// The problems in the order of their places.
    #[must_use]
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|problem| problem.primary.span);
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

    #[test]
    fn quoted_text_is_short_and_harmless() {
        assert_eq!(quoted("a\u{1b}[31m"), "`a\\u{1b}[31m`");
        assert_eq!(quoted(&"x".repeat(61)), format!("`{}…`", "x".repeat(60)));
        assert_eq!(quoted(&"x".repeat(60)), format!("`{}`", "x".repeat(60)));
    }
}
