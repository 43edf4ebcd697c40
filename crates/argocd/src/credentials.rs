//! What runs act with: the tokens that `tiphys configure` has left in the cluster.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use secrecy::SecretString;
use tiphys_model::Platform;

use crate::installation;
use crate::rest::{Endpoint, RestClient, Security};
use tiphys_cluster::names::Purpose;
use tiphys_cluster::{ClusterError, Kind};

/// The token that deploys with, and how Argo CD's API server is known.
pub async fn deploy(
    client: &Client,
    platform: &Platform,
) -> Result<(SecretString, Security), ClusterError> {
    read(client, platform, Purpose::Deploy).await
}

/// The token that deletes with, likewise.
pub async fn teardown(
    client: &Client,
    platform: &Platform,
) -> Result<(SecretString, Security), ClusterError> {
    read(client, platform, Purpose::Teardown).await
}

/// Argo CD's API with the token for a purpose.
pub async fn argocd(
    client: &Client,
    platform: &Platform,
    purpose: Purpose,
) -> Result<RestClient, ClusterError> {
    let (token, security) = read(client, platform, purpose).await?;
    let endpoint = Endpoint::new(client.clone(), &platform.argocd.namespace, security);
    let secrets = Api::namespaced(client.clone(), &platform.argocd.namespace);
    let name = purpose.secret(platform);
    Ok(RestClient::new(endpoint, Some(token)).renewing_from(secrets, &name))
}

async fn read(
    client: &Client,
    platform: &Platform,
    purpose: Purpose,
) -> Result<(SecretString, Security), ClusterError> {
    let (name, namespace) = (purpose.secret(platform), &platform.argocd.namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let what = format!("the Secret {name} in {namespace} cannot be read");
    let secret = secrets.get_opt(&name).await.map_err(ClusterError::kube(what))?;
    let absent = |why: String| {
        let what = format!("there is no token to {purpose} the platform `{}` with", platform.name);
        ClusterError::new(Kind::Configuration, what, why)
            .hint("run `tiphys configure` with the same platform file")
    };
    let Some(secret) = secret else {
        return Err(match installation::check(client, namespace).await {
            // Without an Argo CD, nothing could be set up there.
            Err(error) if error.kind == Kind::Configuration => error,
            _ => absent(format!("the Secret {name} does not exist in the namespace {namespace}")),
        });
    };
    let mut data = secret.data.unwrap_or_default();
    let token = data.remove("token").and_then(|token| String::from_utf8(token.0).ok());
    let token = token.filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| absent(format!("the Secret {name} has no `token`")))?;
    let security = match data.remove("ca.crt") {
        Some(certificate) => Security::trusting(&certificate.0)?,
        // As `tiphys configure` leaves it where Argo CD serves without TLS.
        None => Security::Plain,
    };
    Ok((token.into(), security))
}
