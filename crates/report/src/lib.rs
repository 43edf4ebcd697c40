//! What people and programs read: diagnostics, tables, graphs, runs.
//!
//! Everything here turns values into text. Colours are always written; whoever prints the text
//! strips them where they do not belong (no terminal, `NO_COLOR`).

mod annotations;
mod clock;
mod columns;
mod diagnostics;
mod harmless;
mod junit;
mod lines;
mod markdown;
mod notice;
mod objects;
mod outcomes;
mod plan_difference;
mod plan_graph;
mod plan_markdown;
mod plan_table;
mod preflight;
mod runs;
mod screen;
mod status;
pub mod style;
mod summary;
mod why;

pub use annotations::{github_annotations, github_warning};
pub use diagnostics::render_diagnostics;
pub use harmless::{harmless, one_line, terminal_text, width};
pub use junit::JunitReport;
pub use lines::event_line;
pub use notice::{Notice, render_notice};
pub use objects::{ObjectLine, ObjectState, difference, object_table};
pub use outcomes::{Outcomes, OutcomesJunit, OutcomesMarkdown};
pub use plan_difference::{PlanDifferenceMarkdown, PlanDifferenceText};
pub use plan_graph::{plan_dot, plan_mermaid};
pub use plan_markdown::PlanMarkdown;
pub use plan_table::{PlanTable, Timeline};
pub use preflight::{PreflightReport, SkippedChecks};
pub use runs::{RunLine, RunState, RunsTable};
pub use screen::{Size, frame};
pub use status::{StatusReport, ValidateReport, status_line};
pub use summary::{Ending, Summary};
pub use why::WhyReport;
