//! Preflight, status and ownership: what was read of a cluster and its surroundings, judged.
//!
//! Pure: nothing here reads anything. `tiphys-inspect` does that, and hands over values.

pub mod argocd_version;
pub mod ownership;
pub mod preflight;
pub mod status;
