//! Records of runs: what the event log of each said, for who comes later. Nothing is ever decided from
//! them, and a run neither waits for them nor fails with them.
//!
//! A run has a head, which is small and says how it is going, and segments with the lines, which
//! are written once. All are ConfigMaps in our own namespace: those of Argo CD wake it.

mod buffer;
mod head;
mod keeper;
mod store;

pub use head::RunHead;
pub use keeper::{Unkept, keep};
pub use store::{Found, RecordStore};
