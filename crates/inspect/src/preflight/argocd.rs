//! Looking for the version of Argo CD.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use tiphys_assess::argocd_version::Support;
use tiphys_assess::preflight::argocd::{judge, not_asked};
use tiphys_assess::preflight::{Check, Problem};
use tiphys_model::Platform;
use tiphys_model::bootstrap::PrimitiveName;

use super::within;

/// How upstream's manifests and its chart label the pods that do the work.
const CONTROLLER: &str = "app.kubernetes.io/name=argocd-application-controller";

/// The version that the platform file pins, or that of the Argo CD that is there.
pub(super) async fn look(client: &Client, platform: &Platform) -> Check {
    match pinned(platform) {
        Some(support) => judge(&Ok(Some(support))),
        None => judge(&running(client, platform).await),
    }
}

/// The same row for a cluster that cannot be reached.
pub(super) fn out_of_reach(platform: &Platform) -> Check {
    pinned(platform).map_or_else(not_asked, |support| judge(&Ok(Some(support))))
}

fn pinned(platform: &Platform) -> Option<Support> {
    let mut primitives =
        platform.bootstrap.iter().flat_map(|bootstrap| bootstrap.primitives.iter());
    let argocd = primitives.find(|primitive| primitive.name == PrimitiveName::ArgoCd);
    argocd.map(|argocd| Support::of(&argocd.version))
}

async fn running(client: &Client, platform: &Platform) -> Result<Option<Support>, Problem> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &platform.argocd.namespace);
    let labelled = ListParams::default().labels(CONTROLLER);
    let listed = within("cannot list the pods of Argo CD", pods.list(&labelled)).await?;
    Ok(worst(listed.items.iter().filter_map(image)))
}

fn image(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// During an upgrade there are several.
fn worst<'a>(images: impl Iterator<Item = &'a str>) -> Option<Support> {
    let mut all: Vec<Support> = images.map(Support::of_image).collect();
    all.sort_by_key(|support| support.warning().is_none());
    all.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pod_that_is_not_supported_decides() {
        let found = |images: &[&'static str]| worst(images.iter().copied());
        assert_eq!(found(&[]), None);
        assert_eq!(found(&["argocd:v3.5.6"]), Some(Support::of("3.5.6")));
        assert_eq!(found(&["argocd:v3.5.6", "argocd:v3.6.0"]), Some(Support::of("3.6.0")));
    }
}
