//! Runs on Argo Workflows, seen from outside: submitting one, following it, stopping it.
//!
//! What such a run does is what a run does anywhere: its workflow has one container, in which the local
//! engine runs. The chart in `deploy/chart` has the templates; here is only what refers to them.

mod cancel;
mod error;
mod follow;
mod output;
mod submit;
mod workflow;

pub use cancel::cancel;
pub use error::WorkflowsError;
pub use follow::follow;
pub use output::{Level, Said};
pub use submit::{Submission, submit};
pub use workflow::{Place, find, of_pod};
