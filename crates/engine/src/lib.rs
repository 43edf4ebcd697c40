//! Runs on a cluster, from beginning to end.
//!
//! `deploy` and `teardown` are the two stories; `engine` is what both run on, `local` is one, and
//! `nodes` is the same with a workflow beside it.
//! What a run keeps in the cluster is in `tiphys-state`. What happens next is decided in
//! `tiphys-run`; here it is carried out.

mod app_resources;
mod created;
mod deploy;
mod engine;
mod frozen;
mod generators;
mod kubernetes_events;
mod local;
mod nodes;
#[cfg(test)]
mod rights;
mod root_source;
mod run_update;
mod signals;
pub mod teardown;
#[cfg(test)]
mod testkit;

pub use deploy::{Check, Deploy, DeployError, Refused};
pub use engine::{Engine, RunError};
pub use generators::GeneratorError;
pub use nodes::Nodes;
pub use root_source::{PlatformFileError, RootSource};
pub use run_update::RunUpdate;
pub use signals::{SignalError, Signals};
pub use teardown::{
    Extent, ForcedFinalizer, Kept, Leftover, Others, Teardown, TeardownError, TeardownOptions,
    TeardownOutcome, TeardownPreview,
};
pub use tiphys_argocd::platform_file::{self, PlatformFiles};
