//! A run as lines: one for each transition, for pipes, logs and `grep`.

use tiphys_model::{AppName, Exit};
use tiphys_run::{EventKind, EventLine, FailState, Time};

use crate::clock::{elapsed, took};
use crate::harmless::one_line;
use crate::style::{BAD, FAINT, GOOD, MARK, WARNING, paint};

/// The line of an event, without a line break. Waiting for what is in the plan anyway is no
/// news, so it has none.
#[must_use]
pub fn event_line(line: &EventLine) -> Option<String> {
    let text = match &line.kind {
        EventKind::RunStarted(started) => {
            let seed = started.seed.map_or(String::new(), |seed| format!(" seed {seed}"));
            format!(
                "run-started {} {} {} on the {} engine{seed}, plan {}",
                started.action.as_str(),
                started.platform,
                started.scope,
                started.engine.as_str(),
                started.plan.short(),
            )
        }
        EventKind::Held => "held automated sync is denied".to_owned(),
        EventKind::HandedOff { app } => format!("{app} {}", paint(FAINT, "handed-off")),
        EventKind::StepWaiting { reason: None, .. } => return None,
        EventKind::StepWaiting { app, reason: Some(reason), .. } => {
            format!("{app} {} {}", paint(WARNING, "waiting"), one_line(reason))
        }
        EventKind::StepSyncing { app, attempt: 1 } => format!("{app} {}", paint(MARK, "syncing")),
        EventKind::StepSyncing { app, attempt } => {
            format!("{app} {} attempt {attempt}", paint(MARK, "syncing"))
        }
        EventKind::StepConverging { app } => format!("{app} {}", paint(MARK, "converging")),
        EventKind::StepRetrying { app, cause, in_ms } => {
            let (word, cause) = (paint(WARNING, "retrying"), one_line(cause));
            match in_ms {
                0 => format!("{app} {word} now: {cause}"),
                in_ms => format!("{app} {word} in {}: {cause}", took(*in_ms)),
            }
        }
        EventKind::StepDone { app, how, took_ms } => {
            format!("{app} {} {} {}", paint(GOOD, "done"), how.as_str(), took(*took_ms))
        }
        EventKind::StepFailed { app, state, cause, .. } => failed(app, *state, cause),
        EventKind::StepSkipped { app, because, reason } => {
            let (word, reason) = (paint(WARNING, "skipped"), one_line(reason));
            match because.as_slice() {
                [] => format!("{app} {word}: {reason}"),
                because => format!("{app} {word} because of {}: {reason}", chain(because)),
            }
        }
        EventKind::StepRemoving { app } => format!("{app} {}", paint(MARK, "removing")),
        EventKind::StepRemoved { app, took_ms } => {
            format!("{app} {} {}", paint(GOOD, "removed"), took(*took_ms))
        }
        EventKind::RevisionMoved { app, from, to } => {
            let (from, to) = (one_line(from), one_line(to));
            format!("{app} {} from {from} to {to}", paint(WARNING, "revision-moved"))
        }
        EventKind::Interrupted { signal } => {
            let signal = signal.as_str();
            format!("{} by {signal}: nothing new is started", paint(WARNING, "interrupted"))
        }
        EventKind::RunFinished(finished) => {
            let exit = finished.exit();
            let style = if exit == Exit::Done { GOOD } else { BAD };
            let verdict = paint(style, finished.verdict.as_str());
            format!("run-finished {verdict} exit {}", exit.code())
        }
    };
    Some(format!("{} {text}", paint(FAINT, &elapsed(Time::from_millis(line.elapsed_ms)))))
}

fn failed(app: &AppName, state: FailState, cause: &str) -> String {
    format!("{app} {} {}", paint(BAD, state.as_str()), one_line(cause))
}

/// `storage-classes, ceph-cluster`: from what was waited for to what failed.
pub(crate) fn chain(because: &[AppName]) -> String {
    let names: Vec<&str> = because.iter().map(AppName::as_str).collect();
    names.join(" < ")
}
