//! Phase 1: what the platform stands on, from pinned manifests into the cluster.

mod found;

pub use found::{Found, found};
