//! Removing what would create the platform's Applications anew: generators, those first that
//! create others. Their children stay.

mod find;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams, PropagationPolicy};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tiphys_model::Platform;

use super::TeardownError;
use crate::created::Generator;
pub(super) use find::find;
use tiphys_argocd::application_set;
use tiphys_argocd::client::finalizers::orphaning;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_argocd::{Applications, ArgoCdClient};
use tiphys_cluster::RequestError;
use tiphys_cluster::delete;
use tokio::time::Instant;

const REMOVAL_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(300);
const WRITE_ATTEMPTS: u32 = 10;

/// Removes them one after the other, and waits for each.
pub(super) async fn remove(
    client: &Client,
    platform: &Platform,
    argocd: &ArgoCdClient,
    generators: Vec<Generator>,
) -> Result<(), TeardownError> {
    for generator in generators {
        match &generator {
            Generator::Application(name) => {
                let applications = Applications::of(client, &platform.argocd);
                let what = format!("cannot read the generator `{name}`");
                let found = applications.get_opt(name).await;
                let found = found.map_err(RequestError::because(what))?;
                let Some(found) = found else { continue };
                let released = argocd.delete_orphaning(&found.address()).await;
                released.or_else(|error| refused(name, error))?;
                await_gone(applications.beside(&found.address()), name, "the generator").await?;
            }
            Generator::Set(name) => {
                remove_set(&application_set::api(client, &platform.argocd.namespace), name).await?;
            }
        }
    }
    Ok(())
}

fn refused(name: &str, error: CallError) -> Result<(), TeardownError> {
    match error {
        CallError::Refused { refusal: Refusal::NotFound, .. } => Ok(()),
        source => Err(TeardownError::GeneratorRefused { generator: name.to_owned(), source }),
    }
}

/// Its Applications stay, and belong to nobody afterwards.
async fn remove_set(sets: &Api<DynamicObject>, name: &str) -> Result<(), TeardownError> {
    let what = || format!("cannot remove the ApplicationSet `{name}`");
    let mut attempts = 0;
    let set = loop {
        attempts += 1;
        let found = sets.get_opt(name).await.map_err(RequestError::because(what()))?;
        let Some(set) = found else { return Ok(()) };
        // With the others, Argo CD would delete the Applications.
        let Some(others) = orphaning(set.finalizers()) else { break set };
        let version = set.resource_version();
        let patch = json!({ "metadata": { "finalizers": others, "resourceVersion": version } });
        match sets.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(set) => break set,
            // Its controller writes to it, too.
            Err(kube::Error::Api(status)) if status.code == 409 && attempts < WRITE_ATTEMPTS => {}
            Err(error) => return Err(RequestError::because(what())(error).into()),
        }
    };
    let mut params = delete::only(set.uid());
    params.propagation_policy = Some(PropagationPolicy::Orphan);
    delete::delete(sets, name, &params, what()).await?;
    await_gone(sets, name, "the ApplicationSet").await
}

async fn await_gone<K>(objects: &Api<K>, name: &str, called: &str) -> Result<(), TeardownError>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let began = Instant::now();
    loop {
        let what = format!("cannot read {called} `{name}`");
        if objects.get_opt(name).await.map_err(RequestError::because(what))?.is_none() {
            return Ok(());
        }
        if began.elapsed() > REMOVAL_TIMEOUT {
            let called = format!("{called} `{name}`");
            return Err(TeardownError::GeneratorStays { called, after: REMOVAL_TIMEOUT });
        }
        tokio::time::sleep(POLL).await;
    }
}
