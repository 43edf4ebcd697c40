//! Why a step did not get done, in a person's words, and what to do next.

use std::fmt;
use std::sync::Arc;

use tiphys_model::{AppName, Health};

use crate::gate::Missing;
use crate::observation::Drifted;

/// Why an attempt or a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The operation ended badly.
    OperationFailed {
        message: Arc<str>,
    },
    /// Somebody else's operation took the place of ours.
    Stolen {
        by: Arc<str>,
    },
    /// Somebody else's operation ran longer than the sync timeout.
    ForeignOperation {
        by: Arc<str>,
    },
    /// The source moved on each time it was synced.
    RevisionMoved,
    /// The Application's spec is invalid.
    InvalidSpec {
        message: Arc<str>,
    },
    /// Argo CD cannot compare the Application with its source.
    Comparison {
        message: Arc<str>,
    },
    Degraded {
        message: Option<Arc<str>>,
    },
    /// Applied, and still not as the source says.
    OutOfSync {
        drifted: Vec<Drifted>,
    },
    /// The operation did not end in time.
    SyncTimeout,
    /// The gate did not open in time.
    HealthTimeout {
        missing: Option<Missing>,
    },
    /// There is no such Application.
    NoApplication,
    /// The Application is being deleted.
    BeingDeleted,
    /// It lies outside the scope and is not Healthy.
    UnhealthyOutside {
        health: Health,
    },
    /// It lies outside the scope of a teardown, and depends on what is to be removed.
    DependantOutside,
    /// Argo CD said no to the request.
    Refused {
        message: Arc<str>,
    },
    /// No request got through.
    Unreachable {
        message: Arc<str>,
    },
    /// It did not go away in time.
    StuckDeletion {
        finalizers: Vec<Arc<str>>,
    },
    /// The run's own deadline passed.
    Deadline,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::OperationFailed { message } => write!(f, "the sync failed: {message}"),
            Cause::Stolen { by } => write!(f, "an operation of {by} replaced ours"),
            Cause::ForeignOperation { by } => {
                write!(f, "an operation of {by} did not end before the sync timeout")
            }
            Cause::RevisionMoved => f.write_str("its source moved on during every attempt"),
            Cause::InvalidSpec { message } => write!(f, "its spec is invalid: {message}"),
            Cause::Comparison { message } => {
                write!(f, "it cannot be compared with its source: {message}")
            }
            Cause::Degraded { message: Some(message) } => write!(f, "it is Degraded: {message}"),
            Cause::Degraded { message: None } => f.write_str("it is Degraded"),
            Cause::OutOfSync { drifted } => {
                let names: Vec<&str> = drifted.iter().map(|d| &*d.resource).collect();
                write!(f, "still OutOfSync after the sync: {}", names.join(", "))
            }
            Cause::SyncTimeout => f.write_str("the sync did not end before the sync timeout"),
            Cause::HealthTimeout { missing: Some(missing) } => {
                write!(f, "not Healthy before the health timeout: {missing}")
            }
            Cause::HealthTimeout { missing: None } => {
                f.write_str("not Healthy before the health timeout")
            }
            Cause::NoApplication => f.write_str("there is no such Application"),
            Cause::BeingDeleted => f.write_str("it is being deleted"),
            Cause::UnhealthyOutside { health } => {
                write!(f, "it lies outside the scope and is {health}")
            }
            Cause::DependantOutside => {
                f.write_str("it lies outside the scope and depends on what is to be removed")
            }
            Cause::Refused { message } => write!(f, "Argo CD refused the request: {message}"),
            Cause::Unreachable { message } => write!(f, "no request got through: {message}"),
            Cause::StuckDeletion { finalizers } if finalizers.is_empty() => {
                f.write_str("it was not removed before the timeout")
            }
            Cause::StuckDeletion { finalizers } => {
                write!(
                    f,
                    "it was not removed before the timeout: waiting for {}",
                    finalizers.join(", ")
                )
            }
            Cause::Deadline => f.write_str("the run's deadline passed"),
        }
    }
}

impl Cause {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self, app: &AppName) -> String {
        match self {
            Cause::OperationFailed { .. } => {
                format!("correct the manifests of {app} in Git, then run again: it resumes here")
            }
            Cause::Stolen { by } | Cause::ForeignOperation { by } => {
                format!("ask {by} to leave {app} to the run, then run again")
            }
            Cause::RevisionMoved => {
                format!("pin {app} to a revision that does not move, then run again")
            }
            Cause::InvalidSpec { .. } => format!("correct the Application {app} in Git"),
            Cause::Comparison { .. } => {
                format!("check that the source of {app} exists and renders, then run again")
            }
            Cause::Degraded { .. } | Cause::HealthTimeout { .. } => {
                format!(
                    "look at the resources of {app}; once they are well, run again: it resumes here"
                )
            }
            Cause::OutOfSync { .. } => format!(
                "find out what changes these resources, or list them under tolerateDrift of {app}"
            ),
            Cause::SyncTimeout => {
                format!("see what the sync of {app} waits for, or give it a longer timeouts.sync")
            }
            Cause::NoApplication => format!("check that the root app creates {app}"),
            Cause::BeingDeleted => format!("wait until {app} is gone, then run again"),
            Cause::UnhealthyOutside { .. } => {
                format!("repair {app}, or widen the scope so that it is deployed too")
            }
            Cause::DependantOutside => {
                format!("remove {app} first, or widen the scope so that it is removed too")
            }
            Cause::Refused { .. } => {
                "check the rights of the automation account and the message above".to_owned()
            }
            Cause::Unreachable { .. } => {
                "check the connection to Argo CD, then run again".to_owned()
            }
            Cause::StuckDeletion { .. } => {
                format!("see what should remove the finalizers of {app}, then run again")
            }
            Cause::Deadline => "give the run a longer timeout, or run again: it resumes".to_owned(),
        }
    }
}
