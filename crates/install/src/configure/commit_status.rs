//! What the deploy loop sets commit statuses with: a Secret beside it, where no workflow can mount it.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tiphys_cluster::names::{self, MANAGED_BY, STATUS_AUTHORITY, STATUS_TOKEN, SYSTEM_NAMESPACE};
use tiphys_cluster::{Cause, RequestError, dynamic, encoded};
use tiphys_model::{Exit, Explain, Explanation, Platform};

use super::objects::cluster_metadata;
use super::removal::Removal;
use crate::mounted::Mounted;

/// Why commit statuses cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum CommitStatusError {
    Request(#[from] RequestError),
    /// No Git server takes statuses from anybody.
    NoToken,
}

impl Explain for CommitStatusError {
    fn explain(&self) -> Explanation {
        match self {
            CommitStatusError::Request(error) => error.explain(),
            CommitStatusError::NoToken => Explanation::new(
                Exit::Configuration,
                "there is no token for commit statuses",
                "`spec.deploy.commitStatus` needs a token of the Git server",
            )
            .hint(
                "put a token that may set commit statuses into the file `git/status-token` of the \
                 credentials, and pass `--credentials DIR`",
            ),
        }
    }
}

/// Without credentials, the Secret stays as it is.
pub(super) async fn object(
    client: &Client,
    platform: &Platform,
    mounted: &Mounted,
) -> Result<Option<Value>, CommitStatusError> {
    if platform.deploy.commit_status.is_none() {
        return Ok(None);
    }
    let name = name(platform);
    let Some(token) = &mounted.status_token else {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
        let what = format!("cannot read the Secret {name} in {SYSTEM_NAMESPACE}");
        let found = secrets.get_metadata_opt(&name).await.map_err(RequestError::because(what))?;
        return if found.is_some() { Ok(None) } else { Err(CommitStatusError::NoToken) };
    };
    let mut data = json!({ STATUS_TOKEN: encoded(token.expose_secret()) });
    if let Some(authority) = &mounted.git.authority {
        data[STATUS_AUTHORITY] = encoded(authority).into();
    }
    let mut metadata = cluster_metadata(platform, &name);
    metadata["namespace"] = SYSTEM_NAMESPACE.into();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data,
    });
    Ok(Some(secret))
}

/// The Secret of a platform that wants no statuses, or not any more.
pub(super) async fn removal(
    client: &Client,
    platform: &Platform,
) -> Result<Option<Removal>, RequestError> {
    if platform.deploy.commit_status.is_some() {
        return Ok(None);
    }
    let (name, kind) = (name(platform), "Secret");
    let secrets = dynamic(client, Some(SYSTEM_NAMESPACE), "v1", kind);
    let what = format!("cannot read the {kind} {name} in {SYSTEM_NAMESPACE}");
    let found = match secrets.get_opt(&name).await.map_err(RequestError::because(what)) {
        Ok(found) => found,
        // Whoever may not look there has made none.
        Err(error) if error.cause() == Cause::Denied => None,
        Err(error) => return Err(error),
    };
    let is_ours = |found: &kube::api::DynamicObject| {
        found.labels().get(MANAGED_BY.0).map(String::as_str) == Some(MANAGED_BY.1)
    };
    let found = found.filter(is_ours);
    Ok(found.map(|found| Removal::new(secrets, (kind, SYSTEM_NAMESPACE), &found)))
}

fn name(platform: &Platform) -> String {
    names::commit_status(&platform.argocd.namespace, &platform.name)
}

#[cfg(test)]
mod tests {
    use tiphys_cluster::scripted::Server;
    use tiphys_model::{CommitStatus, DeployPolicy, StatusProvider};

    use super::*;
    use crate::configure::objects::tests::platform;
    use crate::mounted::Git;

    const PATH: &str = "/api/v1/namespaces/tiphys-system/secrets/tiphys.argocd.prod.commit-status";

    fn with_statuses() -> Platform {
        let commit_status = CommitStatus {
            provider: StatusProvider::GitHub,
            api: "https://git.example".to_owned(),
            repository: "team/platform".to_owned(),
            context: "tiphys/prod".to_owned(),
            link: None,
        };
        let deploy = DeployPolicy { commit_status: Some(commit_status), ..DeployPolicy::default() };
        Platform { deploy, ..platform("prod") }
    }

    fn with_token() -> Mounted {
        let git = Git { authority: Some("PEM".to_owned()), ..Git::default() };
        Mounted { status_token: Some("hunter2".into()), git, ..Mounted::default() }
    }

    #[tokio::test]
    async fn the_token_is_kept_beside_the_loop() {
        let server = Server::default();
        let secret = object(&server.client(), &with_statuses(), &with_token()).await.unwrap();
        let secret = secret.unwrap();
        assert_eq!(secret["metadata"]["namespace"], "tiphys-system");
        assert_eq!(secret["data"], json!({ "token": "aHVudGVyMg==", "ca.crt": "UEVN" }));
        let nobody_wants_it = object(&server.client(), &platform("prod"), &with_token()).await;
        assert_eq!(nobody_wants_it.unwrap(), None);
    }

    #[tokio::test]
    async fn without_a_token_there_are_no_statuses() {
        let server = Server::default();
        let object = async || object(&server.client(), &with_statuses(), &Mounted::default()).await;
        assert!(matches!(object().await, Err(CommitStatusError::NoToken)));
        server.put(PATH, json!({}));
        assert_eq!(object().await.unwrap(), None, "the one that is there stays");
    }

    #[tokio::test]
    async fn the_token_goes_when_nobody_wants_statuses() {
        let server = Server::default();
        let client = server.client();
        let removal = async |platform: &Platform| removal(&client, platform).await.unwrap();
        let ours = json!({ "labels": { MANAGED_BY.0: MANAGED_BY.1 } });
        server.put(PATH, json!({ "metadata": ours, "data": { "token": "aHVudGVyMg==" } }));
        assert!(removal(&with_statuses()).await.is_none());
        let goes = removal(&platform("prod")).await.unwrap();
        let before = goes.change().before.clone().unwrap();
        assert_eq!(before["data"], json!({ "token": "(old)" }), "nobody sees it");
        goes.carry_out().await.unwrap();
        assert_eq!(server.get(PATH), None);
        server.put(PATH, json!({ "metadata": {} }));
        assert!(removal(&platform("prod")).await.is_none(), "somebody else's");
    }
}
