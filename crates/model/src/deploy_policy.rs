//! Who starts the deployments of a platform, and when a deployment may start without a person.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::commit_status::CommitStatus;
use crate::cron::{Cron, CronError};
use crate::duration;

/// Who starts deployments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeployMode {
    /// People and pipelines.
    #[default]
    Manual,
    /// The deploy loop too, whenever Git has a new revision.
    Automatic,
}

impl DeployMode {
    pub const ALL: [DeployMode; 2] = [DeployMode::Manual, DeployMode::Automatic];

    /// As platform files write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            DeployMode::Manual => "manual",
            DeployMode::Automatic => "automatic",
        }
    }
}

/// `spec.deploy`. No part of a plan: a deployment is the same whoever starts it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeployPolicy {
    pub mode: DeployMode,
    /// The deploy loop starts deployments only while one of these is open; without any, always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<AllowWindow>,
    /// Where commits show what became of their deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status: Option<CommitStatus>,
}

impl DeployPolicy {
    /// Whether the loop may start a deployment now; if not, when it may next, if ever.
    #[must_use]
    pub fn opening(&self, now: Timestamp) -> Opening {
        if self.allow.is_empty() || self.allow.iter().any(|window| window.is_open(now)) {
            return Opening::Open;
        }
        Opening::Closed { until: self.allow.iter().filter_map(|window| window.next(now)).min() }
    }
}

/// Whether it is time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    Open,
    Closed { until: Option<Timestamp> },
}

/// A time in which deployments may start, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct AllowWindow {
    opens: Cron,
    duration: Duration,
}

/// As it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    schedule: String,
    duration_seconds: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
}

impl AllowWindow {
    #[must_use]
    pub fn new(opens: Cron, duration: Duration) -> Self {
        AllowWindow { opens, duration }
    }

    fn is_open(&self, now: Timestamp) -> bool {
        self.opens.began_within(self.duration, now)
    }

    /// When it opens next.
    fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.opens.next(now)
    }
}

impl TryFrom<Raw> for AllowWindow {
    type Error = CronError;

    fn try_from(raw: Raw) -> Result<Self, CronError> {
        let opens = Cron::new(&raw.schedule, raw.time_zone.as_deref())?;
        Ok(AllowWindow { opens, duration: Duration::from_secs(raw.duration_seconds) })
    }
}

impl From<AllowWindow> for Raw {
    fn from(window: AllowWindow) -> Self {
        Raw {
            schedule: window.opens.text().to_owned(),
            duration_seconds: window.duration.as_secs(),
            time_zone: window.opens.time_zone().map(str::to_owned),
        }
    }
}

impl fmt::Display for AllowWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` for {}", self.opens.text(), duration::format(self.duration))?;
        match self.opens.time_zone() {
            Some(zone) => write!(f, " {zone}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    fn policy(windows: &[(&str, u64, Option<&str>)]) -> DeployPolicy {
        let window = |(schedule, hours, zone): &(&str, u64, Option<&str>)| {
            AllowWindow::new(Cron::new(schedule, *zone).unwrap(), Duration::from_secs(hours * 3600))
        };
        DeployPolicy {
            mode: DeployMode::Automatic,
            allow: windows.iter().map(window).collect(),
            ..DeployPolicy::default()
        }
    }

    #[test]
    fn without_windows_it_is_always_time() {
        assert_eq!(policy(&[]).opening(at("2026-11-19T03:00:00Z")), Opening::Open);
    }

    #[test]
    fn one_open_window_is_enough_and_the_next_one_is_known() {
        // A Thursday.
        let policy =
            policy(&[("0 22 * * mon-fri", 2, Some("Europe/Berlin")), ("0 6 * * sat", 1, None)]);
        for (now, expected) in [
            ("2026-11-19T20:59:00Z", Opening::Closed { until: Some(at("2026-11-19T21:00:00Z")) }),
            ("2026-11-19T21:30:00Z", Opening::Open),
            ("2026-11-20T23:30:00Z", Opening::Closed { until: Some(at("2026-11-21T06:00:00Z")) }),
            ("2026-11-21T06:30:00Z", Opening::Open),
            // In summer, the hour of Berlin is another one.
            ("2026-07-16T19:00:00Z", Opening::Closed { until: Some(at("2026-07-16T20:00:00Z")) }),
            ("2026-07-16T20:30:00Z", Opening::Open),
        ] {
            assert_eq!(policy.opening(at(now)), expected, "{now}");
        }
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let policy = policy(&[("0 22 * * *", 2, Some("Europe/Berlin")), ("0 6 * * *", 1, None)]);
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<DeployPolicy>(&text).unwrap(), policy);
        assert_eq!(policy.allow[0].to_string(), "`0 22 * * *` for 2h Europe/Berlin");
        assert!(serde_json::from_str::<DeployPolicy>(&text.replace("Berlin", "Nowhere")).is_err());
    }
}
