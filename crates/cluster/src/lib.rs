//! Reaching a Kubernetes cluster: the client, the kinds it knows, deletion, port forwarding, and
//! what a failed request means.
//!
//! May touch: the kubeconfig and the API server. Knows nothing of Argo CD or of runs.

pub mod access_review;
pub mod agent;
mod conflict;
mod connect;
pub mod crds;
pub mod delete;
mod dynamic;
mod encoded;
pub mod excerpt;
pub mod forward;
mod kinds;
mod kubeconfig;
mod lasting_watch;
mod layer;
pub mod names;
mod patient;
mod request;
mod run_workflow;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
pub mod stuck;
mod traced;
mod unreachable;
pub mod workload;

pub use conflict::FieldConflict;
pub use connect::{Access, ConnectError, Place, Target};
pub use dynamic::dynamic;
pub use encoded::encoded;
pub use kinds::{Kinds, Listed, ObjectName};
pub use kube::Client;
pub use kubeconfig::KubeconfigSource;
pub use lasting_watch::{LONGEST_GAP, lasting_watch};
pub use request::{Cause, RequestError, no_answer};
pub use run_workflow::RunWorkflow;
pub use traced::request_ended;
