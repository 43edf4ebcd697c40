//! What people are told about an error.

use std::error::Error;
use std::fmt;

use crate::Exit;

/// An error that people can be told. It carries values and causes; words, advice and exit code are
/// made of them here, and shown at the boundary of the program.
///
/// ```
/// use tiphys_model::{Exit, Explain, Explanation};
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("{}", self.explain())]
/// enum LeaseError {
///     Held { by: String },
/// }
///
/// impl Explain for LeaseError {
///     fn explain(&self) -> Explanation {
///         match self {
///             LeaseError::Held { by } => {
///                 Explanation::new(Exit::Held, "another run holds the platform", by)
///                     .hint("wait until it has ended")
///             }
///         }
///     }
/// }
///
/// let error = LeaseError::Held { by: "ci".to_owned() };
/// assert_eq!(error.to_string(), "another run holds the platform: ci");
/// ```
pub trait Explain: Error {
    fn explain(&self) -> Explanation;
}

/// What went wrong, why, what to do next, and how the program ends because of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub exit: Exit,
    pub what: String,
    pub why: String,
    pub next: Option<String>,
}

impl Explanation {
    pub fn new(exit: Exit, what: impl Into<String>, why: impl Into<String>) -> Self {
        Explanation { exit, what: what.into(), why: why.into(), next: None }
    }

    #[must_use]
    pub fn hint(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// An error with everything it says it comes from, each thing once.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn a_chain_says_each_thing_once() {
        let inner = Layer("no route", None);
        let repeats = Layer("cannot connect: no route", Some(Box::new(inner)));
        let outer = Layer("cannot read", Some(Box::new(repeats)));
        assert_eq!(chain(&outer), "cannot read: cannot connect: no route");
    }
}
