//! The plan as a table that a person likes to look at.
//!
//! Apps in start order, when each would start, and what it waits for; on a wide terminal also a
//! bar for each app, so that the shape of the run can be seen at a glance.

use std::fmt;
use std::time::Duration;

use tiphys_model::duration::format as human;
use tiphys_model::{AppIx, Plan, Role};
use tiphys_plan::advice::{self, Bound};

use crate::columns::{Align, Cell, columns};
use crate::style::{FAINT, MARK, STRONG, WARNING, paint};

/// Whether bars are drawn, and in how many columns of the terminal everything must fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeline {
    /// For pipes: every line is as long as it is.
    None,
    /// Bars in what the table leaves of this width, if that is enough to see something.
    Within(usize),
}

/// Fewer columns than this show no shape.
const NARROWEST_BARS: usize = 20;
/// More columns than this show no more.
const WIDEST_BARS: usize = 60;

pub struct PlanTable<'a> {
    plan: &'a Plan,
    timeline: Timeline,
    critical: Vec<bool>,
}

impl<'a> PlanTable<'a> {
    #[must_use]
    pub fn new(plan: &'a Plan, timeline: Timeline) -> Self {
        let mut critical = vec![false; plan.apps.len()];
        for app in &plan.critical_path {
            critical[app.position()] = true;
        }
        PlanTable { plan, timeline, critical }
    }

    fn row(&self, app: AppIx) -> [Cell; 8] {
        let planned = self.plan.app(app);
        let critical = self.critical[app.position()];
        let (mark, name_style) = match (planned.role, critical) {
            (Role::Verify, _) => ("?", WARNING),
            (Role::Act, true) => ("*", MARK),
            (Role::Act, false) => ("", anstyle::Style::new()),
        };
        let names: Vec<&str> = planned
            .app
            .dependencies
            .iter()
            .map(|dependency| self.plan.app(dependency.app).app.name.as_str())
            .collect();
        let typical = match planned.role {
            Role::Act => human(planned.app.typical),
            Role::Verify => "verify".to_owned(),
        };
        [
            Cell::new(format!("+{}", human(planned.start)), FAINT),
            Cell::new(planned.layer.to_string(), FAINT),
            Cell::new(mark, name_style),
            Cell::new(planned.app.name.as_str(), name_style),
            planned.app.stack.as_str().into(),
            planned.app.app_type.as_str().into(),
            typical.into(),
            names.join(", ").into(),
        ]
    }

    fn header() -> [Cell; 8] {
        ["START", "LAYER", "", "APP", "STACK", "TYPE", "TAKES", "WAITS FOR"]
            .map(|title| Cell::new(title, STRONG))
    }

    /// The table without `WAITS FOR`, with a bar behind each line.
    fn bars(&self, width: usize) -> Option<Vec<String>> {
        use Align::{Left, Right};
        let narrow = |row: [Cell; 8]| {
            let [start, layer, mark, app, stack, app_type, takes, _] = row;
            [start, layer, mark, app, stack, app_type, takes]
        };
        let mut rows = vec![narrow(Self::header())];
        rows.extend(self.plan.graph.apps().map(|app| narrow(self.row(app))));
        let lines = columns([Right, Right, Left, Left, Left, Left, Right], &rows);
        let longest = lines.iter().map(|line| visible_width(line)).max().unwrap_or_default();
        let room = width.checked_sub(longest + 2)?.min(WIDEST_BARS);
        if room < NARROWEST_BARS {
            return None;
        }
        let mut lines = lines.into_iter();
        let header = lines.next()?;
        let barred = lines.zip(self.plan.graph.apps()).map(|(line, app)| {
            let space = " ".repeat(longest + 2 - visible_width(&line));
            format!("{line}{space}{}", self.bar(app, room))
        });
        Some(std::iter::once(header).chain(barred).collect())
    }

    fn bar(&self, app: AppIx, room: usize) -> String {
        let planned = self.plan.app(app);
        let column = |time: Duration| {
            let total = self.plan.estimate.as_millis().max(1);
            usize::try_from(time.as_millis() * room as u128 / total).unwrap_or(room)
        };
        let from = column(planned.start).min(room - 1);
        let to = column(planned.start + planned.typical()).clamp(from + 1, room);
        let (glyph, style) = match (planned.role, self.critical[app.position()]) {
            (Role::Verify, _) => ("·", WARNING),
            (Role::Act, true) => ("█", MARK),
            (Role::Act, false) => ("▒", FAINT),
        };
        format!("{}{}", " ".repeat(from), paint(style, &glyph.repeat(to - from)))
    }

    fn full(&self) -> Vec<String> {
        use Align::{Left, Right};
        let mut rows = vec![Self::header()];
        rows.extend(self.plan.graph.apps().map(|app| self.row(app)));
        columns([Right, Right, Left, Left, Left, Left, Right, Left], &rows)
    }

    fn summary(&self) -> String {
        let plan = self.plan;
        let deployed = || plan.apps.iter().filter(|app| app.role == Role::Act);
        let verified = plan.apps.len() - deployed().count();
        let mut stacks: Vec<_> = deployed().map(|app| &app.app.stack).collect();
        stacks.sort();
        stacks.dedup();
        let layers = plan.apps.iter().map(|app| app.layer + 1).max().unwrap_or_default();
        let mut text = format!(
            "{}  {}  {} in {}, {}",
            paint(STRONG, plan.platform.as_str()),
            plan.scope,
            count(deployed().count(), "app"),
            count(stacks.len(), "stack"),
            count(layers as usize, "layer"),
        );
        if verified > 0 {
            text += &format!(", {verified} outside the scope must be Healthy (?)");
        }
        text
    }

    fn estimate(&self) -> String {
        let plan = self.plan;
        let work: Duration = plan.apps.iter().map(tiphys_model::PlannedApp::typical).sum();
        let first = plan.critical_path.first();
        let critical = first.map_or(Duration::ZERO, |app| plan.app(*app).rank);
        let mut text = format!(
            "estimate {}, critical path {} (*), work {}, at most {} at once",
            human(plan.estimate),
            human(critical),
            human(work),
            plan.policies.concurrency,
        );
        match advice::bound(plan) {
            Bound::CriticalPath => {}
            bound => text += &format!(", limited by {bound}"),
        }
        text
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Columns on the screen: characters outside of escape sequences.
fn visible_width(line: &str) -> usize {
    let mut width = 0;
    let mut escaped = false;
    for c in line.chars() {
        match c {
            '\u{1b}' => escaped = true,
            'm' if escaped => escaped = false,
            _ if !escaped => width += 1,
            _ => {}
        }
    }
    width
}

impl fmt::Display for PlanTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary())?;
        writeln!(f, "{}", self.estimate())?;
        writeln!(f, "{}", paint(FAINT, self.plan.digest.as_str()))?;
        writeln!(f)?;
        let barred = match self.timeline {
            Timeline::None => None,
            Timeline::Within(width) => self.bars(width),
        };
        for line in barred.unwrap_or_else(|| self.full()) {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}
