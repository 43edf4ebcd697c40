//! What must be reachable, as RFC 3.2.5 lists it. The cluster is what must reach it; what is
//! tried here is tried from where this program runs, and says so.

use serde::Serialize;
use tiphys_model::Platform;
use tiphys_model::bootstrap::Manifests;

use super::address::{redacted, registry};
use super::{Check, Requirement, Section, Trouble};

/// What something is reached for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Git,
    Charts,
    Registry,
    /// A registry that stands in for another.
    Mirror,
    Manifests,
}

impl Purpose {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Purpose::Git => "git",
            Purpose::Charts => "charts",
            Purpose::Registry => "registry",
            Purpose::Mirror => "mirror",
            Purpose::Manifests => "manifests",
        }
    }
}

/// A place that the platform file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub purpose: Purpose,
    /// A URL; of a registry, its host and port.
    pub address: String,
}

/// The third output of Phase 0, for one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    pub purpose: Purpose,
    pub address: String,
    pub reachable: Reachable,
    pub detail: String,
    pub tried_from: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reachable {
    Yes,
    No,
    /// Nobody could try.
    NotTried,
}

/// What came of trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    Answers(String),
    /// Why not, and what to do.
    Away(String, String),
    NotTried(String),
}

/// Every place that the platform names, once each.
#[must_use]
pub fn endpoints(platform: &Platform) -> Vec<Endpoint> {
    let mut all: Vec<Endpoint> = Vec::new();
    let mut add = |purpose, address: &str| {
        let endpoint = Endpoint { purpose, address: address.to_owned() };
        // A mirror is a registry too: once is enough.
        if !all.iter().any(|known| known.address == endpoint.address) {
            all.push(endpoint);
        }
    };
    if let Some(source) = &platform.source {
        add(Purpose::Git, &source.repo_url);
    }
    if let Some(bootstrap) = &platform.bootstrap {
        for mirror in &bootstrap.images {
            add(Purpose::Mirror, registry(&mirror.to).0);
        }
        for host in &bootstrap.endpoints.registries {
            add(Purpose::Registry, host);
        }
        for url in &bootstrap.endpoints.charts {
            add(Purpose::Charts, url);
        }
        for primitive in &bootstrap.primitives {
            match &primitive.manifests {
                Manifests::Path(_) => {}
                Manifests::Url(url) => add(Purpose::Manifests, url),
                Manifests::Oci(reference) => add(Purpose::Registry, registry(reference).0),
                Manifests::Chart(chart) => match chart.repository.strip_prefix("oci://") {
                    Some(reference) => add(Purpose::Registry, registry(reference).0),
                    None => add(Purpose::Charts, &chart.repository),
                },
            }
        }
    }
    all
}

/// A row of the RFC's table that the platform file has nothing for.
#[must_use]
pub fn unnamed(all: &[Endpoint]) -> Vec<Check> {
    let named = |purposes: &[Purpose]| all.iter().any(|one| purposes.contains(&one.purpose));
    let rows = [
        ("git", &[Purpose::Git] as &[Purpose], "the platform file has no `source`"),
        (
            "registry",
            &[Purpose::Registry, Purpose::Mirror],
            "neither `bootstrap.endpoints.registries` nor `bootstrap.images` is set",
        ),
        ("charts", &[Purpose::Charts], "`bootstrap.endpoints.charts` is not set"),
    ];
    let missing = rows.into_iter().filter(|(_, purposes, _)| !named(purposes));
    missing.map(|(name, _, why)| requirement(name.to_owned()).skipped(why)).collect()
}

fn requirement(name: String) -> Requirement {
    Requirement::new(Section::Connectivity, name, "answers")
}

#[must_use]
pub fn judge(endpoint: &Endpoint, tried: &Tried) -> (Check, Reach) {
    let address = redacted(&endpoint.address);
    let requirement = requirement(format!("{} {address}", endpoint.purpose.as_str()));
    let (check, reachable, detail) = match tried {
        Tried::Answers(detail) => (requirement.passed(detail), Reachable::Yes, detail),
        Tried::Away(why, next) => {
            (requirement.failed(Trouble::Missing, why, next), Reachable::No, why)
        }
        Tried::NotTried(why) => {
            let next = "try it manually from a node of the cluster";
            (requirement.warned(why, next), Reachable::NotTried, why)
        }
    };
    let reach = Reach {
        purpose: endpoint.purpose,
        address,
        reachable,
        detail: detail.clone(),
        tried_from: "this machine",
    };
    (check, reach)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Outcome;

    #[test]
    fn what_is_tried_becomes_a_check_and_a_line_of_the_report() {
        let git = Endpoint {
            purpose: Purpose::Git,
            address: "https://me:hunter2@git.example/p.git".to_owned(),
        };
        let text = |text: &str| text.to_owned();
        let cases = [
            (Tried::Answers(text("yes")), Outcome::Pass, Reachable::Yes),
            (
                Tried::Away(text("refused"), text("do")),
                Outcome::Fail(Trouble::Missing),
                Reachable::No,
            ),
            (Tried::NotTried(text("no git")), Outcome::Warning, Reachable::NotTried),
        ];
        for (tried, outcome, reachable) in cases {
            let (check, reach) = judge(&git, &tried);
            assert_eq!((check.outcome, reach.reachable), (outcome, reachable), "{tried:?}");
            assert_eq!(check.name, "git https://…@git.example/p.git");
            assert!(!format!("{check:?}{reach:?}").contains("hunter2"));
        }
    }

    #[test]
    fn rows_without_an_endpoint_are_told() {
        let registry = Endpoint { purpose: Purpose::Mirror, address: "mirror.example".to_owned() };
        let names = |all: &[Endpoint]| -> Vec<String> {
            unnamed(all).into_iter().map(|check| check.name).collect()
        };
        assert_eq!(names(&[registry]), ["git", "charts"]);
        assert_eq!(names(&[]), ["git", "registry", "charts"]);
    }
}
