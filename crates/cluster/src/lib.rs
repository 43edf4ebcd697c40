//! Argo CD and Kubernetes: what is seen of them, and what is asked of them.
//!
//! Decisions are not made here: what is seen becomes the core's observations, and what the core
//! asks for becomes requests.

mod act;
mod agent;
pub mod application;
pub mod argocd;
mod belongings;
pub mod bootstrap;
pub mod configure;
mod conflict;
mod connect;
mod crds;
pub mod credentials;
pub mod criteria;
mod definitions;
mod delete;
mod deploy;
mod encoded;
mod engine;
mod error;
pub mod evidence;
mod forecast;
mod forward;
mod generators;
mod graph;
mod hold;
mod https;
mod kinds;
mod lease;
pub mod mounted;
pub mod names;
mod news;
pub mod preflight;
mod registry;
mod signals;
pub mod status;
mod teardown;
mod tracking;
mod watch;
mod workload;

pub use act::Actor;
pub use application::Application;
pub use connect::{Access, Place};
pub use criteria::Prober;
pub use deploy::{Check, Deploy};
pub use engine::Engine;
pub use error::{ClusterError, Kind};
pub use forecast::{Forecast, forecast};
pub use graph::{DeployedApp, DeployedGraph, GraphStore, Names};
pub use hold::Hold;
pub use kinds::ObjectName;
pub use kube::Client;
pub use lease::{Fence, Lease};
pub use news::News;
pub use signals::Signals;
pub use teardown::{Extent, Forced, Leftover, Teardown, TornDown, Wishes};
