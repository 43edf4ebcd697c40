//! What Git has, as the root app sees it: a commit, and the platform file at that commit.

use kube::{Api, Client};
use tiphys_argocd::credentials::CredentialsError;
use tiphys_argocd::platform_file::{self, LABEL, PlatformFiles};
use tiphys_argocd::rest::CallError;
use tiphys_argocd::{AppAddress, Application, ArgoCdClient};
use tiphys_cluster::names::{self, Purpose};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation, Platform, PlatformName};
use tiphys_run::Revisions;

use crate::generators::{GeneratorError, one};

/// The root app's source at its newest commit.
#[derive(Debug)]
pub struct RootSource {
    pub revisions: Revisions,
    /// Of this platform, if the root app has it.
    pub files: Option<PlatformFiles>,
}

/// Why nobody can tell what Git has.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum PlatformFileError {
    NoRootApp { root: String, namespace: String },
    Several { root: String, revisions: Revisions },
    Manifests { root: String, source: CallError },
    Generators(#[from] GeneratorError),
    Credentials(#[from] CredentialsError),
    Request(#[from] RequestError),
}

impl Explain for PlatformFileError {
    fn explain(&self) -> Explanation {
        match self {
            PlatformFileError::NoRootApp { root, namespace } => Explanation::new(
                Exit::NotFound,
                "the platform has no root app in this cluster",
                format!("the Application {root} does not exist in the namespace {namespace}"),
            )
            .hint(
                "check the name and Argo CD's namespace (-n), or run `tiphys configure` with the \
                 platform file first",
            ),
            PlatformFileError::Several { root, revisions } => Explanation::new(
                Exit::Configuration,
                "the root app has more than one platform file",
                format!("{root} renders several ConfigMaps with the label {LABEL} at {revisions}"),
            )
            .hint("keep one of them"),
            PlatformFileError::Manifests { root, source } => Explanation::new(
                Exit::Failed,
                format!("cannot read what the root app {root} renders"),
                source.to_string(),
            )
            .hint("check the root app in Argo CD"),
            PlatformFileError::Generators(error) => error.explain(),
            PlatformFileError::Credentials(error) => error.explain(),
            PlatformFileError::Request(error) => error.explain(),
        }
    }
}

impl RootSource {
    /// The root app, if there is one; without Argo CD there is none.
    pub async fn root_app(
        client: &Client,
        platform: &Platform,
    ) -> Result<Option<Application>, RequestError> {
        let root = names::root_application(platform);
        let applications: Api<Application> =
            Api::namespaced(client.clone(), &platform.argocd.namespace);
        let what = format!("cannot read the root app `{root}`");
        match applications.get_opt(&root).await.map_err(RequestError::because(what)) {
            // Nobody knows what an Application is.
            Err(error) if error.cause() == Cause::NotFound => Ok(None),
            found => found,
        }
    }

    /// Of a platform of which little more than its name is known.
    pub async fn of(
        client: &Client,
        platform: &Platform,
        note: &dyn Fn(String),
    ) -> Result<Self, PlatformFileError> {
        let Some(found) = Self::root_app(client, platform).await? else {
            let root = names::root_application(platform);
            let namespace = platform.argocd.namespace.clone();
            return Err(PlatformFileError::NoRootApp { root, namespace });
        };
        let argocd = ArgoCdClient::new(client, platform, Purpose::Deploy).await?;
        let address = found.address();
        let revisions = one::refresh(&argocd, &address, note).await?.1.revisions;
        Self::at(revisions, &argocd, &address, &platform.name).await
    }

    pub(crate) async fn at(
        revisions: Revisions,
        argocd: &ArgoCdClient,
        root: &AppAddress,
        platform: &PlatformName,
    ) -> Result<Self, PlatformFileError> {
        let name = || root.name.to_string();
        let objects = argocd.manifests_at(root, &revisions).await;
        let objects =
            objects.map_err(|source| PlatformFileError::Manifests { root: name(), source })?;
        let files = platform_file::find(&objects.unwrap_or_default(), platform).map_err(|_| {
            PlatformFileError::Several { root: name(), revisions: revisions.clone() }
        })?;
        Ok(RootSource { revisions, files })
    }
}
