//! What Argo CD itself signs and is known by: read before anything is changed.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};

use tiphys_argocd::installation::InstallationError;
use tiphys_cluster::RequestError;
use tiphys_model::api_server::{ServerTls, root_path};
use tiphys_model::platform::ArgoCd;
use tiphys_model::{Exit, Explain, Explanation};

use super::jwt::SigningKey;

pub(super) const ARGOCD_SECRET: &str = "argocd-secret";

type Data = BTreeMap<String, ByteString>;

/// What Argo CD has not made, or does not show.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum KeysError {
    NoSigningKey,
    NoCertificate,
    Installation(#[from] InstallationError),
    Request(#[from] RequestError),
}

impl Explain for KeysError {
    fn explain(&self) -> Explanation {
        let why = match self {
            KeysError::NoSigningKey => {
                "the signing key `server.secretkey` is missing in the Secret argocd-secret"
            }
            KeysError::NoCertificate => {
                "no certificate: `tls.crt` is missing in argocd-server-tls and in argocd-secret"
            }
            KeysError::Installation(error) => return error.explain(),
            KeysError::Request(error) => return error.explain(),
        };
        Explanation::new(Exit::Configuration, "Argo CD has not started yet", why)
            .hint("wait until Argo CD's API server has started and created it, or check its log")
    }
}

/// Values of `argocd-secret` at one version. Nothing of this can be printed.
pub(super) struct Keys {
    pub(super) version: String,
    pub(super) key: SigningKey,
    data: Data,
}

impl Keys {
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.data.get(name).map(|value| value.0.as_slice())
    }
}

async fn read(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<Secret>, RequestError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let what = format!("cannot read the Secret {name} in {namespace}");
    secrets.get_opt(name).await.map_err(RequestError::because(what))
}

pub(super) async fn keys(client: &Client, namespace: &str) -> Result<Keys, KeysError> {
    let secret = read(client, namespace, ARGOCD_SECRET).await?;
    let secret =
        secret.ok_or_else(|| InstallationError::elsewhere(namespace, "Secret", ARGOCD_SECRET))?;
    let data = secret.data.unwrap_or_default();
    let key = data.get("server.secretkey").filter(|key| !key.0.is_empty());
    let key = SigningKey::new(&key.ok_or(KeysError::NoSigningKey)?.0);
    Ok(Keys { version: secret.metadata.resource_version.unwrap_or_default(), key, data })
}

/// How Argo CD's API server is reached.
pub(super) struct Server {
    /// What to know it by; none if it serves without TLS, or needs none.
    pub(super) certificate: Option<Vec<u8>>,
    /// What its paths begin with, with a slash; usually nothing.
    pub(super) path: String,
}

/// Its certificate must be there, unless the platform file says how else the server is known.
pub(super) async fn server(
    client: &Client,
    argocd: &ArgoCd,
    keys: &Keys,
) -> Result<Server, KeysError> {
    const PARAMETERS: &str = "argocd-cmd-params-cm";
    let namespace = &argocd.namespace;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let what = format!("cannot read the ConfigMap {PARAMETERS} in {namespace}");
    let parameters = maps.get_opt(PARAMETERS).await.map_err(RequestError::because(what))?;
    let parameters = parameters.and_then(|map| map.data).unwrap_or_default();
    let path = root_path(parameters.get("server.rootpath").map_or("", String::as_str));
    if parameters.get("server.insecure").is_some_and(|value| value == "true") {
        return Ok(Server { certificate: None, path });
    }
    let external = read(client, namespace, "argocd-server-tls").await?;
    let external = external.and_then(|secret| secret.data).unwrap_or_default();
    let certificate = choose(&external, &keys.data);
    let is_needed = argocd.server.address.is_none() && argocd.server.tls == ServerTls::Default;
    if certificate.is_none() && is_needed {
        return Err(KeysError::NoCertificate);
    }
    Ok(Server { certificate, path })
}

/// The certificate that Argo CD shows: it prefers the external one too. Where an authority has
/// signed that, who knows the authority knows it, and cert-manager puts its certificate beside it.
fn choose(external: &Data, own: &Data) -> Option<Vec<u8>> {
    let pem = |data: &Data, name: &str| {
        data.get(name).map(|value| value.0.clone()).filter(|pem| !pem.is_empty())
    };
    match (pem(external, "tls.crt"), pem(external, "ca.crt")) {
        (Some(certificate), Some(authority)) => Some([certificate, authority].join(&b'\n')),
        (Some(certificate), None) => Some(certificate),
        (None, _) => pem(own, "tls.crt"),
    }
}

/// The token in a Secret, if there is one.
pub(super) async fn held_token(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<secrecy::SecretString>, RequestError> {
    let secret = read(client, namespace, name).await?;
    let token = secret.and_then(|secret| secret.data?.remove("token"));
    Ok(token.and_then(|token| String::from_utf8(token.0).ok()).map(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_is_the_one_that_argo_cd_shows() {
        let data = |entries: &[(&str, &str)]| -> Data {
            let value = |text: &str| ByteString(text.as_bytes().to_vec());
            entries.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect()
        };
        let own = data(&[("tls.crt", "own"), ("tls.key", "secret")]);
        let cases = [
            (vec![], "own"),
            (vec![("tls.crt", "")], "own"),
            (vec![("tls.crt", "external"), ("tls.key", "secret")], "external"),
            (vec![("tls.crt", "external"), ("ca.crt", "authority")], "external\nauthority"),
        ];
        for (external, expected) in cases {
            let chosen = choose(&data(&external), &own);
            assert_eq!(chosen.as_deref(), Some(expected.as_bytes()), "{external:?}");
        }
        assert_eq!(choose(&Data::new(), &Data::new()), None);
    }
}
