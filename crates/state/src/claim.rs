//! Whose the project of a platform is. A copy of a platform file under another name would deploy and
//! remove what belongs to the first platform.

use kube::{Client, ResourceExt};
use tiphys_argocd::app_project;
use tiphys_cluster::names::PLATFORM_LABEL;
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation, Platform};

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum ClaimError {
    /// The label of the project names another platform.
    AnotherPlatform {
        project: String,
        platform: String,
        owner: String,
    },
    Request(#[from] RequestError),
}

impl Explain for ClaimError {
    fn explain(&self) -> Explanation {
        match self {
            ClaimError::AnotherPlatform { project, platform, owner } => Explanation::new(
                Exit::Configuration,
                format!("the AppProject `{project}` belongs to another platform than `{platform}`"),
                format!("its label {PLATFORM_LABEL} says `{owner}`"),
            )
            .hint(format!(
                "use the file of the platform `{owner}`, or give this one a project of its own in \
                 `spec.argocd.project`"
            )),
            ClaimError::Request(error) => error.explain(),
        }
    }
}

/// A project without a label was not made by `tiphys configure`, and is whoever's uses it.
pub async fn refuse_project_of_another(
    client: &Client,
    platform: &Platform,
) -> Result<(), ClaimError> {
    let projects = app_project::api(client, &platform.argocd.namespace);
    let project = &platform.argocd.project;
    let what = format!("the AppProject `{project}` cannot be read");
    let found = match projects.get_opt(project).await.map_err(RequestError::because(what)) {
        // The CRD is gone with Argo CD.
        Err(error) if error.cause() == Cause::NotFound => None,
        found => found?,
    };
    match found.and_then(|found| found.labels().get(PLATFORM_LABEL).cloned()) {
        Some(owner) if owner != platform.name.as_str() => Err(ClaimError::AnotherPlatform {
            project: project.clone(),
            platform: platform.name.to_string(),
            owner,
        }),
        Some(_) | None => Ok(()),
    }
}
