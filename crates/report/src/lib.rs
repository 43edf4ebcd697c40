//! What people and programs read: diagnostics, tables, graphs.
//!
//! Everything here turns values into text. Colours are always written; whoever prints the text
//! strips them where they do not belong (no terminal, `NO_COLOR`).

mod columns;
mod diagnostics;
mod notice;
mod plan_graph;
mod plan_table;
pub mod style;

pub use diagnostics::render_diagnostics;
pub use notice::{Notice, render_notice};
pub use plan_graph::{plan_dot, plan_mermaid};
pub use plan_table::{PlanTable, Timeline};
