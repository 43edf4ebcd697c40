//! How much of what a cluster says is repeated to people.

/// How many Kubernetes events are kept of an object.
pub const EVENTS: usize = 5;
/// Longer lines are cut: they have to be read beside others.
pub const LINE: usize = 300;

/// A line of bounded length.
#[must_use]
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
