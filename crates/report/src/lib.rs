//! What people and programs read: diagnostics, tables, graphs, runs.
//!
//! Everything here turns values into text. Colours are always written; whoever prints the text
//! strips them where they do not belong (no terminal, `NO_COLOR`).

mod clock;
mod columns;
mod diagnostics;
mod lines;
mod notice;
mod objects;
mod plan_graph;
mod plan_table;
mod screen;
pub mod style;
mod summary;

pub use diagnostics::render_diagnostics;
pub use lines::event_line;
pub use notice::{Notice, render_notice};
pub use objects::{ObjectLine, ObjectState, difference, object_table};
pub use plan_graph::{plan_dot, plan_mermaid};
pub use plan_table::{PlanTable, Timeline};
pub use screen::{Size, frame};
pub use summary::Summary;
