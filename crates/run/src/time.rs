//! Two clocks that must never be compared with each other.

use std::ops::{Add, Sub};
use std::time::Duration;

use serde::Serialize;

/// Our own clock: milliseconds since the run began. It only ever goes forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    pub const START: Time = Time(0);

    #[must_use]
    pub fn from_millis(millis: u64) -> Self {
        Time(millis)
    }

    #[must_use]
    pub fn as_millis(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; nothing if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(millis))
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

/// Argo CD's clock: whole seconds, as its stamps have them. Two events within one second carry
/// the same stamp, so "not earlier" never means "later".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub i64);
