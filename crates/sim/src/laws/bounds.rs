//! Law 9, step by step: nothing takes longer than its own bounds, and no run stands still.
//!
//! That every run ends is true already because of its deadline. These bounds are tighter, so
//! that a step that hangs is not excused by a deadline of many hours.

use std::time::Duration;

use tiphys_model::{AppIx, Plan};
use tiphys_run::{Event, Time};

use super::{Broken, Law};
use crate::engine::Recorded;

/// What a step is in, and when it must be over.
#[derive(Debug, Clone, Copy)]
struct Bound {
    of: &'static str,
    until: Time,
}

pub(super) fn check(plan: &Plan, records: &[Recorded]) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mut blame = |what: String| broken.push(Broken { law: Law::Ending, what });
    let mut bounds: Vec<Option<Bound>> = vec![None; plan.apps.len()];
    let longest = longest(plan);
    let mut moved = Time::START;
    let mut interrupted = false;
    for Recorded { elapsed, event, .. } in records {
        interrupted |= matches!(event, Event::Interrupted { .. });
        let Some(change) = change(plan, *elapsed, event) else { continue };
        if elapsed.since(moved) > longest {
            let silence = elapsed.since(moved).as_secs();
            blame(format!("nothing happened for {silence} s before {event:?}"));
        }
        moved = *elapsed;
        let Some((app, next)) = change else { continue };
        let slot = &mut bounds[app.position()];
        // Asked for again: the first request counts.
        if matches!((&slot, event), (Some(_), Event::Removing { .. })) {
            continue;
        }
        let bound = std::mem::replace(slot, next);
        // Interrupted runs repeat no attempt.
        if let Some(Bound { of, until }) = bound
            && *elapsed > until
            && !interrupted
        {
            let name = &plan.app(app).app.name;
            let late = elapsed.since(until).as_secs();
            blame(format!("{name} was still {of} {late} s after its timeout"));
        }
    }
    broken
}

/// Whether an event moves the run on, and which step it puts under which bound.
#[expect(clippy::option_option, reason = "nothing, the run alone, or a step of it")]
fn change(plan: &Plan, at: Time, event: &Event) -> Option<Option<(AppIx, Option<Bound>)>> {
    let timeouts = |app: &AppIx| plan.app(*app).app.timeouts;
    let bound = |of, until| Some(Bound { of, until });
    match event {
        Event::Syncing { app, .. } => Some(Some((*app, bound("syncing", at + timeouts(app).sync)))),
        Event::Converging { app } => {
            Some(Some((*app, bound("converging", at + timeouts(app).health))))
        }
        Event::Retrying { app, until, .. } | Event::Postponed { app, until } => {
            Some(Some((*app, bound("pausing", *until))))
        }
        Event::Removing { app } => Some(Some((*app, bound("removing", at + timeouts(app).health)))),
        Event::Done { app, .. }
        | Event::Removed { app }
        | Event::Failed { app, .. }
        | Event::Skipped { app, .. } => Some(Some((*app, None))),
        Event::Begun
        | Event::Held
        | Event::Waiting { .. }
        | Event::Ailing { .. }
        | Event::Recovered { .. }
        | Event::HandedOff { .. }
        | Event::Terminated { .. }
        | Event::Interrupted { .. }
        | Event::Finished { .. } => Some(None),
        // What goes on behind the steps moves nothing.
        _ => None,
    }
}

/// A question whose answer is lost is asked again after half a minute. On a slow network that happens
/// twice in a row, each message takes up to 15 seconds, and trouble with comparing takes two answers.
const ANSWERS: Duration = Duration::from_secs(300);

/// What a run may wait for without a word: any single timeout, the longest pause, or answers.
fn longest(plan: &Plan) -> Duration {
    let of = |app: &tiphys_model::PlannedApp| {
        let tiphys_model::App { timeouts, retry, .. } = &app.app;
        timeouts.sync.max(timeouts.health).max(retry.backoff.max)
    };
    plan.apps.iter().map(of).max().unwrap_or_default().max(ANSWERS)
}
