//! What a run keeps in the cluster, and nothing is kept anywhere else: its Lease (`lease`), its hold
//! on the AppProject (`hold`), the deployed graph (`graph`), the records of runs (`records`), what
//! automatic deployments need (`deploy_loop`), and which objects have changed (`changes`).
//!
//! May ask the API server, and write these. Each decides in plain functions what an answer
//! means; what a run does next is decided in `tiphys-run`. `claim` says whose an AppProject is, and
//! `tolerance` how long requests may fail.

pub mod changes;
pub mod claim;
pub mod deploy_loop;
pub mod graph;
pub mod hold;
pub mod lease;
pub mod records;
pub mod tolerance;

pub use claim::ClaimError;
pub use graph::{DeployedApp, DeployedGraph, GraphError, GraphStore, Names};
pub use hold::{Hold, HoldError};
pub use lease::{Fence, Lease, LeaseError};
