//! The Argo CD that the platform is going to use.

use super::{Check, NO_CLUSTER, Problem, Requirement, Section};
use crate::argocd_version::{Support, supported};

fn version() -> Requirement {
    Requirement::new(Section::Cluster, "Argo CD version", supported())
}

/// The row for a cluster that cannot be reached.
#[must_use]
pub fn not_asked() -> Check {
    version().skipped(NO_CLUSTER)
}

/// The version that the platform file installs, or the one that runs already; none if there is no
/// Argo CD yet. One that cannot be found out is in nobody's way.
#[must_use]
pub fn judge(found: &Result<Option<Support>, Problem>) -> Check {
    let next = format!("use Argo CD {}: other versions are not tested", supported());
    match found {
        Ok(Some(Support::Supported(found))) => version().passed(found.to_string()),
        Ok(Some(Support::Unsupported(found))) => version().warned(found.to_string(), next),
        Ok(Some(Support::Unknown(said))) => version().warned(format!("unknown: {said}"), next),
        Ok(None) => version().skipped("Argo CD not found in the namespace"),
        Err(problem) => version().skipped(&problem.why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::{Outcome, Trouble};

    #[test]
    fn only_a_version_that_is_not_supported_is_a_warning() {
        let problem = Problem { trouble: Trouble::Rejected, why: "may not".to_owned(), next: None };
        for (found, outcome, shown) in [
            (Ok(Some(Support::of("v3.5.6"))), Outcome::Pass, "3.5.6"),
            (Ok(Some(Support::of("v3.6.0"))), Outcome::Warning, "3.6"),
            (Ok(Some(Support::of("latest"))), Outcome::Warning, "unknown: latest"),
            (Ok(None), Outcome::Skipped, "Argo CD not found in the namespace"),
            (Err(problem), Outcome::Skipped, "may not"),
        ] {
            let check = judge(&found);
            assert_eq!((check.outcome, check.found.as_str()), (outcome, shown));
        }
    }
}
