//! Phase 1: what the platform stands on, from pinned manifests into the cluster.

mod found;
mod render;

pub use found::{Found, found};
pub use render::{Given, RenderError, Rendered, Stage, render};
