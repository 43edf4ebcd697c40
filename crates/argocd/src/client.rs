//! How a run acts on Argo CD: through its API, or through the fields of Applications.

mod fields;
pub mod finalizers;

use kube::Client;
use kube::api::DynamicObject;
use serde_json::Value;
use tiphys_model::Platform;
use tiphys_model::platform::ArgoCdAccess;

use crate::address::AppAddress;
use crate::application::Application;
use crate::applications::Applications;
use crate::credentials::{self, CredentialsError};
use crate::rest::{CallError, RenderedApplication, RestClient, SyncRequest};
use fields::FieldsClient;
use tiphys_cluster::agent::Guard;
use tiphys_cluster::names::Purpose;
use tiphys_run::{Revisions, Stamp};

/// One of the two ways. Both mean the same.
#[derive(Clone)]
pub enum ArgoCdClient {
    Rest(RestClient),
    Fields(FieldsClient),
}

impl ArgoCdClient {
    /// The way that the platform file names, with the rights for a purpose.
    pub async fn new(
        client: &Client,
        platform: &Platform,
        purpose: Purpose,
    ) -> Result<Self, CredentialsError> {
        match platform.argocd.access {
            ArgoCdAccess::Kubernetes => {
                let applications = Applications::of(client, &platform.argocd);
                Ok(ArgoCdClient::Fields(FieldsClient::new(applications)))
            }
            ArgoCdAccess::Api => {
                credentials::argocd(client, platform, purpose).await.map(ArgoCdClient::Rest)
            }
        }
    }

    /// The same way, as part of a run.
    #[must_use]
    pub fn in_run(self, client: &Client, platform: &Platform, run: &str, guard: Guard) -> Self {
        match self {
            ArgoCdClient::Rest(api) => ArgoCdClient::Rest(api.in_run(run, guard)),
            ArgoCdClient::Fields(fields) => {
                let applications = Applications::of(client, &platform.argocd);
                ArgoCdClient::Fields(fields.reaching(applications))
            }
        }
    }

    /// The version of Argo CD; only its API can say that.
    pub async fn version(&self) -> Result<Option<String>, CallError> {
        match self {
            ArgoCdClient::Rest(api) => api.version().await.map(Some),
            ArgoCdClient::Fields(_) => Ok(None),
        }
    }

    /// Takes note of when Argo CD has compared an app: that shows which refreshes it has missed.
    pub fn compared(&self, app: &str, at: Option<Stamp>) {
        match self {
            ArgoCdClient::Rest(api) => api.refreshes.compared(app, at),
            ArgoCdClient::Fields(fields) => fields.refreshes.compared(app, at),
        }
    }

    /// A normal refresh; returns when Argo CD has compared and assessed the app anew.
    pub async fn refresh(&self, app: &AppAddress) -> Result<Application, CallError> {
        match self {
            ArgoCdClient::Rest(api) => api.refresh(app).await,
            ArgoCdClient::Fields(fields) => fields.refresh(app).await,
        }
    }

    /// Asks for a sync; the Application with the operation in it.
    pub async fn sync(
        &self,
        app: &AppAddress,
        request: SyncRequest<'_>,
    ) -> Result<Application, CallError> {
        match self {
            ArgoCdClient::Rest(api) => api.sync(app, request).await,
            ArgoCdClient::Fields(fields) => fields.sync(app, request).await,
        }
    }

    /// The Applications of an ApplicationSet as they should be; only Argo CD's API can say that.
    pub async fn render(
        &self,
        set: &DynamicObject,
        project: &str,
    ) -> Result<Option<Vec<RenderedApplication>>, CallError> {
        match self {
            ArgoCdClient::Rest(api) => api.render(set, project).await.map(Some),
            ArgoCdClient::Fields(_) => Ok(None),
        }
    }

    /// The objects that an Application renders at these revisions; only Argo CD's API can say that.
    pub async fn manifests_at(
        &self,
        app: &AppAddress,
        revisions: &Revisions,
    ) -> Result<Option<Vec<Value>>, CallError> {
        match self {
            ArgoCdClient::Rest(api) => api.manifests_at(app, revisions).await.map(Some),
            ArgoCdClient::Fields(_) => Ok(None),
        }
    }

    /// Stops the operation under way.
    pub async fn terminate(&self, app: &AppAddress) -> Result<(), CallError> {
        match self {
            ArgoCdClient::Rest(api) => api.terminate(app).await,
            ArgoCdClient::Fields(fields) => fields.terminate(app).await,
        }
    }

    /// Deletes the Application and, in the foreground, what it has applied.
    pub async fn delete(&self, app: &AppAddress) -> Result<(), CallError> {
        match self {
            ArgoCdClient::Rest(api) => api.delete(app).await,
            ArgoCdClient::Fields(fields) => fields.delete(app).await,
        }
    }

    /// Deletes the Application and leaves what it has applied.
    pub async fn delete_orphaning(&self, app: &AppAddress) -> Result<(), CallError> {
        match self {
            ArgoCdClient::Rest(api) => api.delete_orphaning(app).await,
            ArgoCdClient::Fields(fields) => fields.delete_orphaning(app).await,
        }
    }
}
