//! Runs on Argo Workflows: submitting one, following it, stopping it, and the nodes of its apps.
//!
//! What such a run does is what a run does anywhere: its workflow has one container, in which the local
//! engine runs. The chart in `deploy/chart` has the templates; here is only what refers to them. If a
//! platform wants nodes, the run keeps another workflow beside it ([`nodes`]), and Argo Workflows asks a
//! plugin about them ([`plugin`]).

mod cancel;
mod error;
mod follow;
mod nodes;
mod output;
mod plugin;
mod schedules;
mod submit;
mod workflow;

pub use cancel::cancel;
pub use error::WorkflowsError;
pub use follow::follow;
pub use nodes::{
    AgentPod, FromNodes, NodePhase, NodeReport, NodeReports, NodesError, NodesRun, Owner,
    PLUGIN_PORT, TooLarge, serve_nodes,
};
pub use output::{Level, Said};
pub use plugin::{PluginError, PluginRun, serve_plugin};
pub use schedules::{Scheduled, schedules};
pub use submit::{Submission, submit};
pub use workflow::{Place, ended_at, find, of_pod, unfinished};
