//! The password of Argo CD's `admin`: the one that it was born with does not stay.

use base64::Engine;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use ring::rand::SecureRandom;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tiphys_model::{Exit, Explain, Explanation, Platform};

use crate::configure::objects::metadata;
use tiphys_cluster::names::{self, FIELD_MANAGER};
use tiphys_cluster::{RequestError, encoded};

const INITIAL: &str = "argocd-initial-admin-secret";
const SETTINGS: &str = "argocd-secret";
/// What Argo CD itself uses.
const COST: u32 = bcrypt::DEFAULT_COST;

/// What became of the password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    Rotated,
    /// It is not the initial one any more, so it is somebody's own business.
    Kept,
}

/// A password that is still the old one.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum PasswordError {
    NoRandomness,
    Hash(#[from] bcrypt::BcryptError),
    Request(#[from] RequestError),
}

impl Explain for PasswordError {
    fn explain(&self) -> Explanation {
        let why = match self {
            PasswordError::NoRandomness => {
                "the operating system returned no random numbers".to_owned()
            }
            PasswordError::Hash(error) => error.to_string(),
            PasswordError::Request(error) => return error.explain(),
        };
        Explanation::new(Exit::Failed, "cannot create a password", why)
    }
}

/// Replaces the initial password, if it is still there.
pub async fn rotate_initial(
    client: &Client,
    platform: &Platform,
) -> Result<Rotation, PasswordError> {
    if !exists(client, platform, INITIAL).await? {
        return Ok(Rotation::Kept);
    }
    rotate(client, platform).await?;
    let secrets = secrets(client, platform);
    match secrets.delete(INITIAL, &DeleteParams::default()).await {
        Ok(_) => Ok(Rotation::Rotated),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Rotation::Rotated),
        Err(error) => {
            let what = format!("cannot delete the Secret {INITIAL}");
            Err(RequestError::because(what)(error).into())
        }
    }
}

/// Replaces the password that we have set before, if we have.
pub async fn rotate_own(client: &Client, platform: &Platform) -> Result<Rotation, PasswordError> {
    if !exists(client, platform, &names::admin(platform)).await? {
        return Ok(Rotation::Kept);
    }
    rotate(client, platform).await?;
    Ok(Rotation::Rotated)
}

fn secrets(client: &Client, platform: &Platform) -> Api<Secret> {
    Api::namespaced(client.clone(), &platform.argocd.namespace)
}

async fn exists(client: &Client, platform: &Platform, name: &str) -> Result<bool, RequestError> {
    let what = format!("cannot read the Secret {name}");
    let found = secrets(client, platform).get_metadata_opt(name).await;
    Ok(found.map_err(RequestError::because(what))?.is_some())
}

/// The new password is kept before it counts: whoever is killed in between has not locked
/// anybody out, and the next one begins anew.
async fn rotate(client: &Client, platform: &Platform) -> Result<(), PasswordError> {
    let password = random_password()?;
    let hash = bcrypt::hash(password.expose_secret(), COST)?;
    let secrets = secrets(client, platform);
    let name = names::admin(platform);
    let kept = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(platform, &name),
        "data": { "username": encoded("admin"), "password": encoded(password.expose_secret()) },
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let what = format!("cannot write the Secret {name}");
    secrets
        .patch(&name, &params, &Patch::Apply(&kept))
        .await
        .map_err(RequestError::because(what))?;
    let changed = json!({ "data": {
        "admin.password": encoded(&hash),
        "admin.passwordMtime": encoded(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    } });
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("cannot write the Secret {SETTINGS}");
    let written = secrets.patch(SETTINGS, &params, &Patch::Merge(&changed)).await;
    written.map_err(RequestError::because(what))?;
    Ok(())
}

fn random_password() -> Result<SecretString, PasswordError> {
    let mut bytes = [0; 24];
    let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| PasswordError::NoRandomness)?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes).into())
}
