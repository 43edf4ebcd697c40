//! Argo CD as a run sees it and acts on it: Applications, the REST API, tokens, tracking.
//!
//! May touch: Applications, ApplicationSets and Secrets in Argo CD's namespace, Applications in the
//! other namespaces of a platform, and Argo CD's API server. What an Application means is decided elsewhere: here it becomes an `Observation`.

mod address;
pub mod app_project;
pub mod application;
pub mod application_set;
mod applications;
pub mod client;
pub mod credentials;
pub mod destination;
pub mod hooks;
pub mod installation;
pub mod messages;
pub mod platform_file;
mod refresh;
pub mod rest;
pub mod sync_windows;
pub mod tracking;
pub mod watch;

pub use address::AppAddress;
pub use application::Application;
pub use applications::{Applications, Namesakes};
pub use client::ArgoCdClient;
pub use destination::Destination;
