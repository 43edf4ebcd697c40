//! The runs that were recorded, as a table.

use std::fmt;

use crate::clock::took;
use crate::columns::{Align, Cell, columns};
use crate::style::{BAD, FAINT, GOOD, WARNING};

/// One run, as far as the table shows it.
#[derive(Debug, Clone)]
pub struct RunLine {
    pub run: String,
    pub platform: String,
    /// To the second.
    pub started: String,
    pub action: String,
    pub scope: String,
    /// Nothing while it goes on.
    pub took_ms: Option<u64>,
    pub state: RunState,
    pub by: String,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    Running,
    /// It has not said how it ended, and nobody goes on with it.
    Lost,
    Ended {
        verdict: String,
        well: bool,
    },
}

impl RunState {
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            RunState::Running => "running",
            RunState::Lost => "lost",
            RunState::Ended { verdict, .. } => verdict,
        }
    }
}

/// The newest first.
pub struct RunsTable<'a>(pub &'a [RunLine]);

impl fmt::Display for RunsTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["RUN", "PLATFORM", "STARTED", "ACTION", "SCOPE", "TOOK", "RESULT", "BY"];
        let mut rows = vec![head.map(|title| Cell::new(title, FAINT))];
        rows.extend(self.0.iter().map(|line| {
            let style = match &line.state {
                RunState::Ended { well: true, .. } => GOOD,
                RunState::Ended { well: false, .. } => BAD,
                RunState::Running | RunState::Lost => WARNING,
            };
            [
                Cell::from(&line.run),
                Cell::from(&line.platform),
                Cell::from(&line.started),
                Cell::from(&line.action),
                Cell::from(&line.scope),
                Cell::from(line.took_ms.map(took).unwrap_or_default()),
                Cell::new(line.state.as_str(), style),
                Cell::new(&line.by, FAINT),
            ]
        }));
        let mut align = [Align::Left; 8];
        align[5] = Align::Right;
        columns(align, &rows).iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_a_line() {
        let line = |run: &str, took_ms, state| RunLine {
            run: run.to_owned(),
            platform: "prod".to_owned(),
            started: "2026-11-18 12:00:00".to_owned(),
            action: "deploy".to_owned(),
            scope: "platform".to_owned(),
            took_ms,
            state,
            by: "tiphys on build-7, pid 1".to_owned(),
        };
        let ended = |verdict: &str, well| RunState::Ended { verdict: verdict.to_owned(), well };
        let lines = [
            line("abc-3", None, RunState::Running),
            line("abc-2", Some(62_000), ended("succeeded", true)),
            line("abc-1", None, RunState::Lost),
        ];
        let table = RunsTable(&lines).to_string();
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), 4);
        assert!(rows[1].iter().any(|cell| cell.contains("running")), "{table}");
        assert!(rows[2].contains(&"1m2s"), "{table}");
        assert!(rows[3].iter().any(|cell| cell.contains("lost")), "{table}");
    }
}
