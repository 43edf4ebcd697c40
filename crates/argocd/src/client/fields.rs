//! Acting through the fields of Applications, as Argo CD's own API server does it.

use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::application::{Application, OPERATION_INFO, REFRESH};
use crate::messages::OPERATION_IN_PROGRESS;
use crate::rest::{CallError, REFRESH_MISSED, REFRESH_TIMEOUT, Refusal, SyncRequest};
use tiphys_cluster::delete;
use tiphys_cluster::names::FIELD_MANAGER;
use tiphys_cluster::{Cause, RequestError};

/// Who asks, for people who look at an operation.
const USER: &str = "tiphys";
/// With it, Argo CD deletes in the foreground what an Application has applied.
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io/foreground";
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub struct FieldsClient {
    applications: Api<Application>,
}

impl FieldsClient {
    pub(super) fn new(applications: Api<Application>) -> Self {
        FieldsClient { applications }
    }

    /// As through the API: one that was missed is followed by a hard one.
    pub(super) async fn refresh(&self, app: &str) -> Result<Application, CallError> {
        for (how, timeout) in [("normal", REFRESH_MISSED), ("hard", REFRESH_TIMEOUT)] {
            let asked = json!({ "metadata": { "annotations": { REFRESH: how } } });
            self.patch(app, &asked).await?;
            let began = Instant::now();
            while began.elapsed() < timeout {
                tokio::time::sleep(POLL_INTERVAL).await;
                let application = self.applications.get(app).await.map_err(|e| refused(app, e))?;
                if application.annotation(REFRESH).is_none() {
                    return Ok(application);
                }
            }
        }
        let message = format!("no refresh within {} s", REFRESH_TIMEOUT.as_secs());
        Err(CallError::Unanswered { message })
    }

    pub(super) async fn sync(
        &self,
        app: &str,
        request: SyncRequest<'_>,
    ) -> Result<Application, CallError> {
        let before = self.applications.get(app).await.map_err(|e| refused(app, e))?;
        if before.operation.is_some() {
            let message = OPERATION_IN_PROGRESS.to_owned();
            return Err(CallError::Refused { refusal: Refusal::Busy, message });
        }
        self.patch(app, &operation(&before, request)).await
    }

    pub(super) async fn terminate(&self, app: &str) -> Result<(), CallError> {
        let stop = json!({ "status": { "operationState": { "phase": "Terminating" } } });
        let before = self.applications.get(app).await.map_err(|e| refused(app, e))?;
        if before.operation.is_none() {
            let message = "no operation is in progress".to_owned();
            return Err(CallError::Refused { refusal: Refusal::Other, message });
        }
        self.patch(app, &stop).await.map(|_| ())
    }

    pub(super) async fn delete(&self, app: &str) -> Result<(), CallError> {
        let before = self.applications.get(app).await.map_err(|e| refused(app, e))?;
        let finalizers = before.metadata.finalizers.unwrap_or_default();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            let cascade = json!({ "metadata": { "finalizers": [FINALIZER] } });
            self.patch(app, &cascade).await?;
        }
        self.delete_object(app, before.metadata.uid).await
    }

    pub(super) async fn delete_orphaning(&self, app: &str) -> Result<(), CallError> {
        let before = self.applications.get(app).await.map_err(|e| refused(app, e))?;
        if before.metadata.finalizers.is_some_and(|finalizers| !finalizers.is_empty()) {
            self.patch(app, &json!({ "metadata": { "finalizers": null } })).await?;
        }
        self.delete_object(app, before.metadata.uid).await
    }

    /// Another one of the same name is not what was meant.
    async fn delete_object(&self, app: &str, uid: Option<String>) -> Result<(), CallError> {
        let deleted = self.applications.delete(app, &delete::only(uid)).await;
        deleted.map(|_| ()).map_err(|error| refused(app, error))
    }

    async fn patch(&self, app: &str, patch: &Value) -> Result<Application, CallError> {
        let manager = Some(FIELD_MANAGER.to_owned());
        let params = PatchParams { field_manager: manager, ..PatchParams::default() };
        let patched = self.applications.patch(app, &params, &Patch::Merge(patch)).await;
        patched.map_err(|error| refused(app, error))
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
    let error = RequestError::because(app)(error);
    let refusal = match error.cause() {
        Cause::Denied => Refusal::Forbidden,
        Cause::NotFound => Refusal::NotFound,
        // Somebody changed it in between: look again.
        Cause::Conflict => Refusal::Busy,
        Cause::Unreachable => return CallError::Unanswered { message: error.why() },
        Cause::Other => Refusal::Other,
    };
    CallError::Refused { refusal, message: error.why() }
}

#[cfg(test)]
mod tests {
    use tiphys_run::Revisions;

    use super::*;

    fn written(revisions: &[&str]) -> Value {
        let before: Application = serde_json::from_value(json!({
            "metadata": { "name": "vault", "resourceVersion": "7" },
            "spec": { "syncPolicy": { "syncOptions": ["CreateNamespace=true"] } },
        }))
        .unwrap();
        let id = "0123456789ab/vault/1/1".parse().unwrap();
        let revisions = Revisions(revisions.iter().map(|revision| (*revision).into()).collect());
        let request =
            SyncRequest { project: "p", operation: &id, revisions: &revisions, prune: true };
        operation(&before, request)
    }

    #[test]
    fn an_operation_says_what_the_api_would_say() {
        let patch = written(&["abc"]);
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["operation"]["sync"]["revision"], "abc");
        assert_eq!(patch["operation"]["sync"]["prune"], true);
        assert_eq!(patch["operation"]["sync"]["syncOptions"], json!(["CreateNamespace=true"]));
        assert_eq!(patch["operation"]["info"][0]["value"], "0123456789ab/vault/1/1");
        assert!(patch["operation"]["initiatedBy"].get("automated").is_none(), "it is a manual one");
        assert!(patch["status"]["operationState"].is_null());
    }

    #[test]
    fn several_sources_have_a_revision_each() {
        let sync = &written(&["abc", "1.2.3"])["operation"]["sync"];
        assert_eq!(sync["revisions"], json!(["abc", "1.2.3"]));
        assert!(sync.get("revision").is_none());
    }
}
