//! From kubeconfig to a client.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::agent;
use crate::error::{ClusterError, Kind, chain};

/// How to reach the cluster, as people say it.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// A file; without it `KUBECONFIG`, `~/.kube/config` or the pod's own account.
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

/// Longer than any answer that is not waited for on purpose.
const PATIENCE: Duration = Duration::from_secs(10);

impl Access {
    pub async fn client(&self) -> Result<Client, ClusterError> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(PATIENCE);
        config.read_timeout = None;
        let client = Client::try_from(config)
            .map_err(ClusterError::kube("the cluster cannot be addressed"))?;
        Ok(agent::named(&client, agent::PROGRAM))
    }

    async fn config(&self) -> Result<Config, ClusterError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        let config = match &self.kubeconfig {
            Some(file) => match Kubeconfig::read_from(file) {
                Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
                Err(error) => Err(error),
            },
            // With a context given, only a kubeconfig can have it.
            None if self.context.is_some() => Config::from_kubeconfig(&options).await,
            None => return Config::infer().await.map_err(|error| no_config(&chain(&error))),
        };
        config.map_err(|error| match &error {
            KubeconfigError::LoadContext(_) | KubeconfigError::CurrentContextNotSet => {
                let what = match &self.context {
                    Some(context) => format!("the kubeconfig has no context `{context}`"),
                    None => "the kubeconfig has no current context".to_owned(),
                };
                ClusterError::new(Kind::Configuration, what, chain(&error))
                    .hint("`kubectl config get-contexts` lists them; choose one with --context")
            }
            _ => no_config(&chain(&error)),
        })
    }
}

fn no_config(why: &str) -> ClusterError {
    ClusterError::new(Kind::Configuration, "there is no usable kubeconfig", why)
        .hint("give one with --kubeconfig or KUBECONFIG")
}
