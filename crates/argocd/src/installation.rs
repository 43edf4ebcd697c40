//! Whether there is an Argo CD, and whether it is where the platform file says.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use tiphys_cluster::RequestError;
use tiphys_model::{Exit, Explain, Explanation};

/// Whether Argo CD is there. Discovery is open to everybody who is known to the API server.
pub async fn check(client: &Client, namespace: &str) -> Result<(), InstallationError> {
    let kinds = match client.list_api_group_resources("argoproj.io/v1alpha1").await {
        Ok(list) => list.resources,
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => {
            let what = "cannot list the resources of argoproj.io/v1alpha1";
            return Err(RequestError::because(what)(error).into());
        }
    };
    for wanted in ["applications", "appprojects"] {
        if kinds.iter().all(|kind| kind.name != wanted) {
            return Err(InstallationError::Absent { kind: wanted });
        }
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    for name in ["argocd-cm", "argocd-rbac-cm"] {
        let what = format!("cannot read the ConfigMap {name} in {namespace}");
        let found = maps.get_opt(name).await.map_err(RequestError::because(what))?;
        found.ok_or_else(|| InstallationError::elsewhere(namespace, "ConfigMap", name))?;
    }
    Ok(())
}

/// Why Argo CD cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum InstallationError {
    /// The cluster does not know what Applications are.
    Absent {
        kind: &'static str,
    },
    /// An object of every Argo CD is not in the namespace.
    Elsewhere {
        namespace: String,
        kind: &'static str,
        name: String,
    },
    Request(#[from] RequestError),
}

impl InstallationError {
    #[must_use]
    pub fn elsewhere(namespace: &str, kind: &'static str, name: &str) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        InstallationError::Elsewhere { namespace, kind, name }
    }
}

impl Explain for InstallationError {
    fn explain(&self) -> Explanation {
        match self {
            InstallationError::Absent { kind } => Explanation::new(
                Exit::Configuration,
                "Argo CD not found in this cluster",
                format!("the CRD {kind}.argoproj.io is missing"),
            )
            .hint("install Argo CD, or choose its cluster with --context or --kubeconfig"),
            InstallationError::Elsewhere { namespace, kind, name } => Explanation::new(
                Exit::Configuration,
                format!("Argo CD not found in the namespace `{namespace}`"),
                format!("the {kind} {name} is missing"),
            )
            .hint("correct `spec.argocd.namespace` in the platform file, or install Argo CD there"),
            InstallationError::Request(error) => error.explain(),
        }
    }
}
