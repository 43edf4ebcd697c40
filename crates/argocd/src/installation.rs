//! Whether there is an Argo CD, and whether it is where the platform file says.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use tiphys_cluster::{ClusterError, Kind};

/// Whether Argo CD is there. Discovery is open to everybody who is known to the API server.
pub async fn check(client: &Client, namespace: &str) -> Result<(), ClusterError> {
    let kinds = match client.list_api_group_resources("argoproj.io/v1alpha1").await {
        Ok(list) => list.resources,
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => {
            return Err(ClusterError::kube("the cluster does not say what it has")(error));
        }
    };
    for wanted in ["applications", "appprojects"] {
        if kinds.iter().all(|kind| kind.name != wanted) {
            return Err(ClusterError::new(
                Kind::Configuration,
                "there is no Argo CD in this cluster",
                format!("it has no {wanted}.argoproj.io"),
            )
            .hint("install Argo CD, or choose its cluster with --context or --kubeconfig"));
        }
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    for name in ["argocd-cm", "argocd-rbac-cm"] {
        let what = format!("the ConfigMap {name} in {namespace} cannot be read");
        let found = maps.get_opt(name).await.map_err(ClusterError::kube(what))?;
        found.ok_or_else(|| elsewhere(namespace, "ConfigMap", name))?;
    }
    Ok(())
}

/// What is said where an object of every Argo CD is missing.
#[must_use]
pub fn elsewhere(namespace: &str, kind: &str, name: &str) -> ClusterError {
    ClusterError::new(
        Kind::Configuration,
        format!("there is no Argo CD in the namespace `{namespace}`"),
        format!("it has no {kind} {name}"),
    )
    .hint("correct `spec.argocd.namespace` in the platform file, or install Argo CD there")
}
