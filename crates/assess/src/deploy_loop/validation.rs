//! When the deploy loop has a platform validated because objects have changed. Changes are noted by whoever
//! sees them, the last one only: many changes are one validation, and none is missed.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An object that changes all the time does not have the platform validated all the time.
const REST: Duration = Duration::from_secs(60);

/// What a trigger's last validation was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validated {
    /// The last change by then.
    pub change: String,
    /// The workflow, and when it was submitted.
    pub workflow: String,
    pub at: Timestamp,
}

/// Whether it is time, after a change that is known by this name.
#[must_use]
pub fn is_due(change: &str, before: Option<&Validated>, is_busy: bool, now: Timestamp) -> bool {
    let is_new = before.is_none_or(|before| before.change != change);
    let has_rested = before.is_none_or(|before| before.at + REST <= now);
    is_new && has_rested && !is_busy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_followed_by_a_validation_and_a_burst_by_few() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let before = Validated { change: "a".to_owned(), workflow: "w".to_owned(), at: at(100) };
        let before = Some(&before);
        assert!(is_due("a", None, false, at(0)));
        assert!(!is_due("a", None, true, at(0)), "a run would not let it be healthy");
        assert!(!is_due("a", before, false, at(1000)), "it was validated after that");
        assert!(!is_due("b", before, false, at(159)));
        assert!(is_due("b", before, false, at(160)));
        assert!(!is_due("b", before, true, at(160)));
    }

    #[test]
    fn the_last_change_of_a_burst_is_followed_by_a_validation() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut before: Option<Validated> = None;
        let mut validations = 0;
        for second in 0..200 {
            // A change a second, for a hundred seconds.
            let change = second.min(99).to_string();
            if is_due(&change, before.as_ref(), false, at(second)) {
                validations += 1;
                before = Some(Validated { change, workflow: String::new(), at: at(second) });
            }
        }
        assert_eq!((validations, before.unwrap().change.as_str()), (3, "99"));
    }
}
