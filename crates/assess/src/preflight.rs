//! Phase 0: whether everything is there that a platform needs before anything is touched.
//!
//! What was seen becomes checks here, and checks become a verdict. Who looked, and how, this
//! does not know.

pub mod address;
pub mod argocd;
pub mod cluster;
pub mod connectivity;
pub mod credentials;
pub mod nodes;
pub mod quantity;
pub mod rendered;
pub mod resources;
pub mod ssh;
pub mod tools;
pub mod version;

use serde::{Serialize, Serializer};
use tiphys_model::{Exit, PlatformName};

pub use cluster::Inventory;
pub use connectivity::Reach;
pub use credentials::Credential;
pub use version::Version;

/// The tables of the contract, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    Tools,
    Python,
    Collections,
    Cluster,
    Connectivity,
    Credentials,
    Absence,
}

impl Section {
    pub const ALL: [Section; 7] = [
        Section::Tools,
        Section::Python,
        Section::Collections,
        Section::Cluster,
        Section::Connectivity,
        Section::Credentials,
        Section::Absence,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Section::Tools => "tools",
            Section::Python => "python",
            Section::Collections => "collections",
            Section::Cluster => "cluster",
            Section::Connectivity => "connectivity",
            Section::Credentials => "credentials",
            Section::Absence => "absence",
        }
    }
}

/// What rows of [`Section::Absence`] require of things that Tiphys installs.
pub const ABSENT_OR_INSTALLED: &str = "absent, or installed by Tiphys";

/// Why rows about the cluster are skipped if it cannot be reached.
pub const NO_CLUSTER: &str = "cannot reach the cluster";

/// One row of a table: what must be, what was found, and what that means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub section: Section,
    pub name: String,
    pub required: String,
    pub found: String,
    pub outcome: Outcome,
    /// What to do, where there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Pass,
    /// It works, but not as it should.
    Warning,
    /// It was not looked at; `found` says why.
    Skipped,
    /// The platform cannot be set up like this.
    Fail(Trouble),
}

impl Outcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Warning => "warning",
            Outcome::Skipped => "skipped",
            Outcome::Fail(_) => "fail",
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What kind of failure it is: the exit code follows. The worst is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Something that must be there is not, or is not as it must be.
    Missing,
    /// Credentials were not accepted, or lack a right.
    Rejected,
    /// The cluster does not answer.
    Unreachable,
}

/// Why something could not be found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub trouble: Trouble,
    pub why: String,
    pub next: Option<String>,
}

/// What a check is about, before anybody has looked.
#[derive(Debug, Clone)]
pub struct Requirement {
    section: Section,
    name: String,
    required: String,
}

impl Requirement {
    pub fn new(section: Section, name: impl Into<String>, required: impl Into<String>) -> Self {
        Requirement { section, name: name.into(), required: required.into() }
    }

    pub fn passed(self, found: impl Into<String>) -> Check {
        self.ended(found, Outcome::Pass, None)
    }

    pub fn skipped(self, why: impl Into<String>) -> Check {
        self.ended(why, Outcome::Skipped, None)
    }

    pub fn warned(self, found: impl Into<String>, next: impl Into<String>) -> Check {
        self.ended(found, Outcome::Warning, Some(next.into()))
    }

    pub fn failed(
        self,
        trouble: Trouble,
        found: impl Into<String>,
        next: impl Into<String>,
    ) -> Check {
        self.ended(found, Outcome::Fail(trouble), Some(next.into()))
    }

    /// It could not be found out, which is as bad as not being there.
    #[must_use]
    pub fn unknown(self, problem: &Problem) -> Check {
        self.ended(&problem.why, Outcome::Fail(problem.trouble), problem.next.clone())
    }

    fn ended(self, found: impl Into<String>, outcome: Outcome, next: Option<String>) -> Check {
        let Requirement { section, name, required } = self;
        Check { section, name, required, found: found.into(), outcome, next }
    }
}

/// What follows from all checks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// Nothing is in the way; there may be warnings.
    Ready,
    Missing,
    Rejected,
    Unreachable,
}

impl Readiness {
    #[must_use]
    pub fn of(checks: &[Check]) -> Self {
        let troubles = checks.iter().filter_map(|check| match check.outcome {
            Outcome::Fail(trouble) => Some(trouble),
            Outcome::Pass | Outcome::Warning | Outcome::Skipped => None,
        });
        match troubles.max() {
            None => Readiness::Ready,
            Some(Trouble::Missing) => Readiness::Missing,
            Some(Trouble::Rejected) => Readiness::Rejected,
            Some(Trouble::Unreachable) => Readiness::Unreachable,
        }
    }

    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            Readiness::Ready => Exit::Done,
            Readiness::Missing => Exit::Configuration,
            Readiness::Rejected => Exit::Credentials,
            Readiness::Unreachable => Exit::Unreachable,
        }
    }
}

/// What one look at a part of it brings in.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    pub checks: Vec<Check>,
    pub inventory: Option<Inventory>,
    pub connectivity: Vec<Reach>,
    pub credentials: Vec<Credential>,
}

/// The contract of `preflight -o json`: the four outputs of Phase 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub platform: PlatformName,
    #[serde(rename = "verdict")]
    pub readiness: Readiness,
    pub checks: Vec<Check>,
    /// Not known of a cluster that cannot be read.
    pub inventory: Option<Inventory>,
    pub connectivity: Vec<Reach>,
    pub credentials: Vec<Credential>,
}

impl Report {
    /// Without a section, for who has said that it does not matter.
    #[must_use]
    pub fn without(mut self, section: Section) -> Self {
        self.checks.retain(|check| check.section != section);
        self.readiness = Readiness::of(&self.checks);
        self
    }

    /// Checks stand in the order of their sections, and within one as they came.
    #[must_use]
    pub fn new(platform: PlatformName, findings: impl IntoIterator<Item = Findings>) -> Self {
        let mut all = Findings::default();
        for found in findings {
            all.checks.extend(found.checks);
            all.inventory = all.inventory.or(found.inventory);
            all.connectivity.extend(found.connectivity);
            all.credentials.extend(found.credentials);
        }
        let Findings { mut checks, inventory, connectivity, credentials } = all;
        checks.sort_by_key(|check| check.section);
        let readiness = Readiness::of(&checks);
        Report { platform, readiness, checks, inventory, connectivity, credentials }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: Outcome) -> Check {
        Requirement::new(Section::Tools, "jq", "1.6 or newer").ended("1.5", outcome, None)
    }

    #[test]
    fn the_worst_failure_decides_and_warnings_do_not() {
        use Outcome::{Fail, Pass, Skipped, Warning};
        use Trouble::{Missing, Rejected, Unreachable};
        let cases: [(&[Outcome], u8); 7] = [
            (&[], 0),
            (&[Pass, Warning, Skipped], 0),
            (&[Fail(Missing), Pass], 3),
            (&[Warning, Fail(Rejected)], 4),
            (&[Fail(Unreachable)], 6),
            (&[Fail(Rejected), Fail(Missing)], 4),
            (&[Fail(Missing), Fail(Unreachable), Fail(Rejected)], 6),
        ];
        for (outcomes, code) in cases {
            let checks: Vec<Check> = outcomes.iter().map(|outcome| check(*outcome)).collect();
            assert_eq!(Readiness::of(&checks).exit().code(), code, "{outcomes:?}");
        }
    }

    #[test]
    fn what_does_not_matter_does_not_decide() {
        let checks = vec![check(Outcome::Fail(Trouble::Missing))];
        let findings = Findings { checks, ..Findings::default() };
        let report = Report::new(PlatformName::parse("demo").unwrap(), [findings]);
        assert_eq!(report.clone().without(Section::Absence).readiness, Readiness::Missing);
        assert_eq!(report.without(Section::Tools).readiness, Readiness::Ready);
    }

    #[test]
    fn checks_stand_in_the_order_of_the_contract() {
        let of = |section: Section| Findings {
            checks: vec![Requirement::new(section, "a", "b").passed("c")],
            ..Findings::default()
        };
        let platform = PlatformName::parse("demo").unwrap();
        let report = Report::new(platform, Section::ALL.into_iter().rev().map(of));
        let sections: Vec<Section> = report.checks.iter().map(|check| check.section).collect();
        assert_eq!(sections, Section::ALL);
    }
}
