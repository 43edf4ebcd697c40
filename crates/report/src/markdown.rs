//! Text within Markdown.

use crate::harmless::one_line;

/// On one line of a table, and nothing but text.
pub(crate) fn text(text: impl AsRef<str>) -> String {
    let mut plain = String::new();
    for c in one_line(text.as_ref()).chars() {
        match c {
            '&' => plain.push_str("&amp;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => {
                plain.push('\\');
                plain.push(c);
            }
            c => plain.push(c),
        }
    }
    plain
}
