//! What lies between the driver and the cluster.

use std::time::Duration;

use tiphys_run::Time;

use crate::chance::Chance;

/// How many messages in a row get lost at most: a network that loses all of them is down, which is
/// another fault.
const MOST_LOSSES: u32 = 2;

pub(super) struct Network {
    chance: Chance,
    /// Messages that were lost since the last one that arrived.
    losses: u32,
    pub(super) slow: bool,
    pub(super) duplicates: bool,
    /// Reads and lists may show what was so a moment ago.
    pub(super) stale: bool,
    pub(super) silent_until: Option<Time>,
}

impl Network {
    pub(super) fn new(chance: Chance) -> Self {
        Network {
            chance,
            losses: 0,
            slow: false,
            duplicates: false,
            stale: false,
            silent_until: None,
        }
    }

    pub(super) fn repair(&mut self) {
        self.slow = false;
        self.duplicates = false;
        self.stale = false;
        self.silent_until = None;
    }

    /// How long a request takes to arrive.
    pub(super) fn request(&mut self) -> Duration {
        if self.slow { self.chance.millis(500, 15_000) } else { self.chance.millis(3, 30) }
    }

    /// How long the watch takes to tell.
    pub(super) fn watch(&mut self) -> Duration {
        if self.slow { self.chance.millis(100, 3_000) } else { self.chance.millis(3, 40) }
    }

    /// When an answer arrives, once or more often.
    pub(super) fn deliveries(&mut self) -> Vec<Duration> {
        self.losses = 0;
        let times = if self.duplicates { 2 } else { 1 };
        (0..times).map(|_| self.request()).collect()
    }

    /// Whether a request, or its answer, gets lost.
    pub(super) fn loses(&mut self) -> bool {
        let loses = self.slow && self.chance.once_in(4) && self.losses < MOST_LOSSES;
        self.losses += u32::from(loses);
        loses
    }

    /// Whether, of what is lost, it is the answer and not the request.
    pub(super) fn loses_answer(&mut self) -> bool {
        self.chance.once_in(2)
    }

    /// How long after it was taken a look arrives, beyond the way of its answer.
    pub(super) fn read_lag(&mut self) -> Duration {
        let lags = self.stale && self.chance.once_in(2);
        if lags { self.chance.millis(1_000, 10_000) } else { Duration::ZERO }
    }

    /// Whether a list shows an object as it was before its newest change.
    pub(super) fn lists_stale(&mut self) -> bool {
        self.stale && self.chance.once_in(2)
    }

    /// Whether a list misses an object altogether.
    pub(super) fn misses(&mut self) -> bool {
        self.stale && self.chance.once_in(8)
    }

    pub(super) fn is_silent(&self, now: Time) -> bool {
        self.silent_until.is_some_and(|until| now < until)
    }
}
