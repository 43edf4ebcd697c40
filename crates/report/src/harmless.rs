//! Text that others wrote, made harmless: names and messages from a cluster, from Git, from files.
//!
//! Every renderer passes such text through [`one_line`] (or [`harmless`], where lines are wanted),
//! so that it commands no terminal and cannot look like a line of ours. Whoever writes to a
//! terminal passes everything through [`terminal_text`] again, for what was forgotten.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Characters of one text on one line. JSON has all of it.
const LONGEST: usize = 4096;

/// Text without characters that command a terminal or turn the direction of writing. Each byte
/// is replaced by one, so that positions stay true. Line breaks and tabs stay.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_dangerous) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_harmless(&mut shown, c));
    shown.into()
}

/// As [`harmless`], and on one line: every gap is one space. Of what is very long, the beginning
/// and the end are shown, since messages of others often say what matters last.
#[must_use]
pub fn one_line(text: &str) -> String {
    let line = harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let length = line.chars().count();
    if length <= LONGEST {
        return line;
    }
    let half = LONGEST / 2 - 1;
    let mut shown: String = line.chars().take(half).collect();
    shown += " … ";
    shown.extend(line.chars().skip(length - half));
    shown
}

/// Text with our colours as a terminal may get it: nothing but colours is left of what commands
/// one.
#[must_use]
pub fn terminal_text(text: &str) -> Cow<'_, str> {
    if !text.contains(is_dangerous) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = colour(rest).unwrap_or_default();
        if length > 0 {
            shown += &rest[..length];
            rest = &rest[length..];
        } else {
            push_harmless(&mut shown, c);
            rest = &rest[c.len_utf8()..];
        }
    }
    shown.into()
}

/// How many columns of a terminal harmless text takes: some characters take two.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// As much of harmless text as fits into so many columns.
pub(crate) fn fitting(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let too_far = |(_, c): &(usize, char)| {
        used += columns_of(*c);
        used > columns
    };
    let end = text.char_indices().find(too_far).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or_default()
}

fn push_harmless(shown: &mut String, c: char) {
    if is_dangerous(c) {
        shown.extend(std::iter::repeat_n('?', c.len_utf8()));
    } else {
        shown.push(c);
    }
}

fn is_dangerous(c: char) -> bool {
    let is_command = c.is_control() && c != '\t' && c != '\n';
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    // Some programs take these two for line breaks.
    is_command || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The length of the colour that a text begins with: `ESC [ numbers m`.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_replaced_byte_by_byte() {
        assert_eq!(harmless("a\tb\nc"), "a\tb\nc");
        assert_eq!(harmless("\u{1b}[2J\r\u{7}\u{9b}\u{202e}x"), "?[2J???????x");
        for text in ["\u{1b}]0;t\u{7}", "\u{9b}2J", "\u{202e}", "\u{2028}", "\u{61c}", "é\u{7f}"] {
            assert_eq!(harmless(text).len(), text.len(), "{text:?}");
            assert!(!harmless(text).contains(is_dangerous), "{text:?}");
        }
    }

    #[test]
    fn one_line_is_one_line_with_both_ends() {
        assert_eq!(one_line(" a\n\tb  c\r\n"), "a b c?");
        let long = format!("begin {} end", "x".repeat(1_000_000));
        let shown = one_line(&long);
        assert!(shown.starts_with("begin x") && shown.ends_with("x end") && shown.contains(" … "));
        assert!(shown.chars().count() <= LONGEST + 1);
    }

    #[test]
    fn only_colours_reach_a_terminal() {
        let ours = "\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m\n\tplain\n";
        assert_eq!(terminal_text(ours), ours);
        let cases = [
            ("\u{1b}[2J", "?[2J"),
            ("\u{1b}[1;1H", "?[1;1H"),
            ("\u{1b}]0;t\u{7}", "?]0;t?"),
            ("a\rb", "a?b"),
            ("\u{1b}[31", "?[31"),
            ("\u{1b}[?25l", "?[?25l"),
            ("\u{1b}\u{1b}[1mx", "?\u{1b}[1mx"),
            ("\u{9b}31m", "??31m"),
        ];
        for (text, shown) in cases {
            assert_eq!(terminal_text(text), shown, "{text:?}");
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("ab"), 2);
        assert_eq!(width("漢字"), 4);
        assert_eq!(fitting("漢字", 3), "漢");
        assert_eq!(fitting("abc", 3), "abc");
        assert_eq!(fitting("abcd", 3), "abc");
    }
}
