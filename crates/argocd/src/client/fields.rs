//! Acting through the fields of Applications, as Argo CD's own API server does it.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::finalizers;
use crate::address::AppAddress;
use crate::application::{Application, OPERATION_INFO, REFRESH};
use crate::applications::Applications;
use crate::messages::OPERATION_IN_PROGRESS;
use crate::refresh::{REFRESH_TIMEOUT, Refreshes};
use crate::rest::{CallError, Refusal, SyncRequest};
use tiphys_cluster::delete;
use tiphys_cluster::names::FIELD_MANAGER;
use tiphys_cluster::{Cause, RequestError};
use tokio::time::Instant;

/// Who asks, for people who look at an operation.
const USER: &str = "tiphys";
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often an Application that somebody else keeps changing is read again before it is deleted.
const DELETE_ATTEMPTS: u32 = 10;

#[derive(Clone)]
pub struct FieldsClient {
    applications: Applications,
    pub(super) refreshes: Refreshes,
}

impl FieldsClient {
    pub(super) fn new(applications: Applications) -> Self {
        FieldsClient { applications, refreshes: Refreshes::new() }
    }

    /// The same, with the Applications as another client reaches them.
    pub(super) fn reaching(self, applications: Applications) -> Self {
        FieldsClient { applications, ..self }
    }

    /// As through the API: one that was missed is followed by a hard one.
    pub(super) async fn refresh(&self, app: &AppAddress) -> Result<Application, CallError> {
        let refresh = self.refreshes.begin(&app.name).await?;
        let answer = tokio::select! {
            answer = self.ask_for_refresh(app, "normal") => answer,
            () = refresh.missed() => self.ask_for_refresh(app, "hard").await,
        };
        if answer.is_ok() {
            refresh.succeeded();
        }
        answer
    }

    async fn ask_for_refresh(&self, app: &AppAddress, how: &str) -> Result<Application, CallError> {
        self.patch(app, &json!({ "metadata": { "annotations": { REFRESH: how } } })).await?;
        let began = Instant::now();
        while began.elapsed() < REFRESH_TIMEOUT {
            tokio::time::sleep(POLL_INTERVAL).await;
            let application = self.read(app).await?;
            if application.annotation(REFRESH).is_none() {
                return Ok(application);
            }
        }
        let message = format!("the refresh did not finish within {} s", REFRESH_TIMEOUT.as_secs());
        Err(CallError::Unanswered { message })
    }

    pub(super) async fn sync(
        &self,
        app: &AppAddress,
        request: SyncRequest<'_>,
    ) -> Result<Application, CallError> {
        let before = self.read(app).await?;
        if before.operation.is_some() {
            let message = OPERATION_IN_PROGRESS.to_owned();
            return Err(CallError::Refused { refusal: Refusal::Busy, message });
        }
        self.patch(app, &operation(&before, request)).await
    }

    pub(super) async fn terminate(&self, app: &AppAddress) -> Result<(), CallError> {
        let stop = json!({ "status": { "operationState": { "phase": "Terminating" } } });
        let before = self.read(app).await?;
        if before.operation.is_none() {
            let message = "no operation is in progress".to_owned();
            return Err(CallError::Refused { refusal: Refusal::Other, message });
        }
        self.patch(app, &stop).await.map(|_| ())
    }

    pub(super) async fn delete(&self, app: &AppAddress) -> Result<(), CallError> {
        self.delete_with(app, finalizers::cascading).await
    }

    pub(super) async fn delete_orphaning(&self, app: &AppAddress) -> Result<(), CallError> {
        self.delete_with(app, finalizers::orphaning).await
    }

    /// Deletes it with the finalizers that `change` makes of its own. Who changes it in between
    /// starts it over: a finalizer of theirs must neither be dropped nor be missed.
    async fn delete_with(
        &self,
        app: &AppAddress,
        change: fn(&[String]) -> Option<Vec<String>>,
    ) -> Result<(), CallError> {
        let mut found = self.read(app).await?;
        let meant = found.metadata.uid.clone();
        for attempt in 1.. {
            match self.delete_as_found(app, found, change).await {
                Err(CallError::Refused { refusal: Refusal::Busy, .. })
                    if attempt < DELETE_ATTEMPTS => {}
                ended => return ended,
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            found = self.read(app).await?;
            // Another one of the same name is not what was meant.
            if found.metadata.uid != meant {
                return Ok(());
            }
        }
        unreachable!("the loop ends by returning")
    }

    async fn delete_as_found(
        &self,
        app: &AppAddress,
        mut found: Application,
        change: fn(&[String]) -> Option<Vec<String>>,
    ) -> Result<(), CallError> {
        let before = found.metadata.finalizers.as_deref().unwrap_or_default();
        let after = change(before);
        // What is being deleted, Kubernetes lets nobody add a finalizer to.
        let adds = |after: &Vec<String>| after.iter().any(|finalizer| !before.contains(finalizer));
        let going = found.metadata.deletion_timestamp.is_some();
        if let Some(finalizers) = after.filter(|after| !(going && adds(after))) {
            let version = &found.metadata.resource_version;
            let metadata = json!({ "resourceVersion": version, "finalizers": finalizers });
            found = self.patch(app, &json!({ "metadata": metadata })).await?;
        }
        let mut params = delete::only(found.metadata.uid);
        if let Some(preconditions) = &mut params.preconditions {
            preconditions.resource_version = found.metadata.resource_version;
        }
        let deleted = self.applications.beside(app).delete(&app.name, &params).await;
        deleted.map(|_| ()).map_err(|error| refused(&app.name, error))
    }

    async fn read(&self, app: &AppAddress) -> Result<Application, CallError> {
        let found = self.applications.beside(app).get(&app.name).await;
        found.map_err(|error| refused(&app.name, error))
    }

    async fn patch(&self, app: &AppAddress, patch: &Value) -> Result<Application, CallError> {
        let manager = Some(FIELD_MANAGER.to_owned());
        let params = PatchParams { field_manager: manager, ..PatchParams::default() };
        let patched =
            self.applications.beside(app).patch(&app.name, &params, &Patch::Merge(patch)).await;
        patched.map_err(|error| refused(&app.name, error))
    }
}

/// The operation, and the end of the last one's state, as Argo CD's API server writes them: the
/// controller would take an old state for the new operation's. The version guards against whoever
/// came in between.
fn operation(before: &Application, request: SyncRequest<'_>) -> Value {
    let revisions: Vec<&str> = request.revisions.0.iter().map(|revision| &**revision).collect();
    let options = before.spec.sync_policy.as_ref().and_then(|policy| policy.sync_options.clone());
    let mut sync = json!({ "prune": request.prune, "syncOptions": options.unwrap_or_default() });
    match revisions[..] {
        [] => {}
        [one] => sync["revision"] = one.into(),
        _ => sync["revisions"] = revisions.into(),
    }
    json!({
        "metadata": { "resourceVersion": before.metadata.resource_version },
        "operation": {
            "initiatedBy": { "username": USER },
            "info": [{ "name": OPERATION_INFO, "value": request.operation.to_string() }],
            "retry": { "limit": 0 },
            "sync": sync,
        },
        "status": { "operationState": null },
    })
}

fn refused(app: &str, error: kube::Error) -> CallError {
    let broken = matches!(&error, kube::Error::Api(status) if status.code >= 500);
    let error = RequestError::because(app)(error);
    let refusal = match error.cause() {
        Cause::Denied => Refusal::Forbidden,
        Cause::NotFound => Refusal::NotFound,
        // Somebody changed it in between: look again.
        Cause::Conflict => Refusal::Busy,
        Cause::Unreachable => return CallError::Unanswered { message: error.why() },
        Cause::Other if broken => Refusal::Broken,
        Cause::Other => Refusal::Other,
    };
    CallError::Refused { refusal, message: error.why() }
}

#[cfg(test)]
mod tests;
