//! The plan as Markdown, for a merge request.

use std::fmt;

use tiphys_model::duration::format as human;
use tiphys_model::{Plan, Role};

use crate::markdown::text;

/// A heading, the estimate, and a table of the apps in start order.
pub struct PlanMarkdown<'a>(pub &'a Plan);

impl fmt::Display for PlanMarkdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0;
        let name = |at: tiphys_model::AppIx| text(plan.app(at).app.name.as_str());
        let path: Vec<String> = plan.critical_path.iter().map(|at| name(*at)).collect();
        writeln!(f, "### Platform {}: {} apps\n", text(plan.platform.as_str()), plan.apps.len())?;
        writeln!(f, "- estimate {}", human(plan.estimate))?;
        writeln!(f, "- critical path {}", path.join(" → "))?;
        writeln!(f, "- `{}`\n", plan.digest.as_str())?;
        writeln!(
            f,
            "| start | layer | app | stack | takes | waits for |\n|--:|--:|---|---|--:|---|"
        )?;
        for at in plan.graph.apps() {
            let planned = plan.app(at);
            let takes = match planned.role {
                Role::Act => human(planned.app.typical),
                Role::Verify => "verify".to_owned(),
            };
            let waits = planned.app.dependencies.iter().map(|one| name(one.app));
            let waits = waits.collect::<Vec<_>>().join(", ");
            let (start, stack) = (human(planned.start), text(planned.app.stack.as_str()));
            let (layer, app) = (planned.layer, name(at));
            writeln!(f, "| +{start} | {layer} | {app} | {stack} | {takes} | {waits} |")?;
        }
        Ok(())
    }
}
