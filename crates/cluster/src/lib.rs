//! Argo CD and Kubernetes: what is seen of them, and what is asked of them.
//!
//! Decisions are not made here: what is seen becomes the core's observations, and what the core
//! asks for becomes requests.

pub mod application;
pub mod argocd;
mod connect;
mod error;

pub use application::Application;
pub use connect::Access;
pub use error::{ClusterError, Kind};
