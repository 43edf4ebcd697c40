//! What goes on in the cluster between runs: the loop that deploys what Git has.
//!
//! May ask the API server, submit workflows, and note what it has seen. It deploys nothing itself: the
//! workflow that it submits does, under the platform's own account. What it does next is decided in
//! `tiphys_assess::deploy_loop`.

mod announce;
mod leader;
mod look;
mod platform;

pub use leader::{Said, deploy_loop};
