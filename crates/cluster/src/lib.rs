//! Argo CD and Kubernetes: what is seen of them, and what is asked of them.
//!
//! Decisions are not made here: what is seen becomes the core's observations, and what the core
//! asks for becomes requests.

mod act;
pub mod application;
pub mod argocd;
pub mod configure;
mod connect;
pub mod credentials;
pub mod criteria;
mod definitions;
mod deploy;
mod engine;
mod error;
pub mod evidence;
mod forecast;
mod forward;
mod generators;
mod graph;
mod hold;
mod lease;
pub mod names;
mod signals;
pub mod status;
mod watch;

pub use act::Actor;
pub use application::Application;
pub use connect::{Access, Place};
pub use criteria::Prober;
pub use deploy::{Check, Deploy, News};
pub use engine::Engine;
pub use error::{ClusterError, Kind};
pub use forecast::{Forecast, forecast};
pub use graph::{Before, DeployedApp, DeployedGraph, GraphStore};
pub use hold::Hold;
pub use lease::{Fence, Lease};
pub use signals::Signals;
