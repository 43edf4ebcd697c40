//! Argo CD's own API, through which a run acts.

mod call;
mod certificate;
mod manifests;
mod pods;
mod render;
mod stream;
mod token;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tiphys_model::OperationId;
use tiphys_run::Revisions;

use crate::address::AppAddress;
use crate::application::{Application, OPERATION_INFO};
use crate::refresh::{REFRESH_TIMEOUT, Refreshes};
pub use call::{CallError, Refusal};
pub use certificate::{CertificateError, authorities_of_this_machine};
pub use pods::PodError;
pub use render::{RENDER_NAME, RenderedApplication};
use tiphys_cluster::agent::{self, Guard};
use token::Token;
pub use transport::{Endpoint, EndpointError, Security};

/// How long an answer may take that does not wait for Argo CD's controller, or how long it may not
/// go on if it is a large one.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long Argo CD may take to render an ApplicationSet: it may have to fetch from Git. Shorter than
/// a Lease, which has to cover every request that is not a look.
const RENDER_TIMEOUT: Duration = Duration::from_secs(20);

const VERSION_PATH: &str = "/api/version";

/// A client with one account's token.
#[derive(Clone)]
pub struct RestClient {
    http: transport::Http,
    base: Arc<str>,
    /// Argo CD's own.
    namespace: Arc<str>,
    token: Option<Token>,
    caller: Arc<Caller>,
    pub(crate) refreshes: Refreshes,
}

/// The user agent of requests, and whether writes are allowed.
struct Caller {
    agent: HeaderValue,
    guard: Option<Guard>,
}

/// What a sync applies, and how it is known again.
#[derive(Debug, Clone, Copy)]
pub struct SyncRequest<'a> {
    pub operation: &'a OperationId,
    pub revisions: &'a Revisions,
    pub prune: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncBody<'a> {
    project: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source_positions: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    revisions: Vec<&'a str>,
    prune: bool,
    /// Retries are ours.
    retry_strategy: serde_json::Value,
    infos: serde_json::Value,
}

#[derive(Deserialize)]
struct VersionAnswer {
    #[serde(rename = "Version")]
    version: String,
}

impl RestClient {
    #[must_use]
    pub fn new(endpoint: Endpoint, token: Option<SecretString>) -> Self {
        let (base, namespace) = (endpoint.base(), endpoint.namespace());
        let http = transport::http(endpoint);
        let token = token.map(Token::new);
        let caller = Arc::new(Caller { agent: agent::PROGRAM, guard: None });
        RestClient { http, base, namespace, token, caller, refreshes: Refreshes::new() }
    }

    #[must_use]
    pub fn with_token(mut self, token: SecretString) -> Self {
        self.token = Some(Token::new(token));
        self
    }

    /// A token that is rotated while it is used is read again from its Secret.
    pub(crate) fn renewing_from(mut self, secrets: Api<Secret>, name: &str) -> Self {
        self.token = self.token.map(|token| token.renewing_from(secrets, name));
        self
    }

    /// The same client, as part of a run: what changes something is only sent while that is
    /// allowed.
    #[must_use]
    pub fn in_run(mut self, run: &str, guard: Guard) -> Self {
        self.caller = Arc::new(Caller { agent: agent::in_run(run), guard: Some(guard) });
        self
    }

    /// The version of Argo CD's API server, such as `v3.5.6+d1b39d1`. Everybody may ask for it.
    pub async fn version(&self) -> Result<String, CallError> {
        let answer: VersionAnswer =
            self.call(Method::GET, VERSION_PATH, None::<&()>, REQUEST_TIMEOUT).await?;
        Ok(answer.version)
    }

    /// The path of an Application, or of a part of it such as `/resource-tree`, with the query that
    /// says which Application is meant. Nothing is said of the namespace if it is Argo CD's own.
    #[must_use]
    pub fn path(&self, app: &AppAddress, part: &str) -> String {
        let AppAddress { name, project, .. } = app;
        let path = format!("applications/{name}{part}?project={project}");
        match self.other_namespace(app) {
            Some(namespace) => format!("{path}&appNamespace={namespace}"),
            None => path,
        }
    }

    fn other_namespace<'a>(&self, app: &'a AppAddress) -> Option<&'a str> {
        Some(&*app.namespace).filter(|other| !other.is_empty() && **other != *self.namespace)
    }

    /// One look.
    pub async fn get(&self, app: &AppAddress) -> Result<Application, CallError> {
        self.call(Method::GET, &self.path(app, ""), None::<&()>, REQUEST_TIMEOUT).await
    }

    /// A refresh; returns when Argo CD has compared and assessed the app anew. One that was missed is
    /// followed by a hard one.
    pub async fn refresh(&self, app: &AppAddress) -> Result<Application, CallError> {
        let refresh = self.refreshes.begin(&app.name).await?;
        let ask = async |how: &str| {
            let path = format!("{}&refresh={how}", self.path(app, ""));
            self.call(Method::GET, &path, None::<&()>, REFRESH_TIMEOUT).await
        };
        let answer = tokio::select! {
            answer = ask("normal") => answer,
            () = refresh.missed() => ask("hard").await,
        };
        if answer.is_ok() {
            refresh.succeeded();
        }
        answer
    }

    /// Asks for a sync; the Application with the operation in it.
    pub async fn sync(
        &self,
        app: &AppAddress,
        request: SyncRequest<'_>,
    ) -> Result<Application, CallError> {
        let path = format!("applications/{}/sync", app.name);
        let body = self.sync_body(app, request);
        self.call(Method::POST, &path, Some(&body), REQUEST_TIMEOUT).await
    }

    fn sync_body<'a>(&self, app: &'a AppAddress, request: SyncRequest<'a>) -> SyncBody<'a> {
        let revisions: Vec<&str> = request.revisions.0.iter().map(|r| &**r).collect();
        let several = revisions.len() > 1;
        SyncBody {
            project: &app.project,
            app_namespace: self.other_namespace(app),
            revision: (!several).then(|| revisions.first().copied()).flatten(),
            source_positions: if several { (1..=revisions.len()).collect() } else { Vec::new() },
            revisions: if several { revisions } else { Vec::new() },
            prune: request.prune,
            retry_strategy: serde_json::json!({ "limit": 0 }),
            infos: serde_json::json!([
                { "name": OPERATION_INFO, "value": request.operation.to_string() }
            ]),
        }
    }

    /// Stops the operation under way.
    pub async fn terminate(&self, app: &AppAddress) -> Result<(), CallError> {
        self.remove(&self.path(app, "/operation")).await
    }

    /// Deletes the Application and, in the foreground, what it has applied.
    pub async fn delete(&self, app: &AppAddress) -> Result<(), CallError> {
        let path = self.path(app, "");
        self.remove(&format!("{path}&cascade=true&propagationPolicy=foreground")).await
    }

    /// Deletes the Application and leaves what it has applied.
    pub async fn delete_orphaning(&self, app: &AppAddress) -> Result<(), CallError> {
        self.remove(&format!("{}&cascade=false", self.path(app, ""))).await
    }

    async fn remove(&self, path: &str) -> Result<(), CallError> {
        let _: serde_json::Value =
            self.call(Method::DELETE, path, None::<&()>, REQUEST_TIMEOUT).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_cluster::scripted::{self, Answer};

    use super::*;

    fn argocd() -> RestClient {
        let client = scripted::client(|_| Answer::Cut);
        RestClient::new(Endpoint::new(client, "argocd", Security::Plain), None)
    }

    fn vault(namespace: &str) -> AppAddress {
        AppAddress { namespace: namespace.into(), ..AppAddress::own("vault", "apps") }
    }

    #[tokio::test]
    async fn a_namespace_is_named_if_it_is_not_argo_cds_own() {
        let argocd = argocd();
        for own in ["", "argocd"] {
            assert_eq!(argocd.path(&vault(own), ""), "applications/vault?project=apps");
        }
        assert_eq!(
            argocd.path(&vault("team"), "/operation"),
            "applications/vault/operation?project=apps&appNamespace=team"
        );
    }

    #[tokio::test]
    async fn a_sync_names_it_in_its_body() {
        let argocd = argocd();
        let operation = "0123456789ab/vault/1/1".parse().unwrap();
        let revisions = Revisions(["abc".into()].into());
        let request = SyncRequest { operation: &operation, revisions: &revisions, prune: true };
        let body = |namespace: &str| {
            serde_json::to_value(argocd.sync_body(&vault(namespace), request)).unwrap()
        };
        let own = json!({
            "project": "apps", "revision": "abc", "prune": true, "retryStrategy": { "limit": 0 },
            "infos": [{ "name": OPERATION_INFO, "value": "0123456789ab/vault/1/1" }],
        });
        assert_eq!(body("argocd"), own);
        let mut other = own;
        other["appNamespace"] = "team".into();
        assert_eq!(body("team"), other);
    }
}
