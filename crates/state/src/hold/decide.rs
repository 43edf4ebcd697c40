//! What to do to hold apps, from what was read and when. No clock, no requests.

use std::collections::BTreeSet;
use std::time::Duration;

use tiphys_run::Time;

/// How often the window is set before we give up: each time Argo CD was quicker.
const ATTEMPTS: usize = 10;
/// How often a change of the window is tried that somebody else's change came before.
const WRITES: usize = 10;
/// How often one is tried again after an answer that does not say what came of it.
const UNCLEAR: usize = 2;
/// How long automated operations are awaited before they are terminated.
const AUTOMATED_TIMEOUT: Duration = Duration::from_secs(120);
/// How long they may take to end once they are.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(120);
/// How often it is looked whether they have ended.
const POLL: Duration = Duration::from_secs(1);
/// How long the controller may take to see a new window.
const NOTICE: Duration = Duration::from_millis(500);

/// What was read, or came of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// An app that Argo CD is syncing by itself, if there is one.
    Automated(Option<String>),
    /// The window has been set; the apps that were not in it before.
    Held { added: BTreeSet<String> },
    /// They are out of the window again.
    Released,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// See whether an automated operation is under way, after a while.
    Look {
        after: Duration,
    },
    /// Stop the operation of this app, and look after a while.
    Terminate {
        app: String,
        look_after: Duration,
    },
    /// Set the window.
    Hold,
    /// Undo that: these apps were not in the window before.
    Release(BTreeSet<String>),
    /// They are held, and no automated operation is under way.
    Done,
    GiveUp(Why),
}

/// Why apps cannot be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// An automated operation began each time before the controller saw the window.
    AlwaysLate,
    /// The automated operation of this app does not end.
    NeverEnds { app: String },
}

/// Holding apps. A window freezes an automated operation that is under way, so these are awaited
/// first; if one slips in before the controller sees the window, all is tried again.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    began: Time,
    attempts: usize,
    /// What this attempt has added to the window, once it has.
    added: Option<BTreeSet<String>>,
}

impl Holding {
    pub(super) fn begin(now: Time) -> (Self, Next) {
        let holding = Holding { began: now, attempts: 0, added: None };
        (holding, Next::Look { after: Duration::ZERO })
    }

    pub(super) fn decide(&mut self, now: Time, seen: Seen) -> Next {
        match (seen, self.added.take()) {
            (Seen::Automated(None), None) => Next::Hold,
            (Seen::Automated(None), Some(_)) => Next::Done,
            (Seen::Automated(Some(app)), None) => self.await_end(now, app),
            (Seen::Automated(Some(_)), Some(added)) => Next::Release(added),
            // An earlier run holds them all, so nothing can have slipped in.
            (Seen::Held { added }, _) if added.is_empty() => Next::Done,
            (Seen::Held { added }, _) => {
                self.added = Some(added);
                Next::Look { after: NOTICE }
            }
            (Seen::Released, _) => {
                self.attempts += 1;
                if self.attempts < ATTEMPTS {
                    Next::Look { after: Duration::ZERO }
                } else {
                    Next::GiveUp(Why::AlwaysLate)
                }
            }
        }
    }

    fn await_end(&self, now: Time, app: String) -> Next {
        let awaited = now - self.began;
        if awaited <= AUTOMATED_TIMEOUT {
            Next::Look { after: POLL }
        } else if awaited <= AUTOMATED_TIMEOUT + TERMINATION_TIMEOUT {
            Next::Terminate { app, look_after: POLL }
        } else {
            Next::GiveUp(Why::NeverEnds { app })
        }
    }
}

/// A change of who is held. Apps that it does not name stay as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Hold(BTreeSet<String>),
    Release(BTreeSet<String>),
}

impl Change {
    /// All stays as it should be.
    pub(super) fn nothing() -> Self {
        Change::Release(BTreeSet::new())
    }

    /// The apps that it is about and that are not yet as it wants them.
    pub(super) fn missing(&self, held: &BTreeSet<String>) -> BTreeSet<String> {
        match self {
            Change::Hold(apps) => apps - held,
            Change::Release(apps) => apps & held,
        }
    }

    /// Who is held afterwards.
    pub(super) fn of(&self, held: &BTreeSet<String>) -> BTreeSet<String> {
        match self {
            Change::Hold(apps) => held | apps,
            Change::Release(apps) => held - apps,
        }
    }
}

/// Whether a write is tried again that was refused because somebody else wrote first.
pub(super) fn writes_again(attempt: usize) -> bool {
    attempt < WRITES
}

/// Whether one is tried again that nobody knows the outcome of, after so many of these.
pub(super) fn asks_again(unclear: usize) -> bool {
    unclear < UNCLEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::START + Duration::from_secs(seconds)
    }

    fn apps(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn busy(app: &str) -> Seen {
        Seen::Automated(Some(app.to_owned()))
    }

    fn held(added: &[&str]) -> Seen {
        Seen::Held { added: apps(added) }
    }

    const IDLE: Seen = Seen::Automated(None);
    const AT_ONCE: Next = Next::Look { after: Duration::ZERO };

    /// What each of these leads to, at these seconds.
    fn story(seen: &[(u64, Seen)]) -> Vec<Next> {
        let (mut holding, first) = Holding::begin(at(0));
        let next = seen.iter().map(|(s, seen)| holding.decide(at(*s), seen.clone()));
        [first].into_iter().chain(next).collect()
    }

    #[test]
    fn apps_that_are_idle_are_held_and_looked_at_once_more() {
        assert_eq!(
            story(&[(0, IDLE), (0, held(&["a"])), (1, IDLE)]),
            [AT_ONCE, Next::Hold, Next::Look { after: NOTICE }, Next::Done]
        );
        let held_before = story(&[(0, IDLE), (0, held(&[]))]);
        assert_eq!(held_before, [AT_ONCE, Next::Hold, Next::Done]);
    }

    #[test]
    fn an_automated_operation_is_awaited_then_terminated_then_given_up_on() {
        let wait = Next::Look { after: POLL };
        let stop = |app: &str| Next::Terminate { app: app.to_owned(), look_after: POLL };
        let never_ends = Next::GiveUp(Why::NeverEnds { app: "c".to_owned() });
        let seen = [
            (0, busy("a"), wait.clone()),
            (120, busy("a"), wait),
            (121, busy("b"), stop("b")),
            (240, busy("c"), stop("c")),
            (241, busy("c"), never_ends),
        ];
        let (mut holding, _) = Holding::begin(at(1_000));
        for (second, seen, next) in seen {
            assert_eq!(holding.decide(at(1_000 + second), seen), next, "after {second} s");
        }
    }

    #[test]
    fn whatever_slipped_in_ends_outside_the_window_and_only_what_was_added_leaves_it() {
        assert_eq!(
            story(&[(0, IDLE), (0, held(&["b"])), (1, busy("a")), (1, Seen::Released), (2, IDLE)]),
            [
                AT_ONCE,
                Next::Hold,
                Next::Look { after: NOTICE },
                Next::Release(apps(&["b"])),
                AT_ONCE,
                Next::Hold,
            ]
        );
    }

    #[test]
    fn whoever_is_always_late_gives_up_with_nothing_held() {
        let round = [(0, IDLE), (0, held(&["a"])), (0, busy("a")), (0, Seen::Released)];
        let all: Vec<(u64, Seen)> = std::iter::repeat_n(round, ATTEMPTS).flatten().collect();
        let next = story(&all);
        assert_eq!(next.last(), Some(&Next::GiveUp(Why::AlwaysLate)));
        assert_eq!(next[next.len() - 2], Next::Release(apps(&["a"])));
        let given_up = next.iter().filter(|next| matches!(next, Next::GiveUp(_)));
        assert_eq!(given_up.count(), 1, "not a round earlier");
    }

    #[test]
    fn a_change_leaves_apps_alone_that_it_does_not_name() {
        let held = apps(&["a", "b"]);
        for (change, missing, after) in [
            (Change::Hold(apps(&["b", "c"])), &["c"][..], &["a", "b", "c"][..]),
            (Change::Hold(apps(&["a"])), &[], &["a", "b"]),
            (Change::Release(apps(&["b", "c"])), &["b"], &["a"]),
            (Change::Release(apps(&["c"])), &[], &["a", "b"]),
        ] {
            assert_eq!(change.missing(&held), apps(missing), "{change:?}");
            assert_eq!(change.of(&held), apps(after), "{change:?}");
        }
    }

    #[test]
    fn a_conflict_is_tried_again_a_few_times() {
        assert!(writes_again(1) && writes_again(WRITES - 1) && !writes_again(WRITES));
    }
}
