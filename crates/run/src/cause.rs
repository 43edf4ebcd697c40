//! Why a step did not get done, in a person's words, and what to do next.

use std::fmt;
use std::sync::Arc;

use tiphys_model::{AppName, Health};

use crate::gate::Missing;
use crate::observation::{Drifted, Revisions};

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
    /// The source had other revisions by the end of the sync.
    RevisionMoved {
        from: Revisions,
        to: Revisions,
    },
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
    Deadline {
        before: Pending,
    },
    /// It was Done, and is not Healthy when the run ends.
    TurnedUnhealthy {
        health: Health,
        message: Option<Arc<str>>,
    },
    /// It was removed, and exists when the run ends.
    CreatedAgain,
}

/// What a step waited for when the run's deadline passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// An answer to the sync request; why the last one did not come.
    Answer { message: Arc<str> },
    /// The end of the sync.
    Sync,
    /// The gate, and what it was missing.
    Gate { missing: Option<Missing> },
    /// The next attempt.
    Attempt,
    /// The next attempt, which somebody else's operation kept from starting.
    ForeignOperation { by: Arc<str> },
    /// The end of its removal.
    Removal { finalizers: Vec<Arc<str>> },
}

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pending::Answer { message } => {
                write!(f, "Argo CD answered the sync request: {message}")
            }
            Pending::Sync => f.write_str("its sync finished"),
            Pending::Gate { missing: Some(missing) } => write!(f, "it was done: {missing}"),
            Pending::Gate { missing: None } => f.write_str("it was done"),
            Pending::Attempt => f.write_str("its next attempt"),
            Pending::ForeignOperation { by } => {
                write!(f, "its next attempt, which waited for an operation of {by}")
            }
            Pending::Removal { finalizers } if finalizers.is_empty() => {
                f.write_str("it was removed")
            }
            Pending::Removal { finalizers } => {
                write!(f, "it was removed: waiting for {}", finalizers.join(", "))
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::OperationFailed { message } => write!(f, "the sync failed: {message}"),
            Cause::Stolen { by } => write!(f, "an operation of {by} replaced the sync of this run"),
            Cause::ForeignOperation { by } => {
                write!(f, "an operation of {by} did not end before the sync timeout")
            }
            Cause::RevisionMoved { from, to } => {
                write!(f, "its source moved from {from} to {to} during the sync")
            }
            Cause::InvalidSpec { message } => write!(f, "its spec is invalid: {message}"),
            Cause::Comparison { message } => {
                write!(f, "Argo CD cannot compare it with its source: {message}")
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
            Cause::NoApplication => f.write_str("Application not found"),
            Cause::BeingDeleted => f.write_str("it is being deleted"),
            Cause::UnhealthyOutside { health } => {
                write!(f, "it is outside the scope and {health}")
            }
            Cause::DependantOutside => {
                f.write_str("it is outside the scope and depends on an app to be removed")
            }
            Cause::Refused { message } => write!(f, "Argo CD refused the request: {message}"),
            Cause::Unreachable { message } => write!(f, "cannot reach Argo CD: {message}"),
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
            Cause::Deadline { before } => write!(f, "the run's deadline passed before {before}"),
            Cause::TurnedUnhealthy { health, message: Some(message) } => {
                write!(f, "it was done, then became {health}: {message}")
            }
            Cause::TurnedUnhealthy { health, message: None } => {
                write!(f, "it was done, then became {health}")
            }
            Cause::CreatedAgain => f.write_str("it was removed, then created again"),
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
                format!("make sure that {by} does not sync {app} during the run, then run again")
            }
            Cause::RevisionMoved { .. } => format!(
                "set targetRevision of {app} to a commit or an exact version, then run again: it \
                 resumes here"
            ),
            Cause::InvalidSpec { .. } => format!("correct the Application {app} in Git"),
            Cause::Comparison { .. } => {
                format!(
                    "check that the source of {app} exists and renders, and that Argo CD reaches \
                     its cluster; then run again"
                )
            }
            Cause::Degraded { .. } | Cause::HealthTimeout { .. } => {
                format!(
                    "check the resources of {app}; once they are healthy, run again: it resumes \
                     here"
                )
            }
            Cause::OutOfSync { .. } => format!(
                "find out what changes these resources, or list them under tolerateDrift of {app}"
            ),
            Cause::SyncTimeout => {
                format!("check what the sync of {app} waits for, or raise its timeouts.sync")
            }
            Cause::NoApplication => format!("check that the root app creates {app}"),
            Cause::BeingDeleted => format!("wait until {app} is gone, then run again"),
            Cause::UnhealthyOutside { .. } => {
                format!("fix {app}, or widen the scope so that it is deployed too")
            }
            Cause::DependantOutside => {
                format!("remove {app} first, or widen the scope so that it is removed too")
            }
            Cause::Refused { .. } => {
                "check the message above and the rights of the automation account".to_owned()
            }
            Cause::Unreachable { .. } => {
                "check the connection to Argo CD, then run again".to_owned()
            }
            Cause::StuckDeletion { .. } => {
                format!(
                    "check which controller should remove the finalizers of {app}, then run again"
                )
            }
            Cause::Deadline { .. } => {
                "run again to resume; if it needs longer, raise --timeout or spec.timeout"
                    .to_owned()
            }
            Cause::TurnedUnhealthy { .. } => {
                format!("fix {app} (`tiphys why {app}` shows its state), then run again")
            }
            Cause::CreatedAgain => format!("find out what creates {app} again, then run again"),
        }
    }
}
