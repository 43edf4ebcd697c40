//! The id that a run gives to its operations, so that it knows them again.

use std::fmt;
use std::str::FromStr;

use crate::name::AppName;
use crate::plan::Digest;

/// `DIGEST12/APP/EPOCH/ATTEMPT`, kept by Argo CD in the operation's info.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    pub plan: PlanTag,
    pub app: AppName,
    /// Which holder of the platform's Lease sent it.
    pub epoch: u64,
    pub attempt: u32,
}

/// The first twelve digits of a plan's digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanTag([u8; 12]);

impl PlanTag {
    #[must_use]
    pub fn of(digest: &Digest) -> Self {
        digest.short().parse().expect("a digest is 64 hexadecimal digits")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must have the form DIGEST12/APP/EPOCH/ATTEMPT")]
pub struct NotAnOperationId;

impl FromStr for PlanTag {
    type Err = NotAnOperationId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: [u8; 12] = text.as_bytes().try_into().map_err(|_| NotAnOperationId)?;
        let lower_hex = digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'));
        if lower_hex { Ok(PlanTag(digits)) } else { Err(NotAnOperationId) }
    }
}

impl fmt::Display for PlanTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|digit| write!(f, "{}", char::from(*digit)))
    }
}

impl FromStr for OperationId {
    type Err = NotAnOperationId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('/');
        let mut part = || parts.next().ok_or(NotAnOperationId);
        let id = OperationId {
            plan: part()?.parse()?,
            app: AppName::parse(part()?).map_err(|_| NotAnOperationId)?,
            epoch: part()?.parse().map_err(|_| NotAnOperationId)?,
            attempt: part()?.parse().map_err(|_| NotAnOperationId)?,
        };
        if parts.next().is_some() { Err(NotAnOperationId) } else { Ok(id) }
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.plan, self.app, self.epoch, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let text = "0123456789ab/ceph-cluster/7/2";
        let id: OperationId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!((id.app.as_str(), id.epoch, id.attempt), ("ceph-cluster", 7, 2));
        for bad in ["", "0123456789ab/a/1", "0123456789ab/a/1/2/3", "0123456789aB/a/1/2", "x/a/1/2"]
        {
            assert_eq!(bad.parse::<OperationId>(), Err(NotAnOperationId), "{bad}");
        }
    }
}
