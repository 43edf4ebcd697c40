//! A real Kubernetes with real Argo CD on one Linux machine, from package registries only.
//!
//! Everything the lab starts is a process of its own that it knows again by id and start time.
//! Everything it writes lies in one folder ([`Home`]), but for what is expensive to make, which
//! is cached by the versions it was made from. Development only: nothing here is part of the
//! program that users run.

mod argocd;
mod artifacts;
pub mod audit;
mod certificates;
mod cluster;
mod command;
mod containers;
mod disk;
mod error;
mod events;
pub mod git;
mod gitea;
mod go;
mod home;
mod kubeconfig;
mod manifests;
mod mended;
pub mod packages;
mod ports;
mod primitives;
mod process;
pub mod repository;
mod teardown;
mod tools;
mod workflows;

pub use argocd::ArgoCdVersion;
pub use cluster::{Cluster, Registry, Status};
pub use containers::PAUSE_IMAGE;
pub use error::LabError;
pub use events::{NATS_ADDRESS, NATS_IMAGE};
pub use gitea::Gitea;
pub use home::Home;
pub use workflows::WorkflowsVersion;

/// Where Go keeps the source of an Argo CD that the lab runs.
pub fn argocd_source(version: ArgoCdVersion) -> Result<std::path::PathBuf, LabError> {
    let artifacts = artifacts::Artifacts::new(&Home::from_environment());
    artifacts.source(version.folder(), argocd::MODULE)
}
