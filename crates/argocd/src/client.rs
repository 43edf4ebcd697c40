//! How a run acts on Argo CD: through its API, or through the fields of Applications.

mod fields;

use kube::{Api, Client};
use tiphys_model::Platform;
use tiphys_model::platform::ArgoCdAccess;

use crate::application::Application;
use crate::credentials;
use crate::rest::{ArgoCd, CallError, SyncRequest};
use fields::Fields;
use tiphys_cluster::ClusterError;
use tiphys_cluster::names::Purpose;

/// One of the two ways. Both mean the same.
#[derive(Clone)]
pub enum Actor {
    Api(ArgoCd),
    Fields(Fields),
}

impl Actor {
    /// The way that the platform file names, with the rights for a purpose.
    pub async fn new(
        client: &Client,
        platform: &Platform,
        purpose: Purpose,
    ) -> Result<Self, ClusterError> {
        let namespace = &platform.argocd.namespace;
        match platform.argocd.access {
            ArgoCdAccess::Kubernetes => {
                Ok(Actor::Fields(Fields::new(Api::namespaced(client.clone(), namespace))))
            }
            ArgoCdAccess::Api => {
                credentials::argocd(client, platform, purpose).await.map(Actor::Api)
            }
        }
    }

    /// The same way, as part of a run.
    #[must_use]
    pub fn in_run(self, client: &Client, platform: &Platform, run: &str) -> Self {
        match self {
            Actor::Api(api) => Actor::Api(api.in_run(run)),
            Actor::Fields(_) => {
                let namespace = &platform.argocd.namespace;
                Actor::Fields(Fields::new(Api::namespaced(client.clone(), namespace)))
            }
        }
    }

    /// A normal refresh; returns when Argo CD has compared and assessed the app anew.
    pub async fn refresh(&self, app: &str, project: &str) -> Result<Application, CallError> {
        match self {
            Actor::Api(api) => api.refresh(app, project).await,
            Actor::Fields(fields) => fields.refresh(app).await,
        }
    }

    /// Asks for a sync; the Application with the operation in it.
    pub async fn sync(
        &self,
        app: &str,
        request: SyncRequest<'_>,
    ) -> Result<Application, CallError> {
        match self {
            Actor::Api(api) => api.sync(app, request).await,
            Actor::Fields(fields) => fields.sync(app, request).await,
        }
    }

    /// Stops the operation under way.
    pub async fn terminate(&self, app: &str, project: &str) -> Result<(), CallError> {
        match self {
            Actor::Api(api) => api.terminate(app, project).await,
            Actor::Fields(fields) => fields.terminate(app).await,
        }
    }

    /// Deletes the Application and, in the foreground, what it has applied.
    pub async fn delete(&self, app: &str, project: &str) -> Result<(), CallError> {
        match self {
            Actor::Api(api) => api.delete(app, project).await,
            Actor::Fields(fields) => fields.delete(app).await,
        }
    }

    /// Deletes the Application and leaves what it has applied.
    pub async fn release(&self, app: &str, project: &str) -> Result<(), CallError> {
        match self {
            Actor::Api(api) => api.release(app, project).await,
            Actor::Fields(fields) => fields.release(app).await,
        }
    }
}
