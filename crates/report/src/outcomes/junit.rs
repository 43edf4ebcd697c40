//! As machines that run tests read it.

use std::fmt;

use super::{AppResult, Outcomes};
use crate::junit::escaped;

/// One suite, with a test case for each app.
pub struct OutcomesJunit<'a>(pub &'a Outcomes);

impl fmt::Display for OutcomesJunit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes = self.0;
        let title = escaped(&outcomes.title);
        let failed = outcomes.count(|result| matches!(result, AppResult::Failed { .. }));
        let skipped = outcomes.count(|result| matches!(result, AppResult::Skipped { .. }));
        let all = outcomes.apps.len();
        let counts = format!(r#"tests="{all}" failures="{failed}" errors="0" skipped="{skipped}""#);
        writeln!(f, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
        writeln!(f, r#"<testsuites name="tiphys {title}" {counts}>"#)?;
        writeln!(f, r#"  <testsuite name="{title}" {counts}>"#)?;
        for app in &outcomes.apps {
            let name = escaped(&app.name);
            write!(f, r#"    <testcase name="{name}" classname="{title}""#)?;
            if let Some(millis) = app.took_ms {
                write!(f, r#" time="{}.{:03}""#, millis / 1000, millis % 1000)?;
            }
            match &app.result {
                AppResult::Passed => writeln!(f, "/>")?,
                AppResult::Skipped { reason } => {
                    writeln!(f, r#"><skipped message="{}"/></testcase>"#, escaped(reason))?;
                }
                AppResult::Failed { cause, next } => {
                    let next = next.as_deref().map(|next| format!("\nnext: {}", escaped(next)));
                    let (state, cause) = (escaped(&app.state), escaped(cause));
                    writeln!(
                        f,
                        "><failure message=\"{cause}\">{state}: {cause}{}</failure></testcase>",
                        next.unwrap_or_default()
                    )?;
                }
            }
        }
        writeln!(f, "  </testsuite>\n</testsuites>")
    }
}
