//! Keeping what volumes hold.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use tiphys_cluster::RequestError;
use tiphys_cluster::names::FIELD_MANAGER;

/// Volumes that are claimed from these namespaces.
pub(super) async fn claimed(
    client: &Client,
    namespaces: &BTreeSet<String>,
) -> Result<Vec<PersistentVolume>, RequestError> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let listed = volumes.list(&ListParams::default()).await;
    let mut listed = listed.map_err(RequestError::because("cannot list the volumes"))?.items;
    listed.retain(|volume| is_claimed_from(volume, namespaces));
    Ok(listed)
}

fn is_claimed_from(volume: &PersistentVolume, namespaces: &BTreeSet<String>) -> bool {
    let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let namespace = claim.and_then(|claim| claim.namespace.as_ref());
    namespace.is_some_and(|namespace| namespaces.contains(namespace))
}

/// Volumes that are claimed from these namespaces stay when their claims go. How many had to be
/// changed.
pub(super) async fn retain(
    client: &Client,
    namespaces: &BTreeSet<String>,
) -> Result<usize, RequestError> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let mut changed = 0;
    for volume in claimed(client, namespaces).await?.iter().filter(|volume| would_go(volume)) {
        let patch = json!({
            "metadata": { "uid": volume.uid() },
            "spec": { "persistentVolumeReclaimPolicy": "Retain" },
        });
        let manager = Some(FIELD_MANAGER.to_owned());
        let params = PatchParams { field_manager: manager, ..PatchParams::default() };
        let name = volume.name_any();
        let what = format!("cannot set the volume `{name}` to Retain");
        volumes
            .patch(&name, &params, &Patch::Merge(&patch))
            .await
            .map_err(RequestError::because(what))?;
        changed += 1;
    }
    Ok(changed)
}

fn would_go(volume: &PersistentVolume) -> bool {
    let spec = volume.spec.as_ref();
    spec.is_some_and(|spec| spec.persistent_volume_reclaim_policy.as_deref() != Some("Retain"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_claimed_volumes_of_the_platform_that_would_go_are_changed() {
        let volume = |namespace: &str, policy: &str| {
            let spec = json!({
                "claimRef": { "namespace": namespace }, "persistentVolumeReclaimPolicy": policy,
            });
            serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap()
        };
        let namespaces = ["db".to_owned()].into();
        let changed = |volume: &_| is_claimed_from(volume, &namespaces) && would_go(volume);
        assert!(changed(&volume("db", "Delete")));
        assert!(!changed(&volume("db", "Retain")));
        assert!(!changed(&volume("other", "Delete")));
        assert!(!changed(&PersistentVolume::default()));
    }
}
