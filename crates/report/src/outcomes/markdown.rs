//! As people read it on the page of a pipeline.

use std::fmt;

use super::{AppOutcome, AppResult, Outcomes};
use crate::clock::took;
use crate::markdown::text;

/// A heading, what went wrong, and all apps folded away.
pub struct OutcomesMarkdown<'a>(pub &'a Outcomes);

impl fmt::Display for OutcomesMarkdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes = self.0;
        let passed = outcomes.count(|result| *result == AppResult::Passed);
        let failed = outcomes.count(|result| matches!(result, AppResult::Failed { .. }));
        let skipped = outcomes.count(|result| matches!(result, AppResult::Skipped { .. }));
        writeln!(f, "## {}: {}\n", text(&outcomes.title), text(&outcomes.verdict))?;
        writeln!(f, "{passed} passed, {failed} failed, {skipped} skipped\n")?;
        let wrong: Vec<&AppOutcome> =
            outcomes.apps.iter().filter(|app| app.result != AppResult::Passed).collect();
        if !wrong.is_empty() {
            writeln!(f, "| app | state | why | next |\n|---|---|---|---|")?;
        }
        for app in &wrong {
            let (why, next) = match &app.result {
                AppResult::Passed => continue,
                AppResult::Failed { cause, next } => (cause, next.as_deref().unwrap_or_default()),
                AppResult::Skipped { reason } => (reason, ""),
            };
            let row = [&app.name, &app.state, why, next].map(text).join(" | ");
            writeln!(f, "| {row} |")?;
        }
        if !wrong.is_empty() {
            writeln!(f)?;
        }
        writeln!(f, "<details><summary>All {} apps</summary>\n", outcomes.apps.len())?;
        writeln!(f, "| app | state | took |\n|---|---|---:|")?;
        for app in &outcomes.apps {
            let time = app.took_ms.map(took).unwrap_or_default();
            writeln!(f, "| {} | {} | {time} |", text(&app.name), text(&app.state))?;
        }
        writeln!(f, "\n</details>")
    }
}
