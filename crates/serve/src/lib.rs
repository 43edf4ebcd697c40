//! What goes on in the cluster between runs: the loop that deploys what Git has.
//!
//! May ask the API server, submit workflows, note what it has seen, and tell the Git server what became of
//! a commit. It deploys nothing itself: the
//! workflow that it submits does, under the platform's own account. What it does next is decided in
//! `tiphys_assess::deploy_loop`.

mod announce;
mod commits;
mod leader;
mod look;
mod named;
mod platform;
mod validate;

pub use leader::{Said, deploy_loop};
