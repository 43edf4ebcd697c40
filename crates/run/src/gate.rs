//! The gate: what must hold before a step is Done. Pure functions over one observation.
//!
//! Argo CD clears `operation` and writes `phase: Succeeded` *before* it assesses health again,
//! and its stamps have whole seconds. So "Succeeded and Healthy" proves nothing: the health may
//! be that of the state before the sync. The gate therefore asks seven questions, in this order:
//!
//! 1. Has the operation with our id ended, and is no other under way?
//! 2. Did it apply the revisions of the run?
//! 3. Was health assessed after it ended?
//! 4. Was the comparison made with the current spec, and is the app Synced?
//! 5. Is it Healthy?
//! 6. Have the controllers of its resources seen their newest generation?
//! 7. Do the extra health criteria hold?
//!
//! The simulated platform and the real engines use these same functions.

mod applied;
mod start;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use tiphys_model::Health;

use crate::cause::Cause;
use crate::observation::{ConditionKind, Drifted, Observation};

pub use applied::{Applied, Expectation, OperationProgress, applied, operation};
pub use start::{Start, start};

/// What the gate still waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Health may be older than the operation.
    Assessment,
    /// The last comparison was made with another spec.
    Comparison,
    /// Not (yet) as the source says.
    OutOfSync,
    Health(Health),
    /// A controller has not seen the newest generation of a resource.
    Generation {
        resource: Arc<str>,
    },
    /// An extra health criterion.
    Criterion {
        unmet: Arc<str>,
    },
}

impl Missing {
    /// Whether a refresh can bring it about; the rest takes the app's own time.
    #[must_use]
    pub fn wants_refresh(&self) -> bool {
        match self {
            Missing::Assessment | Missing::Comparison | Missing::OutOfSync => true,
            Missing::Health(_) | Missing::Generation { .. } | Missing::Criterion { .. } => false,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Assessment => f.write_str("its health has not been assessed since the sync"),
            Missing::Comparison => f.write_str("it has not been compared with its current spec"),
            Missing::OutOfSync => f.write_str("it is OutOfSync"),
            Missing::Health(health) => write!(f, "it is {health}"),
            Missing::Generation { resource } => {
                write!(f, "the newest generation of {resource} has not been observed")
            }
            Missing::Criterion { unmet } => f.write_str(unmet),
        }
    }
}

/// What is wrong now, and is a failure if it stays so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspicion {
    Comparison {
        message: Arc<str>,
    },
    Degraded {
        message: Option<Arc<str>>,
    },
    /// After our operation and a refresh. Argo CD compares with a copy of the cluster that may be
    /// older than the operation, so once proves nothing.
    OutOfSync {
        drifted: Vec<Drifted>,
    },
}

impl Suspicion {
    /// Whether it is the same trouble, whatever its message says by now.
    #[must_use]
    pub fn is_same(&self, other: &Suspicion) -> bool {
        matches!(
            (self, other),
            (Suspicion::Comparison { .. }, Suspicion::Comparison { .. })
                | (Suspicion::Degraded { .. }, Suspicion::Degraded { .. })
                | (Suspicion::OutOfSync { .. }, Suspicion::OutOfSync { .. })
        )
    }

    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Suspicion::Comparison { message } => Cause::Comparison { message: message.clone() },
            Suspicion::Degraded { message } => Cause::Degraded { message: message.clone() },
            Suspicion::OutOfSync { drifted } => Cause::OutOfSync { drifted: drifted.clone() },
        }
    }
}

/// What makes every further question useless.
#[must_use]
pub fn hopeless(seen: &Observation) -> Option<Cause> {
    if seen.deleting.is_some() {
        return Some(Cause::BeingDeleted);
    }
    let condition = seen.condition(&[ConditionKind::InvalidSpec])?;
    Some(Cause::InvalidSpec { message: condition.message.clone() })
}

/// Questions 4 to 7, which an app that was synced and one that need not be have in common.
#[must_use]
pub fn missing(seen: &Observation, tolerated: &[String]) -> Option<Missing> {
    if !seen.compared_to_spec {
        return Some(Missing::Comparison);
    }
    if !seen.is_synced(tolerated) {
        return Some(Missing::OutOfSync);
    }
    if seen.health != Health::Healthy {
        return Some(Missing::Health(seen.health));
    }
    if let Some(resource) = seen.lagging.first() {
        return Some(Missing::Generation { resource: resource.clone() });
    }
    seen.unmet.first().map(|unmet| Missing::Criterion { unmet: unmet.clone() })
}

/// Whether questions 4 and 5 are answered with yes, so that it is time for those which take a
/// closer look.
#[must_use]
pub fn is_ripe(seen: &Observation, tolerated: &[String]) -> bool {
    let done = seen.compared_to_spec && seen.is_synced(tolerated);
    done && seen.health == Health::Healthy && seen.operation.is_none()
}

#[must_use]
pub fn comparison_trouble(seen: &Observation) -> Option<Suspicion> {
    let kinds = [ConditionKind::Comparison, ConditionKind::Unknown];
    let condition = seen.condition(&kinds)?;
    Some(Suspicion::Comparison { message: condition.message.clone() })
}
