//! Health and sync status, in Argo CD's words.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// From best to worst: an app is as healthy as its worst resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Health {
    Healthy,
    Suspended,
    Progressing,
    Missing,
    Degraded,
    Unknown,
}

impl Health {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Healthy => "Healthy",
            Health::Suspended => "Suspended",
            Health::Progressing => "Progressing",
            Health::Missing => "Missing",
            Health::Degraded => "Degraded",
            Health::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown Argo CD health status")]
pub struct NotAHealth;

impl FromStr for Health {
    type Err = NotAHealth;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = [
            Health::Healthy,
            Health::Suspended,
            Health::Progressing,
            Health::Missing,
            Health::Degraded,
            Health::Unknown,
        ];
        known.into_iter().find(|health| health.as_str() == text).ok_or(NotAHealth)
    }
}

/// Whether the live resources are what the source says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum SyncStatus {
    Synced,
    OutOfSync,
    Unknown,
}

impl SyncStatus {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SyncStatus::Synced => "Synced",
            SyncStatus::OutOfSync => "OutOfSync",
            SyncStatus::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for SyncStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
