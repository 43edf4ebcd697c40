//! Where a run is shown: a terminal, lines, or JSON.

use tiphys_model::Exit;
use tiphys_report::{Ending, Summary, event_line, frame, terminal_text};
use tiphys_run::{EventKind, EventLine, RunView, Time};

use crate::args::RunFormat;
use crate::lossy::LossyWriter;
use crate::output;
use crate::record;

/// What is shown, and stdout. A stdout that cannot be written to is told in the end.
pub(crate) struct Stage {
    form: Form,
    out: LossyWriter,
}

enum Form {
    /// One line for each transition, then the summary.
    Lines,
    /// One line of JSON for each event, and nothing else on stdout.
    Jsonl,
    /// Events scroll past; what is running is drawn below them.
    Screen {
        /// How wide each line of the last drawing was.
        drawn: Vec<usize>,
    },
}

impl Stage {
    pub(crate) fn new(format: RunFormat) -> Self {
        let form = match format {
            RunFormat::Jsonl => return Stage { form: Form::Jsonl, out: output::lossy_data() },
            RunFormat::Text if output::can_redraw() => Form::Screen { drawn: Vec::new() },
            RunFormat::Text => Form::Lines,
        };
        Stage { form, out: output::lossy_text() }
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.form, Form::Jsonl)
    }

    pub(crate) fn show(&mut self, line: &EventLine) {
        let text = match self.form {
            Form::Jsonl => return self.out.write(&record::json(line)),
            Form::Lines => event_line(line),
            Form::Screen { .. } => event_line(line).filter(|_| is_news(&line.kind)),
        };
        if let Some(text) = text {
            self.write(&format!("{text}\n"));
        }
    }

    /// Something that is no event of a run; JSON has no place for it.
    pub(crate) fn say(&mut self, text: &str) {
        if !self.is_json() {
            self.write(&format!("{text}\n"));
        }
    }

    /// Something beside the run, which is not for stdout: a screen makes room for it.
    pub(crate) fn aside(&mut self, say: impl FnOnce()) {
        let erase = self.erase();
        self.out.draw(&erase);
        say();
    }

    /// Draws the moment; only a screen has one.
    pub(crate) fn draw(&mut self, view: &RunView, now: Time) {
        let Form::Screen { .. } = self.form else { return };
        let erase = self.erase();
        let lines = frame(view, now, output::terminal_size());
        self.out.draw(&format!("{erase}{}\n", terminal_text(&lines.join("\n"))));
        self.form =
            Form::Screen { drawn: lines.iter().map(|line| output::shown_width(line)).collect() };
    }

    /// The summary: below the lines, or, beside JSON, where people look.
    pub(crate) fn close(&mut self, view: &RunView, ending: Ending<'_>) {
        let summary = Summary::new(view, ending);
        if self.is_json() {
            output::aside(&summary.to_string());
        } else {
            self.write(&format!("\n{summary}"));
        }
    }

    /// Tells what was not written, and how the program ends: a program that reads half a log must
    /// not take it for a whole one.
    pub(crate) fn end(&self, exit: Exit) -> Exit {
        let Some(loss) = self.out.loss() else { return exit };
        output::warning(&loss.told("stdout"));
        if self.is_json() && exit == Exit::Done { Exit::Failed } else { exit }
    }

    fn write(&mut self, text: &str) {
        let erase = self.erase();
        self.out.write(&format!("{erase}{}", terminal_text(text)));
    }

    /// What clears the last drawing.
    fn erase(&mut self) -> String {
        match &mut self.form {
            Form::Screen { drawn } => {
                let columns = output::terminal_size().columns;
                output::erase(rows(&std::mem::take(drawn), columns))
            }
            Form::Lines | Form::Jsonl => String::new(),
        }
    }
}

/// How many rows lines of these widths take by now: a terminal that has become narrower has broken
/// the wider ones.
fn rows(widths: &[usize], columns: usize) -> usize {
    widths.iter().map(|width| output::rows(*width, columns)).sum()
}

/// What is worth a line above a screen that shows everything that runs anyway.
fn is_news(kind: &EventKind) -> bool {
    match kind {
        EventKind::StepSyncing { .. }
        | EventKind::StepConverging { .. }
        | EventKind::StepRemoving { .. }
        | EventKind::HandedOff { .. } => false,
        EventKind::RunStarted(_)
        | EventKind::Held
        | EventKind::StepWaiting { .. }
        | EventKind::StepRetrying { .. }
        | EventKind::StepDone { .. }
        | EventKind::StepFailed { .. }
        | EventKind::StepSkipped { .. }
        | EventKind::StepRemoved { .. }
        | EventKind::RevisionMoved { .. }
        | EventKind::Interrupted { .. }
        | EventKind::RunFinished(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrower_terminal_has_broken_the_lines_that_do_not_fit() {
        assert_eq!(rows(&[], 80), 0);
        assert_eq!(rows(&[80, 0, 12], 80), 3);
        assert_eq!(rows(&[80, 0, 12], 60), 4);
        assert_eq!(rows(&[80], 0), 80, "a terminal that does not say how wide it is");
        assert_eq!(output::shown_width("\u{1b}[1mbold\u{1b}[0m ██"), 7);
    }
}
