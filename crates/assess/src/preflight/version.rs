//! Versions, as programs print them in the middle of other words.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
}

impl Version {
    #[must_use]
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Version { major, minor, patch }
    }

    /// The first `1.2` or `1.2.3` in a text. What follows it (`+build`, `-1`, `rc1`) does not
    /// count.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let mut rest = text;
        loop {
            let start = rest.find(|c: char| c.is_ascii_digit())?;
            let tail = &rest[start..];
            let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(tail.len());
            if let Some(version) = Self::parse(&tail[..end]) {
                return Some(version);
            }
            rest = &tail[end..];
        }
    }

    fn parse(digits: &str) -> Option<Self> {
        let mut parts = digits.trim_end_matches('.').split('.').map(str::parse);
        let (major, minor) = (parts.next()?.ok()?, parts.next()?.ok()?);
        let patch = parts.next().and_then(Result::ok).unwrap_or(0);
        Some(Version { major, minor, patch })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version { major, minor, patch } = self;
        match patch {
            0 => write!(f, "{major}.{minor}"),
            patch => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_among_words() {
        let cases = [
            ("jq-1.6", Some(Version::new(1, 6, 0))),
            ("jq-1.7.1-apple", Some(Version::new(1, 7, 1))),
            ("v3.20.2+gdd3eb5b", Some(Version::new(3, 20, 2))),
            ("4 of 7: v1.2", Some(Version::new(1, 2, 0))),
            ("1.30.0-rc.1", Some(Version::new(1, 30, 0))),
            ("2.15.", Some(Version::new(2, 15, 0))),
            ("Major:\"1\", Minor:\"20+\", GitVersion:\"v1.20.4\"", Some(Version::new(1, 20, 4))),
            ("version 4", None),
            ("UNKNOWN", None),
            ("99999999999999999999.1", None),
        ];
        for (text, version) in cases {
            assert_eq!(Version::find(text), version, "{text}");
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(Version::new(1, 28, 0) > Version::new(1, 9, 12));
        assert!(Version::new(4, 0, 0) <= Version::new(4, 0, 0));
        assert!(Version::new(0, 24, 1) > Version::new(0, 24, 0));
        assert_eq!(Version::new(1, 6, 0).to_string(), "1.6");
        assert_eq!(Version::new(1, 7, 1).to_string(), "1.7.1");
    }
}
