//! What runs behind an Application: whether it answers, and why it is not healthy.
//!
//! May read anything of an app through Argo CD's API and the API server, and open connections to
//! its Services. Writes nothing.

mod collector;
pub mod criteria;

pub use collector::{Collected, EvidenceCollector, attach_evidence};
pub use criteria::Prober;
pub use tiphys_argocd::AppAddress;
