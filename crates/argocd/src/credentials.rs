//! What runs act with: the tokens that `tiphys configure` has left in the cluster.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use secrecy::SecretString;
use tiphys_cluster::RequestError;
use tiphys_cluster::names::Purpose;
use tiphys_model::{Exit, Explain, Explanation, Platform, PlatformName};

use crate::installation::{self, InstallationError};
use crate::rest::{CertificateError, Endpoint, RestClient, Security};

/// Why there is nothing to act with.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum CredentialsError {
    /// `tiphys configure` has not been here, or somebody was after it.
    Absent {
        purpose: Purpose,
        platform: PlatformName,
        secret: String,
        lack: Lack,
    },
    Installation(#[from] InstallationError),
    Certificate(#[from] CertificateError),
    Request(#[from] RequestError),
}

#[derive(Debug)]
pub enum Lack {
    Secret {
        namespace: String,
    },
    /// The Secret is there, and has no token in it.
    Token,
}

impl Explain for CredentialsError {
    fn explain(&self) -> Explanation {
        match self {
            CredentialsError::Absent { purpose, platform, secret, lack } => {
                let what = format!("there is no token to {purpose} the platform `{platform}` with");
                let why = match lack {
                    Lack::Secret { namespace } => {
                        format!("the Secret {secret} does not exist in the namespace {namespace}")
                    }
                    Lack::Token => format!("the Secret {secret} has no `token`"),
                };
                Explanation::new(Exit::Configuration, what, why)
                    .hint("run `tiphys configure` with the same platform file")
            }
            CredentialsError::Installation(error) => error.explain(),
            CredentialsError::Certificate(error) => error.explain(),
            CredentialsError::Request(error) => error.explain(),
        }
    }
}

/// Argo CD's API with the token for a purpose.
pub async fn argocd(
    client: &Client,
    platform: &Platform,
    purpose: Purpose,
) -> Result<RestClient, CredentialsError> {
    let (token, endpoint) = find(client, platform, purpose).await?;
    let secrets = Api::namespaced(client.clone(), &platform.argocd.namespace);
    let name = purpose.secret(platform);
    Ok(RestClient::new(endpoint, Some(token)).renewing_from(secrets, &name))
}

/// The token for a purpose, and where it is used.
pub async fn find(
    client: &Client,
    platform: &Platform,
    purpose: Purpose,
) -> Result<(SecretString, Endpoint), CredentialsError> {
    let (name, namespace) = (purpose.secret(platform), &platform.argocd.namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let what = format!("the Secret {name} in {namespace} cannot be read");
    let secret = secrets.get_opt(&name).await.map_err(RequestError::because(what))?;
    let absent = |lack| CredentialsError::Absent {
        purpose,
        platform: platform.name.clone(),
        secret: name.clone(),
        lack,
    };
    let Some(secret) = secret else {
        return Err(match installation::check(client, namespace).await {
            // Without an Argo CD, nothing could be set up there.
            Err(
                error @ (InstallationError::Absent { .. } | InstallationError::Elsewhere { .. }),
            ) => error.into(),
            Err(InstallationError::Request(_)) | Ok(()) => {
                absent(Lack::Secret { namespace: namespace.clone() })
            }
        });
    };
    let mut data = secret.data.unwrap_or_default();
    let token = data.remove("token").and_then(|token| String::from_utf8(token.0).ok());
    let token = token.filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| absent(Lack::Token))?;
    let security = match data.remove("ca.crt") {
        Some(certificate) => Security::trusting(&certificate.0)?,
        // As `tiphys configure` leaves it where Argo CD serves without TLS.
        None => Security::Plain,
    };
    let endpoint = Endpoint::new(client.clone(), namespace, security);
    let path = data.remove("path").and_then(|path| String::from_utf8(path.0).ok());
    Ok((token.into(), endpoint.below(&path.unwrap_or_default())))
}
