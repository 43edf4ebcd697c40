//! Which version may follow which.

use std::cmp::Ordering;

use tiphys_model::bootstrap::{Primitive, PrimitiveName};
use tiphys_model::{Exit, Explain, Explanation};

/// A version that cannot follow the one that is installed.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub struct DowngradeError {
    primitive: PrimitiveName,
    installed: String,
    pinned: String,
}

impl Explain for DowngradeError {
    fn explain(&self) -> Explanation {
        let DowngradeError { primitive, installed, pinned } = self;
        Explanation::new(
            Exit::Configuration,
            format!("{} would be downgraded", primitive.title()),
            format!("{installed} is installed, but {pinned} is pinned"),
        )
        .hint(format!(
            "pin `spec.bootstrap.{}.version` to {installed} or newer; to downgrade, \
             tear the platform down and install it again",
            primitive.as_str()
        ))
    }
}

/// Upgrades and repetitions are fine. What is stored by a newer version may mean nothing to an
/// older one, so there is no way back.
pub(super) fn check(primitive: &Primitive, installed: &str) -> Result<(), DowngradeError> {
    if compare(&primitive.version, installed) != Ordering::Less {
        return Ok(());
    }
    Err(DowngradeError {
        primitive: primitive.name,
        installed: installed.to_owned(),
        pinned: primitive.version.clone(),
    })
}

/// Numbers by value, a release after its candidates: `3.10.0` is newer than `3.9.2` and than
/// `3.10.0-rc1`.
fn compare(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| {
        let text = text.trim_start_matches('v');
        let (release, candidate) = text.split_once('-').map_or((text, None), |(r, c)| (r, Some(c)));
        let numbers: Vec<u64> = release.split('.').map(|n| n.parse().unwrap_or(0)).collect();
        (numbers, candidate.map(str::to_owned))
    };
    let ((a, a_candidate), (b, b_candidate)) = (parts(a), parts(b));
    a.cmp(&b).then_with(|| match (a_candidate, b_candidate) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(&b),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (older, newer) in [
            ("3.9.2", "3.10.0"),
            ("v3.2.6", "3.3.0"),
            ("3.2", "3.2.1"),
            ("4.0.0-rc1", "4.0.0"),
            ("4.0.0-rc1", "4.0.0-rc2"),
        ] {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{older} {newer}");
        }
        assert_eq!(compare("v3.2.6", "3.2.6"), Ordering::Equal);
    }
}
