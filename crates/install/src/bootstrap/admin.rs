//! The password of Argo CD's `admin`: the one that it was born with does not stay.

use base64::Engine;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use ring::rand::SecureRandom;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tiphys_model::Platform;

use crate::configure::objects::metadata;
use tiphys_cluster::encoded;
use tiphys_cluster::names::{self, FIELD_MANAGER};
use tiphys_cluster::{ClusterError, Kind};

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

/// Replaces the initial password, if it is still there.
pub async fn rotate_initial(
    client: &Client,
    platform: &Platform,
) -> Result<Rotation, ClusterError> {
    if !exists(client, platform, INITIAL).await? {
        return Ok(Rotation::Kept);
    }
    rotate(client, platform).await?;
    let secrets = secrets(client, platform);
    match secrets.delete(INITIAL, &DeleteParams::default()).await {
        Ok(_) => Ok(Rotation::Rotated),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Rotation::Rotated),
        Err(error) => {
            Err(ClusterError::kube(format!("the Secret {INITIAL} cannot be deleted"))(error))
        }
    }
}

/// Replaces the password that we have set before, if we have.
pub async fn rotate_own(client: &Client, platform: &Platform) -> Result<Rotation, ClusterError> {
    if !exists(client, platform, &names::admin(platform)).await? {
        return Ok(Rotation::Kept);
    }
    rotate(client, platform).await?;
    Ok(Rotation::Rotated)
}

fn secrets(client: &Client, platform: &Platform) -> Api<Secret> {
    Api::namespaced(client.clone(), &platform.argocd.namespace)
}

async fn exists(client: &Client, platform: &Platform, name: &str) -> Result<bool, ClusterError> {
    let what = format!("the Secret {name} cannot be read");
    let found = secrets(client, platform).get_metadata_opt(name).await;
    Ok(found.map_err(ClusterError::kube(what))?.is_some())
}

/// The new password is kept before it counts: whoever is killed in between has not locked
/// anybody out, and the next one begins anew.
async fn rotate(client: &Client, platform: &Platform) -> Result<(), ClusterError> {
    let password = random_password()?;
    let hash = bcrypt::hash(password.expose_secret(), COST).map_err(|error| {
        ClusterError::new(Kind::Failed, "no password can be made", error.to_string())
    })?;
    let secrets = secrets(client, platform);
    let name = names::admin(platform);
    let kept = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(platform, &name),
        "data": { "username": encoded("admin"), "password": encoded(password.expose_secret()) },
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let what = format!("the Secret {name} cannot be written");
    secrets.patch(&name, &params, &Patch::Apply(&kept)).await.map_err(ClusterError::kube(what))?;
    let changed = json!({ "data": {
        "admin.password": encoded(&hash),
        "admin.passwordMtime": encoded(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    } });
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("the Secret {SETTINGS} cannot be written");
    let written = secrets.patch(SETTINGS, &params, &Patch::Merge(&changed)).await;
    written.map(drop).map_err(ClusterError::kube(what))
}

fn random_password() -> Result<SecretString, ClusterError> {
    let mut bytes = [0; 24];
    ring::rand::SystemRandom::new().fill(&mut bytes).map_err(|_| {
        ClusterError::new(Kind::Failed, "no password can be made", "this machine has no randomness")
    })?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes).into())
}
