//! Faults: what can go wrong, for one app or for all.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tiphys_model::{AppName, duration};

/// What goes wrong, where, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub target: FaultTarget,
    pub kind: FaultKind,
    /// Since the start of the run; without it, when the app (or the first of all) first syncs.
    pub at: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultTarget {
    App(AppName),
    /// Written `*`: the run as a whole.
    Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Every sync of the app fails.
    Refuse,
    /// The sync never ends.
    Hang,
    /// It becomes Degraded instead of Healthy.
    Degraded,
    /// It becomes Degraded after it was Healthy, and stays so.
    DegradeLater,
    /// It stays Progressing.
    NeverHealthy,
    /// It goes back and forth between Healthy and Degraded, then stays Healthy.
    Flap,
    /// The health from before the sync stays visible until a refresh.
    StaleHealth,
    /// Argo CD does not notice that it becomes Healthy, until a refresh.
    MissedHealth,
    /// Somebody else's operation replaces ours.
    Stolen,
    /// Its source moves on during the sync.
    RevisionMoved,
    /// It cannot be removed.
    StuckFinalizer,
    /// Argo CD cannot compare it with its source from now on.
    ComparisonError,
    /// Argo CD cannot compare it for less than a minute.
    BriefComparisonError,
    /// It stays OutOfSync, whatever is applied.
    OutOfSync,
    /// Its spec is invalid.
    InvalidSpec,
    /// Every request to sync it is refused.
    DenySync,
    /// The first request to hand it off is refused.
    DenyHandOff,
    /// Somebody deletes it and creates it again.
    Recreated,
    /// Its spec changes before it is applied: whoever generates it is late.
    SpecChanged,
    /// Argo CD begins an operation by itself, which the hold freezes.
    FrozenOperation,
    /// The watch falls silent for a while.
    LostWatch,
    /// Everything is told twice.
    DuplicateAnswer,
    /// Requests take long, and some answers are lost.
    SlowApi,
    /// The driver is killed and started again.
    Crash,
    /// Another run takes the platform.
    LeaseLost,
    /// Somebody lifts the hold for a few seconds.
    LiftedHold,
    /// Reads arrive late, and a list shows older versions and misses what is there.
    StaleReads,
}

impl FaultKind {
    pub const ALL: [FaultKind; 27] = [
        FaultKind::Refuse,
        FaultKind::Hang,
        FaultKind::Degraded,
        FaultKind::DegradeLater,
        FaultKind::NeverHealthy,
        FaultKind::Flap,
        FaultKind::StaleHealth,
        FaultKind::MissedHealth,
        FaultKind::Stolen,
        FaultKind::RevisionMoved,
        FaultKind::StuckFinalizer,
        FaultKind::ComparisonError,
        FaultKind::BriefComparisonError,
        FaultKind::OutOfSync,
        FaultKind::InvalidSpec,
        FaultKind::DenySync,
        FaultKind::DenyHandOff,
        FaultKind::Recreated,
        FaultKind::SpecChanged,
        FaultKind::FrozenOperation,
        FaultKind::LostWatch,
        FaultKind::DuplicateAnswer,
        FaultKind::SlowApi,
        FaultKind::Crash,
        FaultKind::LeaseLost,
        FaultKind::LiftedHold,
        FaultKind::StaleReads,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::Refuse => "refuse",
            FaultKind::Hang => "hang",
            FaultKind::Degraded => "degraded",
            FaultKind::DegradeLater => "degrade-later",
            FaultKind::NeverHealthy => "never-healthy",
            FaultKind::Flap => "flap",
            FaultKind::StaleHealth => "stale-health",
            FaultKind::MissedHealth => "missed-health",
            FaultKind::Stolen => "stolen",
            FaultKind::RevisionMoved => "revision-moved",
            FaultKind::StuckFinalizer => "stuck-finalizer",
            FaultKind::ComparisonError => "comparison-error",
            FaultKind::BriefComparisonError => "brief-comparison-error",
            FaultKind::OutOfSync => "out-of-sync",
            FaultKind::InvalidSpec => "invalid-spec",
            FaultKind::DenySync => "deny-sync",
            FaultKind::DenyHandOff => "deny-handoff",
            FaultKind::Recreated => "recreated",
            FaultKind::SpecChanged => "spec-changed",
            FaultKind::FrozenOperation => "frozen-operation",
            FaultKind::LostWatch => "lost-watch",
            FaultKind::DuplicateAnswer => "duplicate-answer",
            FaultKind::SlowApi => "slow-api",
            FaultKind::Crash => "crash",
            FaultKind::LeaseLost => "lease-lost",
            FaultKind::LiftedHold => "lifted-hold",
            FaultKind::StaleReads => "stale-reads",
        }
    }

    /// Whether it concerns the run as a whole instead of one app.
    #[must_use]
    pub fn is_of_the_run(self) -> bool {
        matches!(
            self,
            FaultKind::LostWatch
                | FaultKind::DuplicateAnswer
                | FaultKind::SlowApi
                | FaultKind::Crash
                | FaultKind::LeaseLost
                | FaultKind::LiftedHold
                | FaultKind::StaleReads
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    #[error("expected APP=KIND or APP=KIND@TIME")]
    Form,
    #[error("unknown fault `{0}`; expected one of: {known}", known = kinds())]
    Kind(String),
    #[error("invalid app name `{0}`")]
    App(String),
    #[error("`{0}` applies to the whole run: use `*={0}`")]
    WholeRun(&'static str),
    #[error("`{0}` applies to a single app: use `APP={0}`")]
    OneApp(&'static str),
    #[error("invalid time `{text}`: {why}")]
    Time { text: String, why: duration::DurationError },
}

fn kinds() -> String {
    FaultKind::ALL.map(FaultKind::as_str).join(", ")
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (target, rest) = text.split_once('=').ok_or(FaultError::Form)?;
        let (kind, at) = match rest.split_once('@') {
            Some((kind, time)) => {
                let why = |why| FaultError::Time { text: time.to_owned(), why };
                (kind, Some(duration::parse(time).map_err(why)?))
            }
            None => (rest, None),
        };
        let found = FaultKind::ALL.into_iter().find(|known| known.as_str() == kind);
        let kind = found.ok_or_else(|| FaultError::Kind(kind.to_owned()))?;
        let target = match (target, kind.is_of_the_run()) {
            ("*", true) => FaultTarget::Run,
            ("*", false) => return Err(FaultError::OneApp(kind.as_str())),
            (_, true) => return Err(FaultError::WholeRun(kind.as_str())),
            (name, false) => {
                let name = AppName::parse(name).map_err(|_| FaultError::App(name.to_owned()))?;
                FaultTarget::App(name)
            }
        };
        Ok(Fault { target, kind, at })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            FaultTarget::App(name) => write!(f, "{name}={}", self.kind.as_str())?,
            FaultTarget::Run => write!(f, "*={}", self.kind.as_str())?,
        }
        match self.at {
            Some(at) => write!(f, "@{}", duration::format(at)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        for text in ["ceph-cluster=degraded", "vault=hang@5m", "*=crash@1h2m3s", "*=slow-api"] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        let cases = [
            ("vault", FaultError::Form),
            ("vault=melt", FaultError::Kind("melt".into())),
            ("Vault=hang", FaultError::App("Vault".into())),
            ("vault=crash", FaultError::WholeRun("crash")),
            ("*=hang", FaultError::OneApp("hang")),
        ];
        for (text, why) in cases {
            assert_eq!(text.parse::<Fault>(), Err(why), "{text}");
        }
        assert!(matches!("a=hang@5".parse::<Fault>(), Err(FaultError::Time { .. })));
    }
}
