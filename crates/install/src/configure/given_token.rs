//! A token that somebody else hands out: `configure` makes none for its purpose, and says so.

use std::fmt;

use kube::Client;
use secrecy::ExposeSecret;
use tiphys_cluster::RequestError;
use tiphys_cluster::names::Purpose;
use tiphys_model::{Platform, SecretName};

use super::keys;

/// A token that the platform file names, so that none is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenToken {
    pub secret: SecretName,
    pub is_there: bool,
}

impl fmt::Display for GivenToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GivenToken { secret, is_there } = self;
        let yet = if *is_there { "" } else { ", which has no `token` yet" };
        write!(
            f,
            "no deploy token created: `spec.argocd.tokenSecret` uses the Secret {secret}{yet}"
        )
    }
}

/// What the platform file names, if it names one.
pub(super) async fn given_token(
    client: &Client,
    platform: &Platform,
) -> Result<Option<GivenToken>, RequestError> {
    let Some(secret) = Purpose::Deploy.given_token_secret(platform) else { return Ok(None) };
    let held = keys::held_token(client, &platform.argocd.namespace, secret.as_str()).await?;
    let is_there = held.is_some_and(|token| !token.expose_secret().is_empty());
    Ok(Some(GivenToken { secret: secret.clone(), is_there }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_cluster::encoded;
    use tiphys_cluster::scripted::Server;

    use super::*;
    use crate::configure::objects::tests::platform;

    #[tokio::test]
    async fn whether_the_token_is_there_is_said_and_the_token_is_not() {
        let mut platform = platform("prod");
        let server = Server::default();
        let said = async |platform: &Platform| {
            let given = given_token(&server.client(), platform).await.unwrap();
            given.map(|given| given.to_string())
        };
        assert_eq!(said(&platform).await, None);
        platform.argocd.server.token_secret = Some(SecretName::parse("handed-out").unwrap());
        let named = "no deploy token created: `spec.argocd.tokenSecret` uses the Secret \
                     handed-out";
        let lacking = format!("{named}, which has no `token` yet");
        assert_eq!(said(&platform).await, Some(lacking));
        let secret = json!({ "metadata": {}, "data": { "token": encoded("hunter2") } });
        server.put("/api/v1/namespaces/argocd/secrets/handed-out", secret);
        assert_eq!(said(&platform).await.as_deref(), Some(named));
    }
}
