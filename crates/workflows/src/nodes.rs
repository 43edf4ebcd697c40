//! A workflow with a node for each app, beside the run that executes them.
//!
//! ```text
//!  run ── submits ──▶ Workflow: a DAG of plugin nodes
//!   ▲                    │ Argo Workflows opens a node when those before it have succeeded
//!   └── is admitted ◀── WorkflowTaskSet ◀── reports how each node stands ── run
//! ```
//!
//! The run decides everything that it decides elsewhere, too. A node has one say more: its app starts
//! only after Argo Workflows has opened it. What a node shows, the run writes; the plugin in the agent's
//! pod only keeps nodes open, and fails them when their run has ended.

mod board;
mod compile;
mod ended;
mod error;
mod serve;
mod task_names;
mod watched;

pub use board::{NodePhase, NodeReport};
pub use compile::{AgentPod, NodesRun, Owner, PLUGIN_PORT, TooLarge};
pub use error::NodesError;
pub use serve::{FromNodes, NodeReports, serve_nodes};
