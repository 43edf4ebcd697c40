//! Objects in a cluster: what became of each, and how it differs from before.

use std::fmt::Write;

use anstyle::Style;

use crate::columns::{Align, Cell, columns};
use crate::harmless::{harmless, one_line};
use crate::style::{BAD, FAINT, GOOD, MARK, STRONG};

/// Lines shown around what differs.
const CONTEXT: usize = 3;

#[derive(Debug, Clone, Copy)]
pub struct ObjectLine<'a> {
    pub kind: &'a str,
    pub name: &'a str,
    pub namespace: &'a str,
    pub state: ObjectState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectState {
    Created,
    Changed,
    Unchanged,
    Removed,
}

impl ObjectState {
    fn shown(self) -> (&'static str, Style) {
        match self {
            ObjectState::Created => ("created", GOOD),
            ObjectState::Changed => ("changed", MARK),
            ObjectState::Unchanged => ("unchanged", FAINT),
            ObjectState::Removed => ("removed", BAD),
        }
    }
}

/// One line an object.
#[must_use]
pub fn object_table(objects: &[ObjectLine]) -> String {
    let rows: Vec<[Cell; 4]> = objects
        .iter()
        .map(|object| {
            let (word, style) = object.state.shown();
            [
                Cell::new(word, style),
                object.kind.into(),
                object.name.into(),
                Cell::new(object.namespace, FAINT),
            ]
        })
        .collect();
    columns([Align::Left; 4], &rows).iter().map(|line| format!("{line}\n")).collect()
}

/// The lines that differ, with a few around them.
#[must_use]
pub fn difference(object: &ObjectLine, before: &str, after: &str) -> String {
    let (word, style) = object.state.shown();
    let name = one_line(&format!("{} {}", object.kind, object.name));
    let mut text = format!("{STRONG}{name}{STRONG:#} {style}{word}{style:#}\n");
    let (before, after) = (harmless(before), harmless(after));
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let lines = align(&before, &after);
    let near = |position: usize| {
        let from = position.saturating_sub(CONTEXT);
        let to = (position + CONTEXT + 1).min(lines.len());
        lines[from..to].iter().any(|(mark, _)| *mark != Mark::Same)
    };
    let mut skipped = false;
    for (position, (mark, line)) in lines.iter().enumerate() {
        if !near(position) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            text += &format!("{FAINT}  …{FAINT:#}\n");
        }
        let (sign, style) = match mark {
            Mark::Same => (' ', Style::new()),
            Mark::Removed => ('-', BAD),
            Mark::Added => ('+', GOOD),
        };
        writeln!(text, "{style}{sign} {line}{style:#}").expect("a text takes everything");
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Same,
    Removed,
    Added,
}

/// A longest common subsequence. Objects have hundreds of lines, so its square is affordable.
fn align<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<(Mark, &'a str)> {
    let width = after.len() + 1;
    // How many lines are common from here on.
    let mut common = vec![0_u32; (before.len() + 1) * width];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            common[i * width + j] = if before[i] == after[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let mut lines = Vec::with_capacity(before.len().max(after.len()));
    let (mut i, mut j) = (0, 0);
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            lines.push((Mark::Same, before[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == after.len()
            || (i < before.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            lines.push((Mark::Removed, before[i]));
            i += 1;
        } else {
            lines.push((Mark::Added, after[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(state: ObjectState) -> ObjectLine<'static> {
        ObjectLine { kind: "ConfigMap", name: "argocd-cm", namespace: "argocd", state }
    }

    fn plain(before: &str, after: &str) -> String {
        let text = difference(&line(ObjectState::Changed), before, after);
        let mut plain = String::new();
        let mut escape = false;
        for c in text.chars() {
            match c {
                '\u{1b}' => escape = true,
                'm' if escape => escape = false,
                _ if escape => {}
                c => plain.push(c),
            }
        }
        plain
    }

    #[test]
    fn what_differs_is_shown_with_what_stands_around_it() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nd\ne\nx\ng\nh\n";
        assert_eq!(
            plain(before, after),
            "ConfigMap argocd-cm changed\n  …\n  c\n  d\n  e\n- f\n+ x\n  g\n  h\n"
        );
    }

    #[test]
    fn a_new_object_is_all_new_and_a_removed_line_is_seen() {
        assert_eq!(plain("", "a\nb\n"), "ConfigMap argocd-cm changed\n+ a\n+ b\n");
        assert_eq!(plain("a\nb\n", "b\n"), "ConfigMap argocd-cm changed\n- a\n  b\n");
        assert_eq!(plain("a\n", "a\nb\n"), "ConfigMap argocd-cm changed\n  a\n+ b\n");
    }

    #[test]
    fn each_object_has_a_line() {
        let table = object_table(&[line(ObjectState::Created), line(ObjectState::Unchanged)]);
        assert_eq!(table.lines().count(), 2);
        assert!(table.contains("unchanged") && table.contains("argocd-cm"));
    }
}
