//! Preflight, status, ownership and what the deploy loop does next: what was read, judged.
//!
//! Pure: nothing here reads anything. `tiphys-inspect` does that, and hands over values.

pub mod argocd_version;
pub mod deploy_loop;
pub mod ownership;
pub mod preflight;
pub mod status;
