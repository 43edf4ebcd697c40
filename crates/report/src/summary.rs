//! What a run came to: verdict, times, every failure with its evidence, every skipped app with
//! its chain, and the command that goes on from here.

use std::fmt;

use tiphys_model::{AppName, Exit};
use tiphys_run::{AppState, EngineName, Evidence, RunStarted, RunView, Verdict};

use crate::clock::took;
use crate::columns::{Align, Cell, columns};
use crate::harmless::one_line;
use crate::lines::chain;
use crate::style::{BAD, FAINT, GOOD, STRONG, WARNING, paint};
use crate::why::evidence_lines;

/// How many of the slowest apps are named.
const SLOWEST: usize = 5;

pub struct Summary<'a> {
    view: &'a RunView,
    ending: Ending<'a>,
}

/// How to go on after a run that has not done all of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// With this command.
    Resume(&'a str),
    /// Not at all: nothing was really done.
    Rehearsal,
}

impl<'a> Summary<'a> {
    #[must_use]
    pub fn new(view: &'a RunView, ending: Ending<'a>) -> Self {
        Summary { view, ending }
    }

    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(started), Some(finished)) = (&self.view.started, &self.view.finished) else {
            return writeln!(f, "the run has not ended");
        };
        let style = if finished.exit() == Exit::Done { GOOD } else { BAD };
        let counts = &finished.counts;
        let parts = [
            (counts.applied, "applied"),
            (counts.already_current, "already current"),
            (counts.removed, "removed"),
            (counts.failed, "failed"),
            (counts.errored, "errored"),
            (counts.timed_out, "timed out"),
            (counts.skipped, "skipped"),
            (counts.unhealthy, "done but unhealthy"),
            (counts.unfinished, "unfinished"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        writeln!(
            f,
            "{} {}{} {}: {}",
            started.action.as_str(),
            paint(STRONG, started.platform.as_str()),
            rehearsal(started),
            paint(style, finished.verdict.as_str()),
            parts.join(", "),
        )?;
        if let Some(what) = explained(finished.verdict) {
            writeln!(f, "{what}")?;
        }
        if counts.unfinished > 0 {
            return writeln!(f, "ended after {}", took(finished.makespan_ms));
        }
        let (makespan, critical) = (finished.makespan_ms, finished.critical_path_ms);
        // Of less than that, a percentage says nothing.
        if critical < 1000 {
            return writeln!(f, "took {}", took(makespan));
        }
        let over = makespan.saturating_sub(critical) * 1000 / critical;
        writeln!(
            f,
            "took {}, critical path {} (+{}.{} %)",
            took(makespan),
            took(critical),
            over / 10,
            over % 10,
        )
    }

    fn slowest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut times: Vec<(u64, &AppName)> = self
            .view
            .apps()
            .filter_map(|(name, app)| match app.state {
                AppState::Done { took_ms, .. } | AppState::Removed { took_ms } if took_ms > 0 => {
                    Some((took_ms, name))
                }
                _ => None,
            })
            .collect();
        if times.is_empty() {
            return Ok(());
        }
        times.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let named: Vec<String> = times
            .iter()
            .take(SLOWEST)
            .map(|(millis, name)| format!("{name} {}", took(*millis)))
            .collect();
        writeln!(f, "slowest: {}", named.join(", "))
    }

    fn failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, app) in self.view.apps() {
            let AppState::Failed { state, cause, evidence, hint } = &app.state else { continue };
            failure(f, state.as_str(), name, cause, evidence, hint)?;
        }
        for one in self.view.finished.iter().flat_map(|finished| &finished.unhealthy) {
            failure(f, "unhealthy", &one.app, &one.cause, &one.evidence, &one.hint)?;
        }
        Ok(())
    }

    fn skipped(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<[Cell; 3]> = self
            .view
            .apps()
            .filter_map(|(name, app)| match &app.state {
                AppState::Skipped { because, reason } => Some([
                    Cell::new("skipped", WARNING),
                    name.as_str().into(),
                    match because.as_slice() {
                        [] => one_line(reason).into(),
                        because => format!("< {}", chain(because)).into(),
                    },
                ]),
                _ => None,
            })
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        for line in columns([Align::Left, Align::Left, Align::Left], &rows) {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

fn failure(
    f: &mut fmt::Formatter<'_>,
    word: &str,
    app: &AppName,
    cause: &str,
    evidence: &Evidence,
    hint: &str,
) -> fmt::Result {
    writeln!(f)?;
    writeln!(f, "{} {app}: {}", paint(BAD, word), one_line(cause))?;
    for line in evidence_lines(evidence) {
        writeln!(f, "  {} {line}", paint(FAINT, "evidence:"))?;
    }
    writeln!(f, "  {} {}", paint(STRONG, "next:"), one_line(hint))
}

/// What stands behind the name of a platform on which nothing is really done.
pub(crate) fn rehearsal(started: &RunStarted) -> &'static str {
    match started.engine {
        EngineName::Simulated => " (rehearsal)",
        EngineName::Local | EngineName::Workflows => "",
    }
}

/// What happened, where the failures below do not say it.
fn explained(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Deadline => {
            Some("the run reached its deadline and stopped; syncs in progress continue in Argo CD")
        }
        Verdict::LeaseLost => Some(
            "another run took over the platform, so this one stopped\n\
             next: wait until the other run has ended (`tiphys status` shows it)",
        ),
        Verdict::Succeeded | Verdict::Failed | Verdict::Interrupted(_) => None,
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verdict(f)?;
        self.slowest(f)?;
        self.failures(f)?;
        self.skipped(f)?;
        if self.view.finished.as_ref().is_some_and(|finished| finished.exit() != Exit::Done) {
            writeln!(f)?;
            match self.ending {
                Ending::Resume(command) => {
                    writeln!(f, "to resume: {}", paint(STRONG, &one_line(command)))?;
                }
                Ending::Rehearsal => {
                    writeln!(f, "this was a rehearsal: no cluster was changed")?;
                }
            }
        }
        Ok(())
    }
}
