//! The few styles that everything shares, so that one colour means one thing.

use anstyle::{AnsiColor, Style};

pub const GOOD: Style = AnsiColor::Green.on_default();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const WARNING: Style = AnsiColor::Yellow.on_default();
/// What must not be overlooked without being good or bad.
pub const MARK: Style = AnsiColor::Cyan.on_default();
pub const STRONG: Style = Style::new().bold();
/// Context that the eye may skip.
pub const FAINT: Style = Style::new().dimmed();

/// `text` in a style.
#[must_use]
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
