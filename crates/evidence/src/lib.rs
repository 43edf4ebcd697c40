//! What runs behind an Application: whether it answers, and why it is not healthy.
//!
//! May read anything of an app through Argo CD's API and the API server, and open connections to
//! its Services. Writes nothing.

pub mod criteria;
mod witness;

pub use criteria::Prober;
pub use witness::{Found, Witness, narrate};
