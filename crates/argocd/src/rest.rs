//! Argo CD's own API, through which a run acts.

mod call;
mod certificate;
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
    pub project: &'a str,
    pub operation: &'a OperationId,
    pub revisions: &'a Revisions,
    pub prune: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncBody<'a> {
    project: &'a str,
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
        let base = endpoint.base();
        let http = transport::http(endpoint);
        let token = token.map(Token::new);
        let caller = Arc::new(Caller { agent: agent::PROGRAM, guard: None });
        RestClient { http, base, token, caller, refreshes: Refreshes::new() }
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

    /// One look.
    pub async fn get(&self, app: &str, project: &str) -> Result<Application, CallError> {
        let path = format!("applications/{app}?project={project}");
        self.call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT).await
    }

    /// A refresh; returns when Argo CD has compared and assessed the app anew. One that was missed is
    /// followed by a hard one.
    pub async fn refresh(&self, app: &str, project: &str) -> Result<Application, CallError> {
        let refresh = self.refreshes.begin(app).await?;
        let ask = async |how: &str| {
            let path = format!("applications/{app}?project={project}&refresh={how}");
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
        app: &str,
        request: SyncRequest<'_>,
    ) -> Result<Application, CallError> {
        let revisions: Vec<&str> = request.revisions.0.iter().map(|r| &**r).collect();
        let several = revisions.len() > 1;
        let body = SyncBody {
            project: request.project,
            revision: (!several).then(|| revisions.first().copied()).flatten(),
            source_positions: if several { (1..=revisions.len()).collect() } else { Vec::new() },
            revisions: if several { revisions } else { Vec::new() },
            prune: request.prune,
            retry_strategy: serde_json::json!({ "limit": 0 }),
            infos: serde_json::json!([
                { "name": OPERATION_INFO, "value": request.operation.to_string() }
            ]),
        };
        let path = format!("applications/{app}/sync");
        self.call(Method::POST, &path, Some(&body), REQUEST_TIMEOUT).await
    }

    /// Stops the operation under way.
    pub async fn terminate(&self, app: &str, project: &str) -> Result<(), CallError> {
        let path = format!("applications/{app}/operation?project={project}");
        let _: serde_json::Value =
            self.call(Method::DELETE, &path, None::<&()>, REQUEST_TIMEOUT).await?;
        Ok(())
    }

    /// Deletes the Application and, in the foreground, what it has applied.
    pub async fn delete(&self, app: &str, project: &str) -> Result<(), CallError> {
        let path = format!(
            "applications/{app}?project={project}&cascade=true&propagationPolicy=foreground"
        );
        let _: serde_json::Value =
            self.call(Method::DELETE, &path, None::<&()>, REQUEST_TIMEOUT).await?;
        Ok(())
    }

    /// Deletes the Application and leaves what it has applied.
    pub async fn delete_orphaning(&self, app: &str, project: &str) -> Result<(), CallError> {
        let path = format!("applications/{app}?project={project}&cascade=false");
        let _: serde_json::Value =
            self.call(Method::DELETE, &path, None::<&()>, REQUEST_TIMEOUT).await?;
        Ok(())
    }
}
