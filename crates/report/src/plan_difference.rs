//! What changes from one plan to another, for people: on a terminal, or in a merge request.

use std::fmt;
use std::time::Duration;

use anstyle::Style;
use tiphys_model::duration::format as human;
use tiphys_plan::{Change, ChangedApp, NewApp, PlanDifference, Setting, Start};

use crate::columns::{Align, Cell, columns};
use crate::markdown;
use crate::style::{FAINT, MARK, STRONG, WARNING, paint};

/// More would hide the rest; JSON has all of them.
const MOST_STARTS: usize = 5;

/// For a terminal.
pub struct PlanDifferenceText<'a>(pub &'a PlanDifference);

/// For a merge request.
pub struct PlanDifferenceMarkdown<'a>(pub &'a PlanDifference);

/// One app, or the platform.
struct Row {
    mark: &'static str,
    name: String,
    what: String,
}

fn rows(difference: &PlanDifference) -> Vec<Row> {
    let row = |mark, name: &str, what| Row { mark, name: name.to_owned(), what };
    let settings = (!difference.settings.is_empty())
        .then(|| row("~", "(platform)", sentences(&difference.settings)));
    let added = difference.added.iter().map(|app| row("+", &app.name, of_new(app)));
    let removed = difference.removed.iter().map(|name| row("-", name, String::new()));
    let changed = difference.changed.iter().map(|app| row("~", &app.name, of_changed(app)));
    settings.into_iter().chain(added).chain(removed).chain(changed).collect()
}

fn of_new(NewApp { stack, layer, depends_on, .. }: &NewApp) -> String {
    let place = format!("stack {stack}, layer {layer}");
    match depends_on.as_slice() {
        [] => place,
        names => {
            let names: Vec<String> = names.iter().map(|name| dependency(name)).collect();
            format!("{place}, depends on {}", names.join(", "))
        }
    }
}

fn of_changed(app: &ChangedApp) -> String {
    let gained = app.new_dependencies.iter().map(|name| format!("depends on {}", dependency(name)));
    let lost = app.old_dependencies.iter();
    let lost = lost.map(|name| format!("no longer depends on {}", dependency(name)));
    let fields = app.fields.iter().map(sentence);
    gained.chain(lost).chain(fields).collect::<Vec<_>>().join("; ")
}

fn dependency(name: &str) -> String {
    match name.strip_suffix('?') {
        Some(name) => format!("{name} (optional)"),
        None => name.to_owned(),
    }
}

fn sentences(settings: &[Setting]) -> String {
    settings.iter().map(sentence).collect::<Vec<_>>().join("; ")
}

fn sentence(Setting { field, value: Change { old, new } }: &Setting) -> String {
    format!("{field} {old} → {new}")
}

fn headline(difference: &PlanDifference) -> String {
    if difference.is_empty() {
        return "no changes".to_owned();
    }
    let counts = [
        (difference.added.len(), "added"),
        (difference.removed.len(), "removed"),
        (difference.changed.len(), "changed"),
    ];
    let counts: Vec<String> = counts.iter().map(|(count, how)| format!("{count} {how}")).collect();
    let Change { old, new } = difference.apps;
    format!("{old} → {new} apps: {}", counts.join(", "))
}

/// What follows from the changes.
fn consequences(difference: &PlanDifference) -> Vec<String> {
    let time = |seconds: u64| human(Duration::from_secs(seconds));
    let Change { old, new } = difference.estimate_seconds;
    let estimate = (old != new).then(|| format!("estimate {} → {}", time(old), time(new)));
    let path = &difference.critical_path;
    let path = path.is_one().then(|| {
        format!("critical path {} (before: {})", path.new.join(" → "), path.old.join(" → "))
    });
    let start = |Start { name, seconds: Change { old, new } }: &Start| {
        format!("{name} +{} → +{}", time(*old), time(*new))
    };
    let starts = &difference.starts;
    let more = starts.len().saturating_sub(MOST_STARTS);
    let shown: Vec<String> = starts.iter().take(MOST_STARTS).map(start).collect();
    let starts = (!shown.is_empty()).then(|| {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("starts at another time: {}{more}", shown.join(", "))
    });
    [estimate, path, starts].into_iter().flatten().collect()
}

impl fmt::Display for PlanDifferenceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let difference = self.0;
        writeln!(f, "{}  {}", paint(STRONG, difference.platform.as_str()), headline(difference))?;
        let Change { old, new } = &difference.digest;
        if difference.is_empty() {
            return writeln!(f, "{}", paint(FAINT, new));
        }
        writeln!(f, "{}", paint(FAINT, &format!("{old} →\n{new}")))?;
        let rows: Vec<[Cell; 3]> = rows(difference)
            .into_iter()
            .map(|Row { mark, name, what }| {
                let style = match mark {
                    "-" => WARNING,
                    "+" => MARK,
                    _ => Style::new(),
                };
                [Cell::new(mark, style), Cell::new(name, style), what.into()]
            })
            .collect();
        for part in [columns([Align::Left; 3], &rows), consequences(difference)] {
            if !part.is_empty() {
                writeln!(f, "\n{}", part.join("\n"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for PlanDifferenceMarkdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let difference = self.0;
        let name = markdown::text(difference.platform.as_str());
        writeln!(f, "### Platform {name}: {}\n", headline(difference))?;
        if difference.is_empty() {
            return Ok(());
        }
        let rows = rows(difference);
        if !rows.is_empty() {
            writeln!(f, "| | app | |\n|---|---|---|")?;
        }
        for Row { mark, name, what } in &rows {
            writeln!(f, "| `{mark}` | {} | {} |", markdown::text(name), markdown::text(what))?;
        }
        let consequences = consequences(difference);
        if !rows.is_empty() && !consequences.is_empty() {
            writeln!(f)?;
        }
        for line in consequences {
            writeln!(f, "- {}", markdown::text(&line))?;
        }
        Ok(())
    }
}
