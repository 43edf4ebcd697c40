//! The Applications of the platform that are there already.

use kube::Client;
use tiphys_argocd::{Application, Applications};
use tiphys_assess::preflight::Problem;
use tiphys_cluster::Cause;
use tiphys_model::Platform;

use super::in_time;

/// Nothing where the cluster does not know Applications.
pub(super) async fn list(
    client: &Client,
    platform: &Platform,
) -> Result<Option<Vec<Application>>, Problem> {
    let applications = Applications::of(client, &platform.argocd);
    let ours = |one: &Application| {
        platform.argocd.has_apps_in(&one.spec.project)
            && platform.apps.iter().any(|app| app.name.as_str() == one.name())
    };
    in_time(async {
        match applications.list(ours).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.cause() == Cause::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    })
    .await
}
