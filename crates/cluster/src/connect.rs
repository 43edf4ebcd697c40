//! From kubeconfig to a client.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tiphys_model::{Exit, Explain, Explanation, chain};

use crate::agent;
use crate::patient::patient;
use crate::request::RequestError;

/// How to reach the cluster, as people say it.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// A file; without it `KUBECONFIG`, `~/.kube/config` or the pod's own account.
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

/// The cluster that is meant, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub server: String,
    /// In a pod there is none.
    pub context: Option<String>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.context {
            Some(context) => write!(f, "{} (context `{context}`)", self.server),
            None => write!(f, "{} (the cluster that this runs in)", self.server),
        }
    }
}

/// Where this program runs, as seen from the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a pod: the names of Services lead to them.
    Inside,
    Outside,
}

/// Longer than any answer that is not waited for on purpose.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl Access {
    pub async fn client(&self) -> Result<Client, ConnectError> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = None;
        let client = Client::try_from(config)
            .map_err(RequestError::because("the cluster cannot be addressed"))?;
        Ok(agent::named(&patient(&client), agent::PROGRAM))
    }

    pub async fn target(&self) -> Result<Target, ConnectError> {
        let server = self.config().await?.cluster_url.to_string();
        let server = server.trim_end_matches('/').to_owned();
        let kubeconfig = match &self.kubeconfig {
            Some(file) => Kubeconfig::read_from(file),
            None => Kubeconfig::read(),
        };
        let current = kubeconfig.ok().and_then(|kubeconfig| kubeconfig.current_context);
        Ok(Target { server, context: self.context.clone().or(current) })
    }

    /// Only a pod's own account leads nowhere but to its own cluster.
    #[must_use]
    pub fn place(&self) -> Place {
        let configured =
            self.kubeconfig.is_some() || self.context.is_some() || Kubeconfig::read().is_ok();
        if configured { Place::Outside } else { Place::Inside }
    }

    async fn config(&self) -> Result<Config, ConnectError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        let config = match &self.kubeconfig {
            Some(file) => match Kubeconfig::read_from(file) {
                Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
                Err(error) => Err(error),
            },
            // With a context given, only a kubeconfig can have it.
            None if self.context.is_some() => Config::from_kubeconfig(&options).await,
            None => {
                return Config::infer()
                    .await
                    .map_err(|error| ConnectError::Nothing(Box::new(error)));
            }
        };
        config.map_err(|error| match error {
            KubeconfigError::LoadContext(_) | KubeconfigError::CurrentContextNotSet => {
                let context = self.context.clone();
                ConnectError::NoContext { context, source: Box::new(error) }
            }
            error => ConnectError::Kubeconfig(Box::new(error)),
        })
    }
}

/// An error creating a client.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum ConnectError {
    Kubeconfig(#[source] Box<KubeconfigError>),
    /// Neither a kubeconfig nor a pod's own account.
    Nothing(#[source] Box<InferConfigError>),
    NoContext {
        /// The current one, if none was given.
        context: Option<String>,
        source: Box<KubeconfigError>,
    },
    Client(#[from] RequestError),
}

impl Explain for ConnectError {
    fn explain(&self) -> Explanation {
        let unusable = |why| {
            Explanation::new(Exit::Configuration, "there is no usable kubeconfig", why)
                .hint("give one with --kubeconfig or KUBECONFIG")
        };
        match self {
            ConnectError::Kubeconfig(error) => unusable(chain(error)),
            ConnectError::Nothing(error) => unusable(chain(error)),
            ConnectError::NoContext { context, source } => {
                let what = match context {
                    Some(context) => format!("the kubeconfig has no context `{context}`"),
                    None => "the kubeconfig has no current context".to_owned(),
                };
                Explanation::new(Exit::Configuration, what, chain(source))
                    .hint("`kubectl config get-contexts` lists them; choose one with --context")
            }
            ConnectError::Client(error) => error.explain(),
        }
    }
}
