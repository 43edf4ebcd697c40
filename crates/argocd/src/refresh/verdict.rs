//! Whether a refresh that has not ended is slow, or was missed. No clock, no requests.

use std::time::Duration;

/// Before this, none counts as missed.
const SHORTEST: Duration = Duration::from_secs(5);
/// After this, one does that nothing can be compared with: a second request for a single app is no
/// burden.
const ALONE: Duration = Duration::from_secs(15);

/// What Argo CD's controller does about other apps meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// It has refreshed one that was asked for later.
    Overtook,
    /// They wait as well.
    Wait,
    /// None is to be refreshed. Whether it has compared one all the same, by itself.
    Idle { compared: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is slow, as far as is known.
    Wait,
    /// It was missed.
    AskHard,
}

pub(super) fn refresh_verdict(waited: Duration, others: Others) -> Verdict {
    let after = match others {
        Others::Overtook | Others::Idle { compared: true } => SHORTEST,
        Others::Idle { compared: false } => ALONE,
        // Repeating every pending refresh would slow down a slow controller even more.
        Others::Wait => return Verdict::Wait,
    };
    if waited < after { Verdict::Wait } else { Verdict::AskHard }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_have_overtaken_was_missed() {
        let idle = |compared| Others::Idle { compared };
        for (seconds, others, expected) in [
            (0, Others::Overtook, Verdict::Wait),
            (4, Others::Overtook, Verdict::Wait),
            (5, Others::Overtook, Verdict::AskHard),
            (59, Others::Wait, Verdict::Wait),
            (4, idle(true), Verdict::Wait),
            (5, idle(true), Verdict::AskHard),
            (14, idle(false), Verdict::Wait),
            (15, idle(false), Verdict::AskHard),
        ] {
            let verdict = refresh_verdict(Duration::from_secs(seconds), others);
            assert_eq!(verdict, expected, "{others:?} after {seconds} s");
        }
    }
}
