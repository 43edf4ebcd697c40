//! What deployments have come to, as the root app shows it to Argo CD's notifications.

use std::fmt;

use super::Next;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    /// Succeeded after a failure.
    Recovered,
    /// At least one attempt has failed, and none succeeded.
    Failed,
}

impl Outcome {
    pub const ALL: [Outcome; 3] = [Outcome::Succeeded, Outcome::Recovered, Outcome::Failed];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Recovered => "recovered",
            Outcome::Failed => "failed",
        }
    }

    /// Nothing of what somebody else has written there.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Next {
    /// What the root app should show from now on, if that is not what it `shows` already.
    #[must_use]
    pub fn outcome(&self, shows: Option<(Outcome, &str)>) -> Option<(Outcome, &str)> {
        let (failed, revision) = match self {
            Next::UpToDate { revision } => (false, revision),
            Next::BackOff { revision, .. } | Next::GaveUp { revision, .. } => (true, revision),
            Next::NeverDeployed
            | Next::Manual
            | Next::Unknown { .. }
            | Next::Paused { .. }
            | Next::Busy { .. }
            | Next::Closed { .. }
            | Next::Deploy { .. } => return None,
        };
        let outcome = match shows {
            Some((Outcome::Failed, _)) if !failed => Outcome::Recovered,
            Some((Outcome::Failed, of)) if of == revision => return None,
            Some((Outcome::Succeeded | Outcome::Recovered, of)) if !failed && of == revision => {
                return None;
            }
            _ if failed => Outcome::Failed,
            _ => Outcome::Succeeded,
        };
        Some((outcome, revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to_date(revision: &str) -> Next {
        Next::UpToDate { revision: revision.to_owned() }
    }

    fn gave_up(revision: &str) -> Next {
        Next::GaveUp { revision: revision.to_owned(), attempts: 3 }
    }

    #[test]
    fn each_change_is_shown_once() {
        let (succeeded, recovered, failed) =
            (Outcome::Succeeded, Outcome::Recovered, Outcome::Failed);
        let cases = [
            (None, up_to_date("a"), Some((succeeded, "a"))),
            (Some((succeeded, "a")), up_to_date("a"), None),
            (Some((succeeded, "a")), up_to_date("b"), Some((succeeded, "b"))),
            (Some((succeeded, "a")), gave_up("b"), Some((failed, "b"))),
            (None, gave_up("b"), Some((failed, "b"))),
            (Some((failed, "b")), gave_up("b"), None),
            (Some((failed, "b")), gave_up("c"), Some((failed, "c"))),
            (Some((failed, "b")), up_to_date("b"), Some((recovered, "b"))),
            (Some((failed, "b")), up_to_date("c"), Some((recovered, "c"))),
            (Some((recovered, "c")), up_to_date("c"), None),
            (Some((recovered, "c")), up_to_date("d"), Some((succeeded, "d"))),
            (Some((recovered, "c")), gave_up("c"), Some((failed, "c"))),
            (Some((failed, "b")), Next::Paused { revision: "c".to_owned() }, None),
        ];
        for (shows, next, expected) in cases {
            assert_eq!(next.outcome(shows), expected, "{shows:?} {next:?}");
        }
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(&outcome.to_string()), Some(outcome));
        }
        assert_eq!(Outcome::parse("Failed"), None);
    }
}
