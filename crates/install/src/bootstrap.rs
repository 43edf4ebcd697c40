//! Phase 1: what the platform stands on, from pinned manifests into the cluster.
//!
//! Everything is looked at before anything is changed; what is as it should be stays untouched.
//! Whoever is killed in between runs it again.

mod admin;
mod apply;
mod error;
mod fetch;
mod found;
mod outdated;
mod pins;
mod ready;
mod remove;
mod render;
mod standing;
mod trouble;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tiphys_model::Platform;
use tiphys_model::bootstrap::Bootstrap;
use tokio::time::Instant;

use crate::mounted::Mounted;
pub use admin::{PasswordError, Rotation, rotate_initial, rotate_own};
pub use apply::{Adoption, Applied, ApplyError};
use apply::{Applier, object_name};
pub use error::{CheckError, InstallError, PrepareError};
pub use fetch::{FetchError, fetch};
pub use found::{Found, found};
pub use pins::DowngradeError;
pub use ready::ReadyError;
pub use remove::{RemoveError, remove};
use render::PULL_SECRET;
pub use render::{RenderError, RenderInput, Rendered, Stage, render};
pub use standing::{ChangedPin, Standing, standing};
use tiphys_cluster::names::Purpose;
use tiphys_cluster::{RequestError, encoded};
pub use trouble::Trouble;

/// The primitives of a platform, ready to be installed.
pub struct Installation<'a> {
    pub client: &'a Client,
    pub platform: &'a Platform,
    pub bootstrap: &'a Bootstrap,
    pub rendered: &'a [Rendered],
    pub mounted: &'a Mounted,
    pub adoption: Adoption,
}

/// Fetches and renders all primitives.
pub async fn prepare(
    folder: &std::path::Path,
    platform: &Platform,
    bootstrap: &Bootstrap,
    mounted: &Mounted,
) -> Result<Vec<Rendered>, PrepareError> {
    let mut all = Vec::new();
    for primitive in &bootstrap.primitives {
        let given = fetch(folder, primitive, mounted).await?;
        let rendered = render(platform, bootstrap, primitive, &given);
        all.push(rendered.map_err(|source| PrepareError::Render {
            primitive: Box::new(primitive.clone()),
            source,
        })?);
    }
    Ok(all)
}

/// Whether Phase 1 has come to its end: the token that runs act with is the last thing it makes.
pub async fn is_bootstrapped(client: &Client, platform: &Platform) -> Result<bool, RequestError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &platform.argocd.namespace);
    let name = Purpose::Deploy.secret(platform);
    let what = format!("cannot read the Secret {name} in {}", platform.argocd.namespace);
    Ok(secrets.get_opt(&name).await.map_err(RequestError::because(what))?.is_some())
}

/// The stages of all primitives side by side: each is ready before the next one begins.
#[must_use]
pub fn stages(rendered: &[Rendered]) -> Vec<Stage> {
    let names = ["namespaces and CRDs", "controllers", "notes"];
    let stage = |(number, name): (usize, &str)| {
        let objects = rendered.iter().flat_map(|one| &one.stages[number].objects);
        Stage { name: name.to_owned(), objects: objects.cloned().collect() }
    };
    names.into_iter().enumerate().map(stage).collect()
}

impl Installation<'_> {
    /// Refuses what is somebody else's, and what would be a step back.
    pub async fn check(&self) -> Result<(), CheckError> {
        for one in self.rendered {
            let primitive = &one.primitive;
            match found(self.client, primitive).await? {
                Found::Foreign { seen } if self.adoption == Adoption::Refused => {
                    return Err(CheckError::Foreign { primitive: primitive.name, seen });
                }
                Found::Ours { version: Some(version) } => pins::check(primitive, &version)?,
                Found::Absent | Found::Ours { version: None } | Found::Foreign { .. } => {}
            }
        }
        Ok(())
    }

    /// What would be changed.
    pub async fn try_out(&self) -> Result<Vec<Applied>, ApplyError> {
        let mut all = Vec::new();
        for stage in stages(self.rendered) {
            all.extend(self.applier(true).apply(&stage.objects).await?);
        }
        Ok(all)
    }

    /// Installs, and waits until everything works.
    pub async fn run(&self, tell: &dyn Fn(String)) -> Result<Vec<Applied>, InstallError> {
        let mut all = Vec::new();
        for (number, stage) in stages(self.rendered).iter().enumerate() {
            tell(format!("applying {} objects: {}", stage.objects.len(), stage.name));
            all.extend(self.applier(false).apply(&stage.objects).await?);
            if number == 0 {
                // The namespaces are there now, and no pod needs it yet.
                all.extend(self.applier(false).apply(&self.pull_secrets()).await?);
            }
            let awaited = stage.objects.iter().filter(|object| ready::awaited(object));
            let awaited: Vec<_> = awaited.map(object_name).collect();
            ready::wait(self.client, &awaited, self.deadline(), tell).await?;
        }
        Ok(all)
    }

    /// What another installer cannot know: with what images are pulled, and before that where.
    pub async fn run_pull_secrets(&self) -> Result<(), ApplyError> {
        let secrets = self.pull_secrets();
        if secrets.is_empty() {
            return Ok(());
        }
        let all = self.rendered.iter().flat_map(|one| &one.stages[0].objects);
        let namespaces: Vec<Value> =
            all.filter(|object| object["kind"] == "Namespace").cloned().collect();
        self.applier(false).apply(&namespaces).await?;
        self.applier(false).apply(&secrets).await.map(drop)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.bootstrap.timeout
    }

    fn applier(&self, dry_run: bool) -> Applier<'_> {
        Applier { client: self.client, adoption: self.adoption, dry_run, deadline: self.deadline() }
    }

    /// With what images are pulled, in each namespace.
    fn pull_secrets(&self) -> Vec<Value> {
        let Some(registry) = &self.mounted.registry else { return Vec::new() };
        let config = encoded(registry.expose_secret().trim());
        let secret = |one: &Rendered| {
            let mut secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "name": PULL_SECRET, "namespace": one.primitive.namespace },
                "type": "kubernetes.io/dockerconfigjson",
                "data": { ".dockerconfigjson": config },
            });
            render::label(&mut secret, &self.platform.name, one.primitive.name);
            secret
        };
        self.rendered.iter().map(secret).collect()
    }
}
