//! A run on a terminal: what is running now, one bar, and the rest scrolling past above.
//!
//! [`frame`] is a pure function of the view and the time, so that a screen at any moment of a
//! run can be tested; drawing it is a matter of moving the cursor up and printing it again.

use std::time::Duration;

use tiphys_model::duration::format as human;
use tiphys_run::{AppState, AppView, RunView, Time};

use crate::clock::{elapsed, took};
use crate::harmless::{fitting, one_line, width};
use crate::style::{FAINT, GOOD, MARK, STRONG, WARNING, paint};
use crate::summary::rehearsal;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// The lines at the bottom of the screen, none wider than it.
#[must_use]
pub fn frame(view: &RunView, now: Time, size: Size) -> Vec<String> {
    let mut lines = headline(view, now, size.columns);
    lines.push(bar(view, now, size.columns));
    let running: Vec<_> = view.apps().filter(|(_, app)| app.state.is_running()).collect();
    // A third of the screen is for what runs; the log above it is worth more.
    let room = (size.rows / 3).max(3);
    let width = running.iter().map(|(name, _)| name.as_str().len()).max().unwrap_or(0).min(40);
    let shown = if running.len() > room { room - 1 } else { running.len() };
    for (name, app) in &running[..shown] {
        lines.push(running_line(name.as_str(), width, app, now, size.columns));
    }
    if shown < running.len() {
        lines.push(format!("  {}", paint(FAINT, &format!("and {} more", running.len() - shown))));
    }
    lines
}

/// What runs, and the counts: in one line if there is room, otherwise in two.
fn headline(view: &RunView, now: Time, columns: usize) -> Vec<String> {
    let count =
        |which: fn(&AppState) -> bool| view.apps().filter(|(_, app)| which(&app.state)).count();
    let good = count(|state| matches!(state, AppState::Done { .. } | AppState::Removed { .. }));
    let running = count(AppState::is_running);
    let waiting = count(|state| matches!(state, AppState::Waiting { .. }));
    let lost = count(|state| matches!(state, AppState::Failed { .. } | AppState::Skipped { .. }));
    let title = view.started.as_ref().map_or(String::new(), |started| {
        format!("{} {}{}", started.action.as_str(), started.platform, rehearsal(started))
    });
    let title = format!("{} {title}", elapsed(now));
    let mut counts = format!("{good} done, {running} running, {waiting} waiting");
    if lost > 0 {
        counts += &format!(", {lost} failed or skipped");
    }
    let whole = format!("{title}: {counts}");
    let lines = if width(&whole) <= columns { vec![whole] } else { vec![title, counts] };
    let style = if lost > 0 { WARNING } else { STRONG };
    lines.iter().map(|line| paint(style, fitting(line, columns))).collect()
}

/// Done, running and still to come, measured by typical times: a bar of apps would call a
/// platform half done before its storage has begun.
fn bar(view: &RunView, now: Time, columns: usize) -> String {
    let mut over = Duration::ZERO;
    let mut running = Duration::ZERO;
    let mut total = Duration::ZERO;
    let mut left = Duration::ZERO;
    for (_, app) in view.apps() {
        total = total.saturating_add(app.typical);
        let spent = app.started.map_or(Duration::ZERO, |started| now - started);
        if app.state.is_over() {
            over = over.saturating_add(app.typical);
        } else {
            if app.state.is_running() {
                running = running.saturating_add(app.typical);
            }
            left = left.max(app.rank.saturating_sub(spent));
        }
    }
    let percent = over.as_millis() * 100 / total.as_millis().max(1);
    let tail = match left {
        Duration::ZERO => format!(" {percent:>3} %"),
        left => format!(" {percent:>3} %, about {} left", human(round(left))),
    };
    let width = columns.saturating_sub(tail.chars().count()).min(60);
    let share = |part: Duration| {
        let cells = part.as_millis() * width as u128 / total.as_millis().max(1);
        usize::try_from(cells).unwrap_or(width)
    };
    let full = share(over);
    let busy = share(over.saturating_add(running)) - full;
    let rest = width - full - busy;
    format!(
        "{}{}{}{tail}",
        paint(GOOD, &"█".repeat(full)),
        paint(MARK, &"▒".repeat(busy)),
        paint(FAINT, &"·".repeat(rest)),
    )
}

/// To ten seconds: more would be a lie.
fn round(time: Duration) -> Duration {
    Duration::from_secs((time.as_secs() + 5) / 10 * 10)
}

fn running_line(name: &str, width: usize, app: &AppView, now: Time, columns: usize) -> String {
    let spent = app.started.map_or(Duration::ZERO, |started| now - started);
    let spent = took(u64::try_from(spent.as_millis()).unwrap_or(u64::MAX));
    let state = app.state.word();
    let detail = match &app.state {
        AppState::Syncing { attempt } if *attempt > 1 => format!("  attempt {attempt}"),
        AppState::Retrying { cause } => format!("  {}", one_line(cause)),
        _ => String::new(),
    };
    let name: String = name.chars().take(width).collect();
    let plain = format!("  {name:<width$}  {state:<10}  {spent:>7}{detail}");
    let cut = fitting(&plain, columns);
    // The state is coloured where it stands, if the line is wide enough to hold it.
    match cut.split_once(state) {
        Some((before, after)) => format!("{before}{}{after}", paint(MARK, state)),
        None => cut.to_owned(),
    }
}
