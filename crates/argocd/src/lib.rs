//! Argo CD as a run sees it and acts on it: Applications, the REST API, tokens, tracking.
//!
//! May touch: Applications, ApplicationSets and Secrets in Argo CD's namespace, and Argo CD's API
//! server. What an Application means is decided elsewhere: here it becomes an `Observation`.

pub mod app_project;
pub mod application;
pub mod application_set;
pub mod client;
pub mod credentials;
pub mod destination;
pub mod hooks;
pub mod installation;
pub mod messages;
mod refresh;
pub mod rest;
pub mod sync_windows;
pub mod tracking;
pub mod watch;

pub use application::Application;
pub use client::ArgoCdClient;
pub use destination::Destination;
