//! From kubeconfig to a client.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use kube::client::AuthError;
use kube::config::{KubeConfigOptions, KubeconfigError};
use kube::{Client, Config};
use tiphys_model::{Exit, Explain, Explanation, chain};

use crate::kubeconfig::{self, KubeconfigSource, NotRead};
use crate::patient::patient;
use crate::request::RequestError;
use crate::traced::traced;
use crate::{agent, unreachable};

/// How to reach the cluster, as people say it.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Without one, the pod's own account.
    pub kubeconfig: KubeconfigSource,
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
        let Chosen { mut config, target, place, plugin } = self.choose().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = None;
        let client = Client::try_from(config).map_err(|error| match (plugin, error) {
            (Some(command), kube::Error::Auth(source)) => {
                ConnectError::Plugin { command, source: Box::new(source) }
            }
            (_, error) => RequestError::because("cannot use the kubeconfig")(error).into(),
        })?;
        let client = traced(&unreachable::addressed(&client, target, place));
        Ok(agent::named(&patient(&client), agent::PROGRAM))
    }

    pub async fn target(&self) -> Result<Target, ConnectError> {
        Ok(self.choose().await?.target)
    }

    /// Only a pod's own account leads nowhere but to its own cluster.
    #[must_use]
    pub fn place(&self) -> Place {
        match kubeconfig::read(&self.kubeconfig) {
            Ok(None) if self.context.is_none() => Place::Inside,
            Ok(_) | Err(_) => Place::Outside,
        }
    }

    async fn choose(&self) -> Result<Chosen, ConnectError> {
        let found = kubeconfig::read(&self.kubeconfig).map_err(|error| match error {
            NotRead::Missing(files) => ConnectError::Missing(files),
            NotRead::Invalid(place, source) => {
                ConnectError::Kubeconfig { place, source: Box::new(source) }
            }
        })?;
        let Some(found) = found else { return self.of_this_pod() };
        let place = found.place.clone();
        let context = self.context.as_deref().or(found.current_context()).map(ToOwned::to_owned);
        let known = found.contexts();
        let context = match context {
            Some(context) if known.contains(&context) => context,
            context => return Err(ConnectError::NoContext { context, known, place }),
        };
        let plugin = found.plugin(&context).and_then(|plugin| plugin.command.clone());
        let options =
            KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(found.kubeconfig, &options).await;
        let config = config.map_err(|error| ConnectError::Kubeconfig {
            place: place.clone(),
            source: Box::new(error),
        })?;
        let target = Target { server: address(&config), context: Some(context) };
        Ok(Chosen { config, target, place: Some(place), plugin })
    }

    fn of_this_pod(&self) -> Result<Chosen, ConnectError> {
        // Only a kubeconfig can have a context.
        let config = match &self.context {
            Some(_) => None,
            None => Config::incluster().ok(),
        };
        let config = config.ok_or(ConnectError::Nothing)?;
        let target = Target { server: address(&config), context: None };
        Ok(Chosen { config, target, place: None, plugin: None })
    }
}

/// The cluster to talk to.
struct Chosen {
    config: Config,
    target: Target,
    /// Of the kubeconfig.
    place: Option<String>,
    /// The command that provides credentials.
    plugin: Option<String>,
}

fn address(config: &Config) -> String {
    config.cluster_url.to_string().trim_end_matches('/').to_owned()
}

/// An error creating a client.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum ConnectError {
    /// None of these files exists.
    Missing(Vec<PathBuf>),
    Kubeconfig {
        place: String,
        source: Box<KubeconfigError>,
    },
    /// Neither a kubeconfig nor a pod's own account.
    Nothing,
    NoContext {
        /// `None`: none was given, and the kubeconfig has no current one.
        context: Option<String>,
        known: Vec<String>,
        place: String,
    },
    /// The credential plugin failed.
    Plugin {
        command: String,
        source: Box<AuthError>,
    },
    Client(#[from] RequestError),
}

impl Explain for ConnectError {
    fn explain(&self) -> Explanation {
        let wrong = |what: String, why: String| Explanation::new(Exit::Configuration, what, why);
        match self {
            ConnectError::Missing(files) => {
                wrong("kubeconfig not found".to_owned(), kubeconfig::in_words(files))
                    .hint("check the path given with --kubeconfig or KUBECONFIG")
            }
            ConnectError::Kubeconfig { place, source } => {
                wrong(format!("invalid kubeconfig {place}"), defect(source)).hint(
                    "repair the file, or choose another one with --kubeconfig or KUBECONFIG",
                )
            }
            ConnectError::Nothing => wrong(
                "no kubeconfig found".to_owned(),
                "KUBECONFIG is not set, ~/.kube/config does not exist, and this is not a pod with a \
                 service account"
                    .to_owned(),
            )
            .hint("give a kubeconfig with --kubeconfig or KUBECONFIG"),
            ConnectError::NoContext { context, known, place } => {
                let what = match context {
                    Some(context) => format!("unknown context `{context}`"),
                    None => "no context selected".to_owned(),
                };
                let why = match known.as_slice() {
                    [] => format!("{place} has no contexts"),
                    known => format!("{place} has: {}", known.join(", ")),
                };
                wrong(what, why).hint("choose a context with --context")
            }
            ConnectError::Plugin { command, source } => match &**source {
                AuthError::AuthExecStart(error) if error.kind() == io::ErrorKind::NotFound => wrong(
                    format!("credential plugin `{command}` not found"),
                    "the kubeconfig's user gets its credentials from it, and it is not in the PATH"
                        .to_owned(),
                )
                .hint("install the plugin, or choose another context with --context"),
                source => Explanation::new(
                    Exit::Credentials,
                    format!("credential plugin `{command}` failed"),
                    plugin_output(source),
                )
                .hint("run the plugin by hand, and log in again if it asks for that"),
            },
            ConnectError::Client(error) => error.explain(),
        }
    }
}

/// What is wrong with a kubeconfig.
fn defect(error: &KubeconfigError) -> String {
    match error {
        // What follows is a picture of the place without the file's name.
        KubeconfigError::Parse(error) => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
        error => chain(error),
    }
}

/// What a plugin said on its way out.
fn plugin_output(error: &AuthError) -> String {
    let AuthError::AuthExecRun { out, .. } = error else { return chain(error) };
    let said = String::from_utf8_lossy(&out.stderr);
    match said.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) => format!("{}: {}", out.status, last.trim()),
        None => out.status.to_string(),
    }
}
