//! What one look at an Application shows: all that the gate may base its verdict on.

use std::fmt;
use std::sync::Arc;

use tiphys_model::{Health, OperationId, SyncStatus};

use crate::time::Stamp;

/// An Application as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The object's resourceVersion: a look with a smaller one is older news.
    pub version: u64,
    /// The cluster that it is deployed to, unless it is the one that Argo CD runs in.
    pub cluster: Option<Arc<str>>,
    /// It is being deleted; what holds it back.
    pub deleting: Option<Deleting>,
    /// `.operation`: requested or in progress.
    pub operation: Option<Operation>,
    /// `.status.operationState`: the last operation, which may still be running.
    pub last: Option<LastOperation>,
    pub reconciled_at: Option<Stamp>,
    /// `.status.sync.comparedTo` is what `.spec` says now.
    pub compared_to_spec: bool,
    /// What the spec's revisions resolved to in the last comparison.
    pub revisions: Revisions,
    /// The spec names these very revisions. Otherwise it names a branch, a tag or a range, which
    /// may be somewhere else by the time of a sync, and no sync may ask for a revision.
    pub pinned: bool,
    pub sync: SyncStatus,
    /// The resources that are not as they should be.
    pub drifted: Vec<Drifted>,
    pub health: Health,
    pub health_message: Option<Arc<str>>,
    pub conditions: Vec<Condition>,
    /// Resources whose controller has not seen their newest generation, of kinds whose health
    /// check does not look at it.
    pub lagging: Vec<Arc<str>>,
    /// The extra health criteria that do not hold, each with what was found instead.
    pub unmet: Vec<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleting {
    pub since: Stamp,
    pub finalizers: Vec<Arc<str>>,
}

/// Revisions, one for each source of the Application.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Revisions(pub Arc<[Arc<str>]>);

impl fmt::Display for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Ours carry an id; others do not, or carry somebody else's.
    pub id: Option<OperationId>,
    /// Who asked for it.
    pub by: Initiator,
}

/// Who started an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initiator {
    /// Argo CD itself: nobody asked for it.
    Automated,
    /// A user or an account.
    Named(Arc<str>),
    /// Somebody, but the Application does not say who.
    Unnamed,
}

impl From<&str> for Initiator {
    fn from(name: &str) -> Self {
        Initiator::Named(name.into())
    }
}

/// What people read of it.
impl From<Initiator> for Arc<str> {
    fn from(initiator: Initiator) -> Self {
        initiator.to_string().into()
    }
}

impl fmt::Display for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Initiator::Automated => f.write_str("Argo CD's automated sync"),
            Initiator::Named(name) => f.write_str(name),
            Initiator::Unnamed => f.write_str("an unknown user"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastOperation {
    pub operation: Operation,
    pub phase: OperationPhase,
    /// Also set while a retry is awaited with phase Running: no sign of an end.
    pub finished_at: Option<Stamp>,
    /// What was applied, once known.
    pub revisions: Revisions,
    pub message: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationPhase {
    Running,
    Terminating,
    Succeeded,
    Failed,
    Error,
}

impl OperationPhase {
    /// Whether the operation has ended, well or not.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            OperationPhase::Running | OperationPhase::Terminating => false,
            OperationPhase::Succeeded | OperationPhase::Failed | OperationPhase::Error => true,
        }
    }
}

/// A resource that is not as the source says, and in which fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drifted {
    /// `Kind/name`, as in `tolerateDrift`.
    pub resource: Arc<str>,
    pub fields: Vec<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: ConditionKind,
    pub message: Arc<str>,
}

/// The conditions that the gate knows; others are left out of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionKind {
    InvalidSpec,
    Comparison,
    Unknown,
    /// Ignored: Argo CD does not rewrite it while automated sync is held.
    Sync,
}

impl Observation {
    /// An Application that Argo CD has compared once and nobody has synced.
    #[must_use]
    pub fn unsynced(version: u64, revisions: Revisions, reconciled_at: Stamp) -> Self {
        Observation {
            version,
            cluster: None,
            deleting: None,
            operation: None,
            last: None,
            reconciled_at: Some(reconciled_at),
            compared_to_spec: true,
            revisions,
            pinned: true,
            sync: SyncStatus::OutOfSync,
            drifted: Vec::new(),
            health: Health::Missing,
            health_message: None,
            conditions: Vec::new(),
            lagging: Vec::new(),
            unmet: Vec::new(),
        }
    }

    /// Argo CD's verdict and the extra criteria in one word. What does not hold of them may be on
    /// its way.
    #[must_use]
    pub fn health_in_full(&self) -> Health {
        match self.health {
            Health::Healthy if !self.unmet.is_empty() => Health::Progressing,
            health => health,
        }
    }

    /// The condition of one of the kinds, if there is one.
    pub(crate) fn condition(&self, kinds: &[ConditionKind]) -> Option<&Condition> {
        self.conditions.iter().find(|condition| kinds.contains(&condition.kind))
    }

    /// What drifted and is not tolerated.
    pub fn untolerated<'a>(&'a self, tolerated: &'a [String]) -> impl Iterator<Item = &'a Drifted> {
        let tolerated = move |drifted: &&Drifted| {
            !tolerated.iter().any(|resource| *resource == *drifted.resource)
        };
        self.drifted.iter().filter(tolerated)
    }

    /// Synced, but for what may stay out of sync.
    #[must_use]
    pub fn is_synced(&self, tolerated: &[String]) -> bool {
        match self.sync {
            SyncStatus::Synced => true,
            SyncStatus::OutOfSync => {
                !self.drifted.is_empty() && self.untolerated(tolerated).next().is_none()
            }
            SyncStatus::Unknown => false,
        }
    }
}
