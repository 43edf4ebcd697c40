//! Problems in files, each with its place, the line, and a hint.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Level, Renderer, Snippet};
use tiphys_spec::{Diagnostic, Diagnostics, Label, SourceIx, Sources, Span};

use crate::harmless::{harmless, one_line};

/// A line longer than this is shown in part.
const LONGEST_LINE: usize = 240;
/// Labels closer than this many bytes are shown together.
const FARTHEST: usize = 400;

/// Renders all problems, in the order of their places, and how many there are.
#[must_use]
pub fn render_diagnostics(sources: &Sources, problems: Diagnostics) -> String {
    let unlisted = problems.unlisted;
    let problems = problems.into_sorted();
    let lines = Lines::locate(sources, &problems);
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for problem in &problems {
        text += &with_true_places(&renderer.render(&[group(sources, &lines, problem)]));
        text += "\n\n";
    }
    text += &match (problems.len(), unlisted) {
        (1, 0) => "1 problem\n".to_owned(),
        (count, 0) => format!("{count} problems\n"),
        (count, more) => format!("{count} problems shown, and {more} more\n"),
    };
    text
}

/// The renderer ends a path with line and column as it counts them, which is wrong for a part of
/// a line. So we write the true place before this mark, and remove what follows it. No other text
/// has the mark: what commands a terminal is [`harmless`] by then.
const PLACE_ENDS: char = '\u{1}';

fn with_true_places(rendered: &str) -> String {
    let mut parts = rendered.split(PLACE_ENDS);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += part.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
    }
    text
}

fn group<'a>(
    sources: &'a Sources,
    lines: &Lines,
    problem: &'a Diagnostic,
) -> annotate_snippets::Group<'a> {
    let title = Level::ERROR.primary_title(one_line(&problem.title));
    let mut elements: Vec<Element<'a>> = Vec::new();
    for (mut window, labels) in windows(sources, lines, problem) {
        if problem.masked {
            window.mask(problem.primary.span);
        }
        let path = one_line(&sources.get(window.file).name);
        let annotation = |label: &&'a Label| {
            let kind = if **label == problem.primary {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            kind.span(window.marked(label.span)).label(one_line(&label.text))
        };
        let snippet: Snippet<'a, Annotation<'a>> = Snippet::source(window.text.clone())
            .line_start(window.line)
            .annotations(labels.iter().map(annotation));
        let path = if window.cut {
            format!("{path}:{}:{}{PLACE_ENDS}", window.line, window.column)
        } else {
            path
        };
        elements.push(snippet.path(path).into());
    }
    if let Some(hint) = &problem.hint {
        elements.push(Level::HELP.message(one_line(hint)).into());
    }
    title.elements(elements)
}

/// The windows of a problem, that of the primary label first; labels on lines close together
/// share one.
fn windows<'a>(
    sources: &Sources,
    lines: &Lines,
    problem: &'a Diagnostic,
) -> Vec<(Window, Vec<&'a Label>)> {
    let mut labels: Vec<&Label> = problem.related.iter().collect();
    labels.push(&problem.primary);
    labels.sort_by_key(|label| label.span);
    let mut windows: Vec<(Window, Vec<&Label>)> = Vec::new();
    for label in labels {
        let next = Window::around(sources, lines, label.span);
        match windows.last_mut() {
            Some((window, labels)) if window.reaches(&next) => {
                window.extend(sources, &next);
                labels.push(label);
            }
            _ => windows.push((next, vec![label])),
        }
    }
    windows.sort_by_key(|(_, labels)| !labels.iter().any(|label| **label == problem.primary));
    windows
}

/// The lines that are shown, or the part of one that is too long.
struct Window {
    file: SourceIx,
    line: usize,
    column: usize,
    /// Where in the file the text begins and ends.
    range: Range<usize>,
    text: String,
    cut: bool,
}

impl Window {
    fn around(sources: &Sources, lines: &Lines, span: Span) -> Self {
        let text = sources.get(span.file).text();
        let (line, line_start) = lines.of(span);
        let start = span.start as usize;
        let line_end = text[line_start..].find('\n').map_or(text.len(), |at| line_start + at);
        let cut = line_end - line_start > LONGEST_LINE;
        let (mut from, mut to) = (line_start, line_end);
        if cut {
            from = floor(text, start.saturating_sub(LONGEST_LINE / 3).max(line_start));
            to = floor(text, (from + LONGEST_LINE).min(line_end));
        }
        Window {
            file: span.file,
            line,
            column: 1 + text[line_start..start].chars().count(),
            range: from..to,
            text: harmless(&text[from..to]).into_owned(),
            cut,
        }
    }

    fn reaches(&self, next: &Window) -> bool {
        let near = self.range.end + FARTHEST >= next.range.start;
        self.file == next.file && near && !self.cut && !next.cut
    }

    fn extend(&mut self, sources: &Sources, next: &Window) {
        self.range.end = next.range.end;
        let text = &sources.get(self.file).text()[self.range.clone()];
        self.text = harmless(text).into_owned();
    }

    /// Hides a span. Bytes stay where they are, so marks do too.
    fn mask(&mut self, span: Span) {
        let place =
            |at: u32| (at as usize).clamp(self.range.start, self.range.end) - self.range.start;
        let (start, end) = (place(span.start), place(span.end));
        let hidden = self.text[start..end].chars();
        let hidden: String = hidden
            .map(|c| if c == '\n' { "\n".to_owned() } else { "*".repeat(c.len_utf8()) })
            .collect();
        self.text.replace_range(start..end, &hidden);
    }

    /// The place of a span in the window. What spans several lines is marked where it begins.
    fn marked(&self, span: Span) -> Range<usize> {
        let start =
            (span.start as usize).clamp(self.range.start, self.range.end) - self.range.start;
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let end = (span.end as usize).saturating_sub(self.range.start);
        start..end.clamp(start, line_end)
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The lines of all labelled places, found in one walk over each file.
struct Lines(BTreeMap<(SourceIx, u32), (usize, usize)>);

impl Lines {
    fn locate(sources: &Sources, problems: &[Diagnostic]) -> Self {
        let labels = problems.iter().flat_map(|p| std::iter::once(&p.primary).chain(&p.related));
        let place = |label: &Label| ((label.span.file, label.span.start), (1, 0));
        let mut places: BTreeMap<_, _> = labels.map(place).collect();
        let mut walked: Option<(SourceIx, usize, usize, usize)> = None;
        for ((file, start), found) in &mut places {
            let text = sources.get(*file).text();
            let (mut at, mut line, mut line_start) = match walked {
                Some((same, at, line, line_start)) if same == *file => (at, line, line_start),
                _ => (0, 1, 0),
            };
            while let Some(next) = text[at..*start as usize].find('\n') {
                at += next + 1;
                line += 1;
                line_start = at;
            }
            at = *start as usize;
            walked = Some((*file, at, line, line_start));
            *found = (line, line_start);
        }
        Lines(places)
    }

    fn of(&self, span: Span) -> (usize, usize) {
        self.0[&(span.file, span.start)]
    }
}
