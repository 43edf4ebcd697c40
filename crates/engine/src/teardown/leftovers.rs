//! What a removed platform has left in the cluster: found, told, and removed if somebody wants it.

mod pointers;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, ObjectMeta, PropagationPolicy};
use kube::{Api, Client, ResourceExt};
use tiphys_assess::ownership::{self, Keep};
use tiphys_model::Platform;
use tiphys_model::platform::ArgoCd;
use tiphys_state::graph::{DeployedGraph, Names};

use super::beside::Beside;
use super::inventory::{Division, Kept};
use super::{TeardownError, namespaces_and_crds, volumes};
use tiphys_argocd::tracking;
use tiphys_cluster::delete;
use tiphys_cluster::{Kinds, ObjectName, RequestError};
use tokio::time::Instant;

const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);
/// What Kubernetes makes and removes by itself.
const PASSING: [&str; 3] = ["Event", "Lease", "EndpointSlice"];

static NOTHING: BTreeMap<String, String> = BTreeMap::new();

/// What is left of what an app has applied.
enum Left {
    Over(Leftover),
    Kept(Kept),
}

/// An object that was not there before the platform came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub object: ObjectName,
    pub why: String,
    /// It is the platform's beyond doubt. Others are only named.
    pub certain: bool,
    pub uid: Option<String>,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.why)?;
        if self.certain { Ok(()) } else { f.write_str(" (may not belong to this platform)") }
    }
}

/// What the removed apps of a platform have left, as far as it is theirs beyond doubt. Others of
/// its apps may still be there: what an Application uses is not left.
pub async fn leftovers(
    client: &Client,
    platform: &Platform,
    graph: &DeployedGraph,
) -> Result<Vec<Leftover>, RequestError> {
    if graph.gone.is_empty() {
        return Ok(Vec::new());
    }
    let beside = Beside::read(client, &platform.argocd, |_| false).await?;
    let kinds = Kinds::discover(client).await?;
    let Division { going, .. } = beside.divide(client, &kinds, platform, graph, &[]).await?;
    let (argocd, came) = (&platform.argocd, &going);
    let search = Search { client, argocd, kinds: &kinds, graph, came, beside: &beside };
    let mut found = search.run().await?.leftovers;
    found.retain(|leftover| leftover.certain);
    Ok(found)
}

/// What is looked for.
pub(super) struct Search<'a> {
    pub(super) client: &'a Client,
    pub(super) argocd: &'a ArgoCd,
    pub(super) kinds: &'a Kinds,
    pub(super) graph: &'a DeployedGraph,
    /// What came with the platform and is nobody else's by now.
    pub(super) came: &'a Names,
    pub(super) beside: &'a Beside,
}

/// What a removed platform has left.
#[derive(Debug, Default)]
pub(super) struct Remains {
    pub(super) leftovers: Vec<Leftover>,
    /// What somebody wanted to keep.
    pub(super) kept: Vec<Kept>,
}

impl Search<'_> {
    /// All that is left, sorted, each object once.
    pub(super) async fn run(&self) -> Result<Remains, RequestError> {
        let (mut found, kept) = self.tracked().await?;
        found.extend(self.namespaces().await?);
        found.extend(self.crds().await?);
        found.extend(self.volumes().await?);
        found.extend(pointers::to_nowhere(self.client, self.kinds, &self.came.namespaces).await?);
        // Of two reasons for one object, that which is beyond doubt counts.
        found.sort_by(|a, b| (&a.object, !a.certain).cmp(&(&b.object, !b.certain)));
        found.dedup_by(|b, a| a.object == b.object);
        found.retain(|leftover| kept.iter().all(|kept: &Kept| kept.object != leftover.object));
        Ok(Remains { leftovers: found, kept })
    }

    /// What Argo CD has applied for an app of the platform and not removed with it. What has an
    /// owner goes with that.
    async fn tracked(&self) -> Result<(Vec<Leftover>, Vec<Kept>), RequestError> {
        let (mut found, mut kept) = (Vec::new(), Vec::new());
        for (resource, api) in self.kinds.listable() {
            if PASSING.contains(&&*resource.kind) {
                continue;
            }
            // What cannot be listed, somebody else has to look after.
            Kinds::each_object(resource, &api, |metadata| {
                match self.judge(&resource.group, &resource.kind, &metadata) {
                    Some(Left::Over(leftover)) => found.push(leftover),
                    Some(Left::Kept(object)) => kept.push(object),
                    None => {}
                }
            })
            .await?;
        }
        Ok((found, kept))
    }

    fn judge(&self, group: &str, kind: &str, metadata: &ObjectMeta) -> Option<Left> {
        if metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty()) {
            return None;
        }
        let object = named(group, kind, metadata);
        let instance = tracking::app_of(&object, metadata)?;
        let app = self.argocd.app_of_instance(instance)?;
        // An app of that name may have come back, or may be another platform's by now.
        if !self.graph.gone.contains(app) || self.beside.tracked_as.contains(instance) {
            return None;
        }
        let annotations = metadata.annotations.as_ref().unwrap_or(&NOTHING);
        let keep = ownership::keep(metadata.labels.as_ref().unwrap_or(&NOTHING), annotations);
        let by_its_app =
            || self.graph.keeping.contains(app) && !ownership::says_itself(annotations);
        if let Some(keep) = keep.or_else(|| by_its_app().then_some(Keep::AppDeleteFalse)) {
            return Some(Left::Kept(Kept { object, why: keep.to_string() }));
        }
        // A label of that kind is on what others have installed as well.
        let certain = tracking::is_annotated(metadata);
        let why = format!("`{app}` applied it, and Argo CD did not delete it");
        Some(Left::Over(Leftover { object, why, certain, uid: metadata.uid.clone() }))
    }

    /// Namespaces of others come and go, so of those only what is stuck is told.
    async fn namespaces(&self) -> Result<Vec<Leftover>, RequestError> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let listed = namespaces.list(&ListParams::default()).await;
        let listed = listed.map_err(RequestError::because("cannot list the namespaces"))?;
        let left = listed.items.iter().filter_map(|namespace| {
            let certain = self.came.namespaces.contains(&namespace.name_any());
            let why = match namespace.metadata.deletion_timestamp {
                Some(_) => {
                    let status = serde_json::to_value(namespace).unwrap_or_default();
                    let remaining = namespaces_and_crds::remaining(&status);
                    format!("it is being deleted, but still exists: {remaining}")
                }
                None if certain => "it came with the platform".to_owned(),
                None => return None,
            };
            let object = named("", "Namespace", &namespace.metadata);
            Some(Leftover { object, why, certain, uid: namespace.uid() })
        });
        Ok(left.collect())
    }

    /// Operators make CRDs that no app has applied.
    async fn crds(&self) -> Result<Vec<Leftover>, RequestError> {
        let Some(before) = &self.graph.before else { return Ok(Vec::new()) };
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let listed = crds.list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(RequestError::because("cannot list the CRDs"))?;
        let new = listed.items.iter().filter(|d| !before.crds.contains(&d.name_any()));
        let left = new.map(|definition| Leftover {
            object: named("apiextensions.k8s.io", "CustomResourceDefinition", &definition.metadata),
            why: "it did not exist before the platform".to_owned(),
            certain: self.came.crds.contains(&definition.name_any()),
            uid: definition.uid(),
        });
        Ok(left.collect())
    }

    /// Volumes that were claimed from a namespace of the platform.
    async fn volumes(&self) -> Result<Vec<Leftover>, RequestError> {
        let volumes = volumes::claimed(self.client, &self.came.namespaces).await?;
        let left = volumes.into_iter().filter_map(|volume| {
            let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
            let namespace = claim.namespace.as_ref()?;
            let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
            let name = claim.name.as_deref().unwrap_or("?");
            let phase = phase.unwrap_or("unknown");
            let why = format!("{phase} volume of the claim {namespace}/{name}");
            let object = named("", "PersistentVolume", &volume.metadata);
            Some(Leftover { object, why, certain: true, uid: volume.uid() })
        });
        Ok(left.collect())
    }
}

fn named(group: &str, kind: &str, metadata: &ObjectMeta) -> ObjectName {
    ObjectName {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}

/// Removes those that are the platform's beyond doubt, and waits until they are gone.
pub(super) async fn clean(kinds: &Kinds, leftovers: &[Leftover]) -> Result<(), TeardownError> {
    let certain = leftovers.iter().filter(|leftover| leftover.certain);
    let certain: Vec<_> = certain.map(|one| (one.object.clone(), one.uid.clone())).collect();
    remove_objects(kinds, &certain, REMOVAL_TIMEOUT).await
}

/// Removes these very objects, and waits until they are gone.
pub(super) async fn remove_objects(
    kinds: &Kinds,
    objects: &[(ObjectName, Option<String>)],
    timeout: Duration,
) -> Result<(), TeardownError> {
    for (object, uid) in objects {
        let Some(api) = kinds.api(object) else { continue };
        let mut params = delete::only(uid.clone());
        params.propagation_policy = Some(PropagationPolicy::Background);
        let what = format!("cannot delete {object}");
        delete::delete(&api, &object.name, &params, what).await?;
    }
    let began = Instant::now();
    for (object, uid) in objects {
        loop {
            let what = format!("cannot read {object}");
            let found = kinds.get(object).await.map_err(RequestError::because(what))?;
            if found.is_none_or(|found| found.uid() != *uid) {
                break;
            }
            if began.elapsed() > timeout {
                return Err(TeardownError::LeftoverStays {
                    object: object.clone(),
                    after: timeout,
                });
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}
