//! Apps with health criteria that run on another cluster than Argo CD. Criteria are asked here, so
//! theirs would never hold, and the run would wait for them until it has no time left.

use std::sync::Arc;

use tiphys_argocd::application::Application;
use tiphys_model::{Exit, Explain, Explanation, Plan};

/// Each app with its cluster.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explain())]
pub struct CriteriaOnOtherClusters {
    apps: Vec<(String, Arc<str>)>,
}

impl Explain for CriteriaOnOtherClusters {
    fn explain(&self) -> Explanation {
        let names: Vec<&str> = self.apps.iter().map(|(app, _)| app.as_str()).collect();
        let clusters: Vec<String> =
            self.apps.iter().map(|(app, cluster)| format!("`{app}` on {cluster}")).collect();
        Explanation::new(
            Exit::Configuration,
            format!("cannot check the health criteria of {}", names.join(", ")),
            format!(
                "Tiphys checks criteria only on the cluster where Argo CD runs; on other clusters: \
                 {}",
                clusters.join(", ")
            ),
        )
        .hint(
            "remove `health` from these apps in the platform file; a health script in argocd-cm \
             works on every cluster",
        )
    }
}

pub(super) fn refuse_criteria(
    plan: &Plan,
    applications: &[Application],
) -> Result<(), CriteriaOnOtherClusters> {
    let cluster = |name: &str| {
        let application = applications.iter().find(|application| application.name() == name)?;
        application.destination().other_cluster
    };
    let checked = plan.apps.iter().filter(|app| !app.app.health.is_empty());
    let apps: Vec<(String, Arc<str>)> = checked
        .filter_map(|app| Some((app.app.name.to_string(), cluster(app.app.name.as_str())?)))
        .collect();
    if apps.is_empty() { Ok(()) } else { Err(CriteriaOnOtherClusters { apps }) }
}
