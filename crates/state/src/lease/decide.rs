//! What to do about a Lease, from what was read of it and when. No clock, no requests.

use std::time::Duration;

use tiphys_run::Time;

/// How long a Lease is valid after its renewal.
pub(super) const DURATION: Duration = Duration::from_secs(30);
/// How often its holder renews it.
pub(super) const RENEWAL: Duration = Duration::from_secs(5);
/// A holder that renewed more recently than this is alive.
const ALIVE: Duration = Duration::from_secs(10);

/// What was read of a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    /// Changes with every write, so a renewal is seen without comparing clocks.
    pub(super) version: String,
    /// Nobody, if it was given up.
    pub(super) holder: Option<String>,
}

/// What to do next to take a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// There is none.
    Create,
    /// Nobody holds it, or the holder is dead.
    Take,
    /// Read it again later: the holder may be alive.
    Wait { holder: String },
    /// The holder is alive, and has been for a whole duration.
    GiveUp { holder: String },
}

/// Waiting for a Lease that somebody else holds. A holder is dead when the Lease did not change
/// for its whole duration while we watched: the clocks of two machines are never compared.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    first: Option<Time>,
    /// The version that was read last, and when it was read first.
    last: Option<(String, Time)>,
}

impl Waiting {
    /// `now` is when the answer arrived. What was read may have been written just before, so a
    /// version is at least as young as its answer.
    pub(super) fn decide(&mut self, now: Time, read: Option<&Read>) -> Next {
        let Some(read) = read else { return Next::Create };
        let Some(holder) = read.holder.clone() else { return Next::Take };
        let first = *self.first.get_or_insert(now);
        let since = match &self.last {
            Some((version, since)) if *version == read.version => *since,
            Some(_) | None => {
                self.last = Some((read.version.clone(), now));
                now
            }
        };
        let unchanged = now - since;
        if unchanged >= DURATION {
            Next::Take
        } else if now - first > DURATION && unchanged < ALIVE {
            Next::GiveUp { holder }
        } else {
            Next::Wait { holder }
        }
    }
}

/// Whose a Lease is after a renewal was answered with a conflict, or with "not found".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// Our own write arrived, and its answer was lost.
    Us,
    /// Another run, or nobody: it was taken, given up or deleted.
    Other { holder: Option<String> },
}

/// A holder's identity is used once, so equal identities are the same run.
pub(super) fn owner(us: &str, read: Option<&Read>) -> Owner {
    match read.and_then(|read| read.holder.clone()) {
        Some(holder) if holder == us => Owner::Us,
        holder => Owner::Other { holder },
    }
}

/// Whether a request that is sent now and given up after `timeout` cannot take effect when the
/// Lease may be somebody else's.
pub(super) fn may_send(now: Time, valid_until: Time, timeout: Duration) -> bool {
    now + timeout < valid_until
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::START + Duration::from_secs(seconds)
    }

    fn read(version: u64, holder: &str) -> Read {
        let holder = (!holder.is_empty()).then(|| holder.to_owned());
        Read { version: version.to_string(), holder }
    }

    /// Reads at these seconds give these versions, all held; what each leads to.
    fn story(reads: &[(u64, u64)]) -> Vec<Next> {
        let mut waiting = Waiting::default();
        reads
            .iter()
            .map(|(s, version)| waiting.decide(at(*s), Some(&read(*version, "a"))))
            .collect()
    }

    fn wait() -> Next {
        Next::Wait { holder: "a".to_owned() }
    }

    #[test]
    fn a_lease_that_nobody_holds_is_taken_at_once() {
        assert_eq!(Waiting::default().decide(at(0), None), Next::Create);
        assert_eq!(Waiting::default().decide(at(0), Some(&read(1, ""))), Next::Take);
        let mut waiting = Waiting::default();
        assert_eq!(waiting.decide(at(0), Some(&read(1, "a"))), wait());
        assert_eq!(waiting.decide(at(1), Some(&read(2, ""))), Next::Take, "given up meanwhile");
        assert_eq!(waiting.decide(at(2), None), Next::Create, "deleted meanwhile");
    }

    #[test]
    fn a_holder_is_dead_when_nothing_changed_for_a_whole_duration() {
        assert_eq!(
            story(&[(0, 1), (15, 1), (29, 1), (30, 1)]),
            [wait(), wait(), wait(), Next::Take]
        );
        let renewed = story(&[(0, 1), (20, 2), (49, 2), (50, 2)]);
        assert_eq!(renewed, [wait(), wait(), wait(), Next::Take], "counted from the last renewal");
    }

    #[test]
    fn a_holder_that_keeps_renewing_is_given_up_on_after_one_duration() {
        let busy = Next::GiveUp { holder: "a".to_owned() };
        assert_eq!(story(&[(0, 1), (30, 7)]), [wait(), wait()], "not a moment earlier");
        assert_eq!(story(&[(0, 1), (31, 7)]), [wait(), busy.clone()]);
        assert_eq!(story(&[(0, 1), (25, 6), (34, 6)]), [wait(), wait(), busy]);
        let silent = story(&[(0, 1), (25, 6), (35, 6), (54, 6), (55, 6)]);
        assert_eq!(silent, [wait(), wait(), wait(), wait(), Next::Take], "it stopped: it may die");
    }

    #[test]
    fn another_holder_starts_the_count_anew() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.decide(at(0), Some(&read(1, "a"))), wait());
        let next = waiting.decide(at(29), Some(&read(2, "b")));
        assert_eq!(next, Next::Wait { holder: "b".to_owned() });
        let next = waiting.decide(at(31), Some(&read(2, "b")));
        assert_eq!(next, Next::GiveUp { holder: "b".to_owned() });
    }

    #[test]
    fn after_a_conflict_only_our_own_identity_is_ours() {
        assert_eq!(owner("us", Some(&read(4, "us"))), Owner::Us);
        assert_eq!(owner("us", Some(&read(4, ""))), Owner::Other { holder: None });
        assert_eq!(owner("us", None), Owner::Other { holder: None });
        let other = Owner::Other { holder: Some("b".to_owned()) };
        assert_eq!(owner("us", Some(&read(4, "b"))), other);
    }

    #[test]
    fn nothing_is_sent_that_could_arrive_after_the_end() {
        let timeout = Duration::from_secs(10);
        assert!(may_send(at(19), at(30), timeout));
        assert!(!may_send(at(20), at(30), timeout), "it could take effect at the very end");
        assert!(!may_send(at(31), at(30), Duration::ZERO));
    }

    #[test]
    fn the_numbers_leave_room_for_lost_renewals() {
        assert!(ALIVE >= 2 * RENEWAL, "one renewal may be lost");
        assert!(DURATION >= 5 * RENEWAL, "four in a row may be lost");
    }
}
