//! The plan: graph, order and policies, frozen, with a digest.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::graph::{AppIx, Graph};
use crate::name::PlatformName;
use crate::platform::{App, Policies};
use crate::scope::Scope;

/// What a run executes. It leaves no choices for later: apps stand in start order, and every
/// index in it, also inside [`App::dependencies`], is a position in that order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub platform: PlatformName,
    pub scope: Scope,
    pub policies: Policies,
    pub apps: Vec<PlannedApp>,
    pub graph: Graph,
    /// The longest chain of typical times, first app first.
    pub critical_path: Vec<AppIx>,
    /// When the run would end if every app took its typical time, limits considered.
    pub estimate: Duration,
    pub digest: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedApp {
    pub app: App,
    pub role: Role,
    /// Topological depth within the plan; for display only, never a barrier.
    pub layer: u32,
    /// Longest path of typical times from here to the end, its own included.
    pub rank: Duration,
    /// Place in the order of rank, then name: of what is ready, the smallest starts first.
    pub priority: u32,
    /// When it would start if every app took its typical time, limits considered.
    pub start: Duration,
}

impl PlannedApp {
    /// How long a run typically spends on it; looking at an app takes no time worth counting.
    #[must_use]
    pub fn typical(&self) -> Duration {
        match self.role {
            Role::Act => self.app.typical,
            Role::Verify => Duration::ZERO,
        }
    }
}

/// What a run does with an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It is deployed, or in a teardown removed.
    #[serde(rename = "deploy")]
    Act,
    /// It lies outside the scope: it must be Healthy already, and is never deployed.
    Verify,
}

/// SHA-256 over the canonical form of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Digest(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be `sha256:` followed by 64 lower-case hexadecimal digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("sha256:").ok_or(NotADigest)?;
        let lower_hex = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if lower_hex && digits.len() == 64 { Ok(Digest(text.to_owned())) } else { Err(NotADigest) }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Digest {
    /// `sha256:` and 64 hexadecimal digits.
    #[must_use]
    pub fn from_sha256(bytes: [u8; 32]) -> Self {
        let hex = bytes.iter().fold(String::from("sha256:"), |mut text, byte| {
            for nibble in [byte >> 4, byte & 15] {
                text.extend(char::from_digit(u32::from(nibble), 16));
            }
            text
        });
        Digest(hex)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits: enough to tell plans apart, short enough for a line.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0["sha256:".len()..][..12]
    }
}

impl Plan {
    #[must_use]
    pub fn app(&self, app: AppIx) -> &PlannedApp {
        &self.apps[app.position()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_in_lower_case_hex() {
        let mut bytes = [0u8; 32];
        bytes[0] = 0xab;
        bytes[31] = 0x0f;
        let digest = Digest::from_sha256(bytes);
        assert_eq!(digest.as_str(), format!("sha256:ab{}0f", "00".repeat(30)));
        assert_eq!(digest.short(), "ab0000000000");
    }

    #[test]
    fn only_what_is_written_as_a_digest_is_read_as_one() {
        let digest = Digest::from_sha256([0xab; 32]);
        assert_eq!(digest.as_str().parse(), Ok(digest));
        let digits = "ab".repeat(32);
        let longer = format!("sha256:{digits}0");
        let upper = format!("sha256:{}", digits.to_uppercase());
        for bad in ["", "sha256:", "sha256:ab", &digits, &longer, &upper] {
            assert_eq!(bad.parse::<Digest>(), Err(NotADigest), "{bad:?}");
        }
    }
}
