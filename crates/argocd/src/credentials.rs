//! What runs act with: the tokens that `tiphys configure` or Argo CD's administrators have left in the
//! cluster, and how the API server is reached that takes them.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use secrecy::SecretString;
use tiphys_cluster::RequestError;
use tiphys_cluster::names::Purpose;
use tiphys_model::api_server::ServerTls;
use tiphys_model::{Exit, Explain, Explanation, Platform, PlatformName};

use crate::installation::{self, InstallationError};
use crate::rest::{CertificateError, Endpoint, RestClient, Security};

/// Why there is nothing to act with.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum CredentialsError {
    Absent { purpose: Purpose, platform: PlatformName, secret: String, origin: Origin, lack: Lack },
    Installation(#[from] InstallationError),
    Certificate(#[from] CertificateError),
    Request(#[from] RequestError),
}

/// Who should have made a Secret.
#[derive(Debug, Clone, Copy)]
pub enum Origin {
    /// `tiphys configure` has not been here, or somebody was after it.
    Configure,
    /// `spec.argocd.tokenSecret` names it.
    PlatformFile,
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
            CredentialsError::Absent { purpose, platform, secret, origin, lack } => {
                let what = format!("the {purpose} token of the platform `{platform}` is missing");
                let why = match lack {
                    Lack::Secret { namespace } => {
                        format!("the Secret {secret} does not exist in the namespace {namespace}")
                    }
                    Lack::Token => format!("the Secret {secret} has no key `token`"),
                };
                Explanation::new(Exit::Configuration, what, why).hint(match origin {
                    Origin::Configure => "run `tiphys configure` with the same platform file",
                    Origin::PlatformFile => {
                        "put a token of an Argo CD account into the key `token` of this Secret, \
                         which `spec.argocd.tokenSecret` refers to"
                    }
                })
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
    let name = TokenHolder::of(platform, purpose).secret;
    Ok(RestClient::new(endpoint, Some(token)).renewing_from(secrets, &name))
}

/// The token for a purpose, and where it is used.
pub async fn find(
    client: &Client,
    platform: &Platform,
    purpose: Purpose,
) -> Result<(SecretString, Endpoint), CredentialsError> {
    let finder = Finder { client, platform, purpose };
    let holder = TokenHolder::of(platform, purpose);
    let mut data = finder.existing(&holder.secret, holder.origin).await?;
    let token = data.remove("token").and_then(|token| String::from_utf8(token.0).ok());
    let token = token.filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| finder.absent(&holder.secret, holder.origin, Lack::Token))?;
    let found = match holder.origin {
        Origin::Configure => data,
        Origin::PlatformFile => finder.found().await?,
    };
    Ok((token.into(), endpoint(client, platform, found)?))
}

/// The Secret with the token for a purpose.
struct TokenHolder {
    secret: String,
    origin: Origin,
}

impl TokenHolder {
    fn of(platform: &Platform, purpose: Purpose) -> Self {
        match purpose.given_token_secret(platform) {
            Some(name) => TokenHolder { secret: name.to_string(), origin: Origin::PlatformFile },
            None => TokenHolder { secret: purpose.secret(platform), origin: Origin::Configure },
        }
    }
}

type Data = BTreeMap<String, ByteString>;

struct Finder<'a> {
    client: &'a Client,
    platform: &'a Platform,
    purpose: Purpose,
}

impl Finder<'_> {
    async fn read(&self, name: &str) -> Result<Option<Data>, RequestError> {
        let namespace = &self.platform.argocd.namespace;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let what = format!("cannot read the Secret {name} in {namespace}");
        let secret = secrets.get_opt(name).await.map_err(RequestError::because(what))?;
        Ok(secret.map(|secret| secret.data.unwrap_or_default()))
    }

    async fn existing(&self, name: &str, origin: Origin) -> Result<Data, CredentialsError> {
        if let Some(data) = self.read(name).await? {
            return Ok(data);
        }
        let namespace = &self.platform.argocd.namespace;
        Err(match installation::check(self.client, namespace).await {
            // Without an Argo CD, nothing could be set up there.
            Err(
                error @ (InstallationError::Absent { .. } | InstallationError::Elsewhere { .. }),
            ) => error.into(),
            Err(InstallationError::Request(_)) | Ok(()) => {
                self.absent(name, origin, Lack::Secret { namespace: namespace.clone() })
            }
        })
    }

    /// What `tiphys configure` has found out about the API server, where the token is not beside it.
    /// A server at an address can do without.
    async fn found(&self) -> Result<Data, CredentialsError> {
        let server = &self.platform.argocd.server;
        let own = self.purpose.secret(self.platform);
        match (&server.address, &server.root_path) {
            (Some(_), Some(_)) => Ok(Data::new()),
            (Some(_), None) => Ok(self.read(&own).await?.unwrap_or_default()),
            (None, _) => self.existing(&own, Origin::Configure).await,
        }
    }

    fn absent(&self, secret: &str, origin: Origin, lack: Lack) -> CredentialsError {
        CredentialsError::Absent {
            purpose: self.purpose,
            platform: self.platform.name.clone(),
            secret: secret.to_owned(),
            origin,
            lack,
        }
    }
}

/// What the platform file says counts more than what was found.
fn endpoint(
    client: &Client,
    platform: &Platform,
    mut found: Data,
) -> Result<Endpoint, CertificateError> {
    let server = &platform.argocd.server;
    let security = match (&server.tls, &server.address, found.remove("ca.crt")) {
        // The second is as `tiphys configure` leaves it where Argo CD serves without TLS.
        (ServerTls::Off, _, _) | (ServerTls::Default, None, None) => Security::Plain,
        (ServerTls::Authority(pem), _, _) => Security::trusting(pem.as_bytes())?,
        (ServerTls::Default, Some(_), _) => Security::public(),
        (ServerTls::Default, None, Some(certificate)) => Security::trusting(&certificate.0)?,
    };
    let endpoint = match &server.address {
        Some(address) => Endpoint::at(address.clone(), &platform.argocd.namespace, security),
        None => Endpoint::new(client.clone(), &platform.argocd.namespace, security),
    };
    let path = found.remove("path").and_then(|path| String::from_utf8(path.0).ok());
    Ok(endpoint.below(&server.root_path.clone().or(path).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
