//! Until when a run may act.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tiphys_cluster::agent::Guard;
use tiphys_run::Time;
use tokio::time::Instant;

use super::decide;

/// Two clocks that are further apart than this differ because the machine slept.
const ASLEEP: Duration = Duration::from_secs(2);

/// Until when effects may be sent. Whoever sends one asks it first.
#[derive(Clone)]
pub struct Fence {
    clock: Clock,
    /// Nothing once it has been closed, which is for good.
    valid_until: Arc<Mutex<Option<Time>>>,
}

/// Our own time, which the decisions are made with. The clock of a process stands still while its
/// machine sleeps, and others do not wait for it: then the time of day says how long that was. One
/// that was set ahead only makes us more careful.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    began: Instant,
    time_of_day: SystemTime,
}

impl Clock {
    pub(super) fn start() -> Self {
        Clock { began: Instant::now(), time_of_day: SystemTime::now() }
    }

    pub(super) fn now(self) -> Time {
        let (awake, passed) = (self.began.elapsed(), self.time_of_day.elapsed());
        let passed = passed.unwrap_or_default();
        Time::START + if passed > awake + ASLEEP { passed } else { awake }
    }
}

impl Fence {
    pub(super) fn new(clock: Clock, valid_until: Time) -> Self {
        Fence { clock, valid_until: Arc::new(Mutex::new(Some(valid_until))) }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Whether a request that is sent now, and given up after `timeout`, cannot take effect
    /// after the Lease may be somebody else's.
    #[must_use]
    pub fn allows(&self, timeout: Duration) -> bool {
        decide::may_send(self.clock.now(), self.valid_until(), timeout)
    }

    /// The same question, for whoever sends requests.
    #[must_use]
    pub fn guard(&self) -> Guard {
        let fence = self.clone();
        Arc::new(move |timeout| fence.allows(timeout))
    }

    fn valid_until(&self) -> Time {
        // A poisoned lock means that a thread panicked while it held it: nothing is sent then.
        self.valid_until.lock().ok().and_then(|until| *until).unwrap_or(Time::START)
    }

    pub(super) fn set(&self, valid_until: Time) {
        if let Ok(mut current) = self.valid_until.lock() {
            *current = current.map(|_| valid_until);
        }
    }

    pub(super) fn close(&self) {
        if let Ok(mut current) = self.valid_until.lock() {
            *current = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_machine_slept_counts() {
        let hour = Duration::from_secs(3600);
        let woken = Clock { began: Instant::now(), time_of_day: SystemTime::now() - hour };
        assert!(woken.now() >= Time::START + hour);
        let set_back = Clock { began: Instant::now(), time_of_day: SystemTime::now() + hour };
        assert!(set_back.now() < Time::START + hour);
        let fence = Fence::new(woken, Time::START + Duration::from_secs(30));
        assert!(!fence.allows(Duration::ZERO), "it may be somebody else's");
    }
}
