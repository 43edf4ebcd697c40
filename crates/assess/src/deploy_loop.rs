//! What the deploy loop does next for a platform. It goes by what is so, not by what happened: what
//! Git has is compared with what is deployed, so no event can be lost, and a burst of commits is one
//! deployment.

pub mod commit;
pub mod outcome;
#[cfg(test)]
mod tests;
pub mod validation;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tiphys_model::deploy_policy::Opening;
use tiphys_model::{DeployMode, DeployPolicy};

/// How often a revision is tried.
pub const MOST_ATTEMPTS: u32 = 3;
/// How long the loop waits after the first attempt, and after the second.
const BACKOFF: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(300)];

/// What was read of a platform at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    pub now: Timestamp,
    /// As of the last deployment; `None`: there was none.
    pub policy: Option<&'a DeployPolicy>,
    pub git: &'a Git,
    /// Of the root app, in the last deployment of the whole platform, if that succeeded.
    pub deployed: Option<&'a str>,
    pub paused: bool,
    /// Who deploys or removes the platform now, or is about to.
    pub busy: Option<&'a str>,
    pub attempts: Option<&'a Attempts>,
    /// When the last of these attempts came to an end.
    pub ended: Option<Timestamp>,
}

/// What the root app shows of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Git {
    At(String),
    /// Nobody knows, and why.
    Unknown(String),
}

/// How often the loop has tried to deploy a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempts {
    pub revision: String,
    pub count: u32,
    /// The workflow of the last one, and when it was submitted.
    pub workflow: String,
    pub at: Timestamp,
}

/// Somebody has stopped automatic deployments for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// As the API server knows them.
    pub by: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What the loop found when it looked last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenByLoop {
    pub at: Timestamp,
    /// Which process.
    pub by: String,
    pub next: Next,
    /// The newest revision that it has seen come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<News>,
}

/// A revision that Git did not have when the loop looked before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    pub revision: String,
    pub at: Timestamp,
}

impl SeenByLoop {
    #[must_use]
    pub fn new(at: Timestamp, by: &str, next: Next, before: Option<&SeenByLoop>) -> Self {
        let was = before.and_then(|before| before.next.revision());
        let news = match (was, next.revision()) {
            (Some(was), Some(is)) if was != is => Some(News { revision: is.to_owned(), at }),
            _ => before.and_then(|before| before.news.clone()),
        };
        SeenByLoop { at, by: by.to_owned(), next, news }
    }
}

/// What it does next, or why it does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Next {
    /// The first deployment is a person's.
    NeverDeployed,
    /// The platform file does not say `automatic`.
    Manual,
    /// It is not known what Git has.
    Unknown {
        why: String,
    },
    UpToDate {
        revision: String,
    },
    Paused {
        revision: String,
    },
    /// Somebody deploys or removes the platform.
    Busy {
        revision: String,
        by: String,
    },
    /// All attempts at this revision have failed. The next revision is tried at once.
    GaveUp {
        revision: String,
        attempts: u32,
    },
    BackOff {
        revision: String,
        attempts: u32,
        until: Timestamp,
    },
    /// No window is open.
    Closed {
        revision: String,
        until: Option<Timestamp>,
    },
    Deploy {
        revision: String,
        attempt: u32,
    },
}

impl Next {
    /// What Git has, where that is known.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        match self {
            Next::NeverDeployed | Next::Manual | Next::Unknown { .. } => None,
            Next::UpToDate { revision }
            | Next::Paused { revision }
            | Next::Busy { revision, .. }
            | Next::GaveUp { revision, .. }
            | Next::BackOff { revision, .. }
            | Next::Closed { revision, .. }
            | Next::Deploy { revision, .. } => Some(revision),
        }
    }

    #[must_use]
    pub fn of(look: Look<'_>) -> Self {
        let Some(policy) = look.policy else { return Next::NeverDeployed };
        if policy.mode == DeployMode::Manual {
            return Next::Manual;
        }
        let revision = match look.git {
            Git::Unknown(why) => return Next::Unknown { why: why.clone() },
            Git::At(revision) => revision.clone(),
        };
        if look.deployed == Some(&*revision) {
            return Next::UpToDate { revision };
        }
        if look.paused {
            return Next::Paused { revision };
        }
        if let Some(by) = look.busy {
            return Next::Busy { revision, by: by.to_owned() };
        }
        let before = look.attempts.filter(|attempts| attempts.revision == revision);
        let attempts = before.map_or(0, |attempts| attempts.count);
        if attempts >= MOST_ATTEMPTS {
            return Next::GaveUp { revision, attempts };
        }
        if let Some(before) = before {
            let until = look.ended.unwrap_or(before.at).max(before.at) + backoff(before.count);
            if look.now < until {
                return Next::BackOff { revision, attempts, until };
            }
        }
        match policy.opening(look.now) {
            Opening::Open => Next::Deploy { revision, attempt: attempts + 1 },
            Opening::Closed { until } => Next::Closed { revision, until },
        }
    }
}

fn backoff(attempts: u32) -> Duration {
    let at = usize::try_from(attempts).unwrap_or(usize::MAX).saturating_sub(1);
    BACKOFF[at.min(BACKOFF.len() - 1)]
}

/// A commit is known by its beginning.
#[must_use]
pub fn short(revision: &str) -> &str {
    let is_commit = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_commit { &revision[..12] } else { revision }
}

/// As it is said to people.
impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Next::NeverDeployed => {
                f.write_str("waiting for the first deployment, which a person starts")
            }
            Next::Manual => {
                f.write_str("off: the deployed platform file does not say `deploy: automatic`")
            }
            Next::Unknown { why } => write!(f, "cannot tell what Git has: {why}"),
            Next::UpToDate { revision } => write!(f, "{} is deployed", short(revision)),
            Next::Paused { revision } => write!(f, "paused; {} is not deployed", short(revision)),
            Next::Busy { revision, by } => {
                write!(f, "{} is not deployed yet; in progress: {by}", short(revision))
            }
            Next::GaveUp { revision, attempts } => write!(
                f,
                "gave up on {} after {attempts} attempts; the next commit is tried at once",
                short(revision),
            ),
            Next::BackOff { revision, attempts, until } => write!(
                f,
                "attempt {attempts} at {} ended without success; next attempt at {until:.0}",
                short(revision),
            ),
            Next::Closed { revision, until: Some(until) } => {
                write!(
                    f,
                    "{} is not deployed; the next window opens at {until:.0}",
                    short(revision)
                )
            }
            Next::Closed { revision, until: None } => {
                write!(f, "{} is not deployed; no window opens", short(revision))
            }
            Next::Deploy { revision, attempt: 1 } => write!(f, "deploying {}", short(revision)),
            Next::Deploy { revision, attempt } => {
                write!(f, "deploying {}, attempt {attempt} of {MOST_ATTEMPTS}", short(revision))
            }
        }
    }
}
