//! Where a run is shown: a terminal, lines, or JSON.

use std::io::IsTerminal;

use tiphys_report::{Size, Summary, event_line, frame};
use tiphys_run::{EventKind, EventLine, RunView, Time};

use crate::args::RunFormat;
use crate::failure::Failure;
use crate::output;

pub(crate) enum Stage {
    /// One line for each transition, then the summary.
    Lines,
    /// One line of JSON for each event, and nothing else on stdout.
    Jsonl,
    /// News scrolls past; below it stands what is running, drawn again and again.
    Screen {
        size: Size,
        /// How many lines the last drawing took.
        drawn: usize,
    },
}

impl Stage {
    pub(crate) fn new(format: RunFormat) -> Self {
        match format {
            RunFormat::Jsonl => Stage::Jsonl,
            RunFormat::Text if std::io::stdout().is_terminal() => {
                Stage::Screen { size: output::terminal_size(), drawn: 0 }
            }
            RunFormat::Text => Stage::Lines,
        }
    }

    pub(crate) fn show(&mut self, line: &EventLine) -> Result<(), Failure> {
        match self {
            Stage::Lines => match event_line(line) {
                Some(text) => output::text(|out| writeln!(out, "{text}")),
                None => Ok(()),
            },
            Stage::Jsonl => output::data(|out| {
                serde_json::to_writer(&mut *out, line)?;
                writeln!(out)
            }),
            Stage::Screen { drawn, .. } => {
                let Some(text) = event_line(line).filter(|_| is_news(&line.kind)) else {
                    return Ok(());
                };
                let erase = erase(std::mem::take(drawn));
                output::text(|out| writeln!(out, "{erase}{text}"))
            }
        }
    }

    /// Something that is no event of a run; JSON has no place for it.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Failure> {
        let erase = match self {
            Stage::Jsonl => return Ok(()),
            Stage::Lines => String::new(),
            Stage::Screen { drawn, .. } => erase(std::mem::take(drawn)),
        };
        output::text(|out| writeln!(out, "{erase}{text}"))
    }

    /// Something beside the run, which is not for stdout: a screen makes room for it.
    pub(crate) fn aside(&mut self, say: impl FnOnce()) -> Result<(), Failure> {
        if let Stage::Screen { drawn, .. } = self {
            let erase = erase(std::mem::take(drawn));
            output::text(|out| write!(out, "{erase}"))?;
        }
        say();
        Ok(())
    }

    /// Draws the moment; only a screen has one.
    pub(crate) fn draw(&mut self, view: &RunView, now: Time) -> Result<(), Failure> {
        let Stage::Screen { size, drawn } = self else { return Ok(()) };
        let lines = frame(view, now, *size);
        let erase = erase(std::mem::replace(drawn, lines.len()));
        output::text(|out| writeln!(out, "{erase}{}", lines.join("\n")))
    }

    /// The summary: below the lines, or, beside JSON, where people look.
    pub(crate) fn close(&mut self, view: &RunView, resume: &str) -> Result<(), Failure> {
        let summary = Summary::new(view, resume);
        match self {
            Stage::Lines => output::text(|out| write!(out, "\n{summary}")),
            Stage::Jsonl => {
                output::error(&summary.to_string());
                Ok(())
            }
            Stage::Screen { drawn, .. } => {
                let erase = erase(std::mem::take(drawn));
                output::text(|out| write!(out, "{erase}\n{summary}"))
            }
        }
    }
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

/// Moves up over what was drawn, and clears from there to the end of the screen.
fn erase(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\u{1b}[{lines}A\u{1b}[J") }
}
