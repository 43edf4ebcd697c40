//! New tokens for old ones, at any time: a run that goes on finds the new one when the old one is
//! refused.

use kube::Client;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tiphys_model::Platform;

use super::intent::{How, Intent, IntentError};
use super::keys::{self, ARGOCD_SECRET, Keys};
use super::now;
use super::objects::Desired;
use super::retry::{TokenUpdateError, again};
use super::tokens::{self, TokenIssuer};
use tiphys_cluster::encoded;
use tiphys_cluster::names::{FIELD_MANAGER, Purpose};

/// Registers new tokens, hands them out, and only then revokes the old ones. Those that others have
/// handed out stay.
pub async fn rotate(client: &Client, platform: &Platform) -> Result<(), TokenUpdateError> {
    let mut attempts = 1;
    let new = loop {
        match register(client, platform).await {
            Err(error) => again(&mut attempts, error)?,
            Ok(new) => break new,
        }
    };
    let keys = keys::keys(client, &platform.argocd.namespace).await?;
    let server = keys::server(client, &platform.argocd, &keys).await?;
    for (purpose, token) in &new {
        let object = tokens::secret(platform, *purpose, Some(token), &server);
        write(client, object, How::Apply).await?;
    }
    while let Err(error) = revoke(client, platform, &new).await {
        again(&mut attempts, error)?;
    }
    Ok(())
}

async fn register(
    client: &Client,
    platform: &Platform,
) -> Result<Vec<(Purpose, SecretString)>, TokenUpdateError> {
    let keys = keys::keys(client, &platform.argocd.namespace).await?;
    let mint = TokenIssuer { platform, key: &keys.key, now: now() };
    let mut new = Vec::new();
    let mut lists = Map::new();
    for purpose in tokens::own_purposes(platform) {
        let key = tokens::registry_key(purpose);
        let token = mint.another(purpose, keys.get(&key))?;
        lists.extend(token.registry.map(|list| (key, encoded(list).into())));
        new.push((purpose, token.token));
    }
    write_lists(client, platform, &keys, lists).await?;
    Ok(new)
}

async fn revoke(
    client: &Client,
    platform: &Platform,
    new: &[(Purpose, SecretString)],
) -> Result<(), TokenUpdateError> {
    let keys = keys::keys(client, &platform.argocd.namespace).await?;
    let mint = TokenIssuer { platform, key: &keys.key, now: now() };
    let mut lists = Map::new();
    for (purpose, token) in new {
        let key = tokens::registry_key(*purpose);
        let list = mint.only(*purpose, token, keys.get(&key))?;
        lists.extend(list.map(|list| (key, encoded(list).into())));
    }
    Ok(write_lists(client, platform, &keys, lists).await?)
}

/// Carries the version that the lists were read at: nobody else's tokens are lost.
async fn write_lists(
    client: &Client,
    platform: &Platform,
    keys: &Keys,
    lists: Map<String, Value>,
) -> Result<(), IntentError> {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": ARGOCD_SECRET, "namespace": platform.argocd.namespace,
            "resourceVersion": keys.version,
        },
        "data": lists,
    });
    write(client, object, How::Merge).await
}

async fn write(client: &Client, object: Value, how: How) -> Result<(), IntentError> {
    let desired = Desired { manager: FIELD_MANAGER.to_owned(), object };
    Intent::new(client, desired, how).await?.carry_out().await
}
