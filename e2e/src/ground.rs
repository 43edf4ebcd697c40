//! A cluster, whatever is in it: the lab's, or one that the environment names.

use std::env;
use std::path::PathBuf;

use kube::Client;
use tiphys_cluster::{Access, KubeconfigSource};
use tiphys_lab::Home;
use tiphys_lab::git::GitServer;

use crate::Place;
use crate::world::log_tails;

/// A cluster, and a Git server that both can reach.
pub struct Ground {
    pub client: Client,
    pub git: GitServer,
    pub kubeconfig: PathBuf,
    /// Of the lab; another cluster's is not ours to read.
    pub audit_log: Option<PathBuf>,
}

impl Place for Ground {
    async fn open() -> Result<Ground, String> {
        let home = Home::from_environment();
        let given = env::var_os("TIPHYS_E2E_KUBECONFIG").map(PathBuf::from);
        let audit_log = given.is_none().then(|| home.audit_log());
        let kubeconfig = given.unwrap_or_else(|| home.kubeconfig());
        if !kubeconfig.exists() {
            return Err(format!(
                "there is no cluster: {} is not there; start one with `lab up`",
                kubeconfig.display()
            ));
        }
        let source = KubeconfigSource::Usual(Some(kubeconfig.clone()));
        let access = Access { kubeconfig: source, context: None };
        let client = access.client().await.map_err(|error| error.to_string())?;
        let git = GitServer::from_environment(&home).map_err(|error| error.to_string())?;
        Ok(Ground { client, git, kubeconfig, audit_log })
    }

    async fn log_tails(&self, about: &str) -> String {
        log_tails(&self.client, about).await
    }
}
