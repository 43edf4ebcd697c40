//! What commits show of their deployment on the Git server.

use serde::{Deserialize, Serialize};

use super::{Next, short};

/// As all Git servers know it, in one way or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitState {
    /// It will be deployed, or is being deployed.
    Pending,
    Succeeded,
    /// At least one attempt has failed, and none succeeded.
    Failed,
    /// A newer commit came before this one was deployed.
    Superseded,
}

/// What the Git server was told last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub revision: String,
    pub state: CommitState,
    /// Why the server refused it. The loop tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitNews {
    pub revision: String,
    pub state: CommitState,
    /// In words, without what failed: the caller knows that.
    pub words: String,
}

impl Next {
    /// What the Git server should be told, if it does not know yet. A commit that was left pending is
    /// settled before the next one is reported.
    #[must_use]
    pub fn commit_news(&self, told: Option<&Told>) -> Option<CommitNews> {
        let (revision, state) = self.commit_state()?;
        match told {
            Some(Told { revision: of, state: CommitState::Pending, refused: None })
                if of != revision =>
            {
                Some(CommitNews {
                    revision: of.clone(),
                    state: CommitState::Superseded,
                    words: format!("superseded by {}", short(revision)),
                })
            }
            Some(Told { revision: of, state: known, refused: None })
                if of == revision && *known == state =>
            {
                None
            }
            _ => Some(CommitNews {
                revision: revision.to_owned(),
                state,
                words: match state {
                    CommitState::Succeeded => "deployed".to_owned(),
                    CommitState::Failed => "not deployed".to_owned(),
                    CommitState::Pending | CommitState::Superseded => self.to_string(),
                },
            }),
        }
    }

    /// Of a commit. A chart's version has no status.
    fn commit_state(&self) -> Option<(&str, CommitState)> {
        let state = match self {
            Next::UpToDate { .. } => CommitState::Succeeded,
            Next::BackOff { .. } | Next::GaveUp { .. } => CommitState::Failed,
            Next::Paused { .. } | Next::Busy { .. } | Next::Closed { .. } | Next::Deploy { .. } => {
                CommitState::Pending
            }
            Next::NeverDeployed | Next::Manual | Next::Unknown { .. } => return None,
        };
        self.revision().filter(|revision| is_commit(revision)).map(|revision| (revision, state))
    }
}

/// SHA-1 or SHA-256, in full.
fn is_commit(revision: &str) -> bool {
    matches!(revision.len(), 40 | 64) && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    fn told(digit: char, state: CommitState) -> Told {
        Told { revision: commit(digit), state, refused: None }
    }

    fn deploying(digit: char, attempt: u32) -> Next {
        Next::Deploy { revision: commit(digit), attempt }
    }

    fn up_to_date(digit: char) -> Next {
        Next::UpToDate { revision: commit(digit) }
    }

    fn gave_up(digit: char) -> Next {
        Next::GaveUp { revision: commit(digit), attempts: 3 }
    }

    fn news(next: &Next, told: Option<&Told>) -> Option<(String, CommitState)> {
        next.commit_news(told).map(|news| (news.revision, news.state))
    }

    #[test]
    fn each_change_of_a_commit_is_told_once() {
        let (pending, succeeded) = (CommitState::Pending, CommitState::Succeeded);
        let (failed, superseded) = (CommitState::Failed, CommitState::Superseded);
        let cases = [
            (deploying('a', 1), None, Some(('a', pending))),
            (deploying('a', 1), Some(told('a', pending)), None),
            (up_to_date('a'), Some(told('a', pending)), Some(('a', succeeded))),
            (up_to_date('a'), Some(told('a', succeeded)), None),
            (gave_up('a'), Some(told('a', pending)), Some(('a', failed))),
            (gave_up('a'), Some(told('a', failed)), None),
            (deploying('a', 2), Some(told('a', failed)), Some(('a', pending))),
            (deploying('b', 1), Some(told('a', failed)), Some(('b', pending))),
            (deploying('b', 1), Some(told('a', succeeded)), Some(('b', pending))),
            // The one that was left behind first.
            (deploying('b', 1), Some(told('a', pending)), Some(('a', superseded))),
            (deploying('b', 1), Some(told('a', superseded)), Some(('b', pending))),
            (up_to_date('b'), Some(told('a', pending)), Some(('a', superseded))),
            // Git went back to a commit that was superseded.
            (up_to_date('a'), Some(told('a', superseded)), Some(('a', succeeded))),
            (Next::NeverDeployed, Some(told('a', pending)), None),
        ];
        for (next, told, expected) in cases {
            let expected = expected.map(|(digit, state)| (commit(digit), state));
            assert_eq!(news(&next, told.as_ref()), expected, "{next:?} {told:?}");
        }
    }

    #[test]
    fn what_the_server_did_not_take_is_told_again() {
        let refused = Some("503".to_owned());
        let before = Told { refused, ..told('a', CommitState::Succeeded) };
        assert_eq!(
            news(&up_to_date('a'), Some(&before)),
            Some((commit('a'), CommitState::Succeeded))
        );
    }

    #[test]
    fn a_commit_that_the_server_does_not_take_is_in_nobodys_way() {
        let refused = |state| {
            let refused = Some("422: no such commit".to_owned());
            Told { refused, ..told('a', state) }
        };
        let expected = Some((commit('b'), CommitState::Succeeded));
        for state in [CommitState::Pending, CommitState::Superseded] {
            assert_eq!(news(&up_to_date('b'), Some(&refused(state))), expected);
        }
    }

    #[test]
    fn only_commits_have_statuses() {
        for revision in ["1.2.3", "main", "", &"g".repeat(40), &"a".repeat(41)] {
            let next = Next::UpToDate { revision: revision.to_owned() };
            assert_eq!(next.commit_news(None), None, "{revision}");
        }
        assert!(Next::UpToDate { revision: "0".repeat(64) }.commit_news(None).is_some());
    }

    #[test]
    fn words_say_what_is_going_on() {
        let words =
            |next: &Next, told: Option<Told>| next.commit_news(told.as_ref()).unwrap().words;
        assert_eq!(words(&deploying('a', 2), None), "deploying aaaaaaaaaaaa, attempt 2 of 3");
        let paused = Next::Paused { revision: commit('a') };
        assert_eq!(words(&paused, None), "paused; aaaaaaaaaaaa is not deployed");
        let before = Some(told('a', CommitState::Pending));
        assert_eq!(words(&up_to_date('b'), before), "superseded by bbbbbbbbbbbb");
        assert_eq!(words(&up_to_date('b'), None), "deployed");
    }
}
