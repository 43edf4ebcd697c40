//! How long something may fail before the run gives it up. One odd answer means nothing: an API
//! server that starts denies what it will grant a second later.

use std::time::Duration;

use tiphys_cluster::Cause;
use tiphys_run::Time;

/// So many failures at least.
const COUNT: u32 = 3;
/// How long credentials may be denied: a server learns who may do what soon after its start.
const DENIED: Duration = Duration::from_secs(15);
/// How long anything else may fail: another server may have to take over.
const BROKEN: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Continue,
    GiveUp,
}

/// Failures of one kind of request, as long as it does nothing but fail for the same cause.
#[derive(Debug, Clone)]
pub struct Tolerance {
    /// With more time between two failures, it went well in between.
    longest_gap: Duration,
    failing: Option<Failing>,
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    cause: Cause,
    since: Time,
    last: Time,
    count: u32,
}

impl Tolerance {
    #[must_use]
    pub fn new(longest_gap: Duration) -> Self {
        Tolerance { longest_gap, failing: None }
    }

    pub fn decide(&mut self, now: Time, outcome: Result<(), Cause>) -> Decision {
        let Err(cause) = outcome else {
            self.failing = None;
            return Decision::Continue;
        };
        let same =
            |before: &Failing| before.cause == cause && now.since(before.last) <= self.longest_gap;
        let before = self.failing.filter(same);
        let before = before.unwrap_or(Failing { cause, since: now, last: now, count: 0 });
        let failing = Failing { last: now, count: before.count + 1, ..before };
        self.failing = Some(failing);
        if failing.count >= COUNT && now.since(failing.since) >= patience(cause) {
            Decision::GiveUp
        } else {
            Decision::Continue
        }
    }
}

fn patience(cause: Cause) -> Duration {
    match cause {
        Cause::Denied => DENIED,
        Cause::NotFound | Cause::Conflict | Cause::Unreachable | Cause::Other => BROKEN,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const GAP: Duration = Duration::from_secs(20);
    const OK: Result<(), Cause> = Ok(());

    /// Seconds since the one before, and how it went.
    type Outcome = (u64, Result<(), Cause>);

    fn failed(cause: Cause) -> Result<(), Cause> {
        Err(cause)
    }

    /// After how many seconds it is given up.
    fn given_up(outcomes: &[Outcome]) -> Option<u64> {
        let mut tolerance = Tolerance::new(GAP);
        let mut now = 0;
        outcomes.iter().find_map(|(after, outcome)| {
            now += after;
            let time = Time::from_millis(now * 1000);
            (tolerance.decide(time, *outcome) == Decision::GiveUp).then_some(now)
        })
    }

    #[test]
    fn what_lasts_is_given_up_and_nothing_else() {
        let (denied, broken) = (failed(Cause::Denied), failed(Cause::Other));
        let away = failed(Cause::Unreachable);
        let cases: &[(&str, &[Outcome], Option<u64>)] = &[
            ("one", &[(0, denied)], None),
            ("many at once", &[(0, denied), (0, denied), (0, denied), (1, denied)], None),
            ("two, long apart", &[(0, denied), (16, denied)], None),
            ("lasting", &[(0, denied), (5, denied), (5, denied), (5, denied)], Some(15)),
            ("three are enough", &[(0, denied), (8, denied), (8, denied)], Some(16)),
            ("a success between", &[(0, denied), (8, denied), (4, OK), (4, denied)], None),
            ("another cause between", &[(0, denied), (8, denied), (4, away), (4, denied)], None),
            ("a long time between", &[(0, denied), (8, denied), (21, denied)], None),
            ("and then again", &[(0, denied), (30, denied), (8, denied), (8, denied)], Some(46)),
            ("broken for as long", &[(0, broken), (8, broken), (8, broken)], None),
            (
                "broken for long",
                &[(0, broken), (15, broken), (15, broken), (15, broken), (15, broken)],
                Some(60),
            ),
            ("away for long", &[(0, away), (20, away), (20, away), (20, away)], Some(60)),
        ];
        for (name, outcomes, expected) in cases {
            assert_eq!(given_up(outcomes), *expected, "{name}");
        }
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        let denied = failed(Cause::Denied);
        let outcome = prop_oneof![Just(OK), Just(denied), Just(denied), Just(failed(Cause::Other))];
        (0..25_u64, outcome)
    }

    proptest! {
        /// Whatever came before: it is given up only if it did nothing but fail for one cause, at
        /// least three times, for as long as that cause is tolerated.
        #[test]
        fn it_is_given_up_exactly_when_the_last_failures_lasted(outcomes in vec(outcome(), 0..30)) {
            let mut tolerance = Tolerance::new(GAP);
            let mut now = 0;
            let mut past = Vec::new();
            for (after, outcome) in outcomes {
                now += after;
                past.push((now, outcome));
                let decided = tolerance.decide(Time::from_millis(now * 1000), outcome);
                let expected = match outcome {
                    Ok(()) => Decision::Continue,
                    Err(cause) => lasted(&past, cause),
                };
                prop_assert_eq!(decided, expected, "{:?}", past);
            }
        }
    }

    /// The same, from the whole past.
    fn lasted(past: &[(u64, Result<(), Cause>)], cause: Cause) -> Decision {
        let mut newest = past.last().map_or(0, |(at, _)| *at);
        let end = newest;
        let mut count = 0;
        for (at, outcome) in past.iter().rev() {
            if *outcome != Err(cause) || newest - at > GAP.as_secs() {
                break;
            }
            (newest, count) = (*at, count + 1);
        }
        let patience = if cause == Cause::Denied { 15 } else { 60 };
        if count >= 3 && end - newest >= patience { Decision::GiveUp } else { Decision::Continue }
    }
}
