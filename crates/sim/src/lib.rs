//! A simulated platform in virtual time, and the laws that every run must keep.
//!
//! It behaves like Argo CD in what the gate can see: which fields are written together and in
//! which order, how old health can be, stamps of whole seconds, refreshes, operations that are
//! replaced, watches that fall silent. Time is a number that jumps from one happening to the
//! next; all chance comes from one seed, so the same seed gives the same log, byte for byte.
//!
//! What it does not model stands in `docs/rehearse.md`. That is for the real cluster.

mod application;
mod chance;
mod controller;
mod engine;
mod fault;
pub mod generate;
mod laws;
mod objects;
mod soak;

pub use application::Lifecycle;
pub use chance::Chance;
pub use controller::Fact;
pub use engine::{Crash, Recorded, Simulation, Stop};
pub use fault::{Fault, FaultError, FaultKind, FaultTarget};
pub use laws::{Broken, Law, Part, check};
pub use soak::{Finding, Scenario, run_seed, shrink};
