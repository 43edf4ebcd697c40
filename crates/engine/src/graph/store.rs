//! Where the deployed graph is kept: ConfigMaps, compressed, in pieces that they take.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use tiphys_model::PlatformName;

use super::error::{GraphError, NOT_KEPT};
use super::{DeployedGraph, Names};
use tiphys_cluster::names::{self, FIELD_MANAGER, MANAGED_BY, PLATFORM_LABEL};
use tiphys_cluster::{Cause, RequestError};

/// A ConfigMap takes a little more than a million bytes, and base64 makes four of three.
const SHARD: usize = 700_000;
const KEY: &str = "graph.json.gz";

/// Where it is kept.
pub struct GraphStore {
    client: Client,
    maps: Api<ConfigMap>,
    /// Its ConfigMaps, the first of which is always there.
    names: Vec<String>,
    /// How many bytes go into each.
    shard: usize,
    platform: String,
}

impl GraphStore {
    #[must_use]
    pub fn new(client: &Client, namespace: &str, platform: &PlatformName) -> Self {
        GraphStore {
            client: client.clone(),
            maps: Api::namespaced(client.clone(), namespace),
            names: names::graph(platform),
            shard: SHARD,
            platform: platform.to_string(),
        }
    }

    /// The platforms that have been deployed with this Argo CD.
    pub async fn platforms(
        client: &Client,
        namespace: &str,
    ) -> Result<BTreeSet<PlatformName>, RequestError> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let ours = format!("{}={},{PLATFORM_LABEL}", MANAGED_BY.0, MANAGED_BY.1);
        let what = format!("the ConfigMaps in `{namespace}` cannot be listed");
        let listed = maps.list_metadata(&ListParams::default().labels(&ours)).await;
        let listed = listed.map_err(RequestError::because(what))?;
        let labels = listed.items.iter().filter_map(|map| map.labels().get(PLATFORM_LABEL));
        Ok(labels.filter_map(|name| PlatformName::parse(name).ok()).collect())
    }

    /// What is kept; nothing if the platform was never deployed.
    pub async fn read(&self) -> Result<Option<DeployedGraph>, GraphError> {
        let mut bytes = Vec::new();
        for (number, name) in self.names.iter().enumerate() {
            let what = format!("the ConfigMap `{name}` with the deployed graph cannot be read");
            let map = self.maps.get_opt(name).await.map_err(RequestError::because(what))?;
            match map.and_then(|map| map.binary_data?.remove(KEY)) {
                Some(shard) => bytes.extend(shard.0),
                None if number == 0 => return Ok(None),
                None => break,
            }
        }
        DeployedGraph::decode(&bytes)
            .map(Some)
            .map_err(|source| GraphError::Unreadable { map: self.names[0].clone(), source })
    }

    pub async fn write(&self, graph: &DeployedGraph) -> Result<(), GraphError> {
        let bytes = graph.encode().map_err(GraphError::Unwritable)?;
        let shards: Vec<&[u8]> = bytes.chunks(self.shard).collect();
        if shards.len() > self.names.len() {
            return Err(GraphError::TooLarge { bytes: bytes.len() });
        }
        let params = PatchParams::apply(FIELD_MANAGER).force();
        for (name, shard) in self.names.iter().zip(&shards) {
            let patch = Patch::Apply(self.config_map(name, shard));
            self.maps
                .patch(name, &params, &patch)
                .await
                .map_err(RequestError::because(NOT_KEPT))?;
        }
        // Fewer than before: the rest would be read as part of it.
        for name in &self.names[shards.len()..] {
            match self.maps.get_opt(name).await.map_err(RequestError::because(NOT_KEPT))? {
                Some(_) => {
                    let gone = self.maps.delete(name, &DeleteParams::default()).await;
                    gone.map_err(RequestError::because(NOT_KEPT))?;
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Removes it: the platform is no longer deployed.
    pub async fn delete(&self) -> Result<(), RequestError> {
        for name in &self.names {
            match self.maps.delete(name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => {
                    let what = format!("the ConfigMap `{name}` cannot be deleted");
                    return Err(RequestError::because(what)(error));
                }
            }
        }
        Ok(())
    }

    /// What the cluster has now; nothing, if the caller may not list it. A teardown then leaves
    /// namespaces and CRDs where they are, so any other failure is an error: it would be the same.
    pub(crate) async fn list_before(&self) -> Result<Option<Names>, RequestError> {
        let all = ListParams::default();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let listed =
            async { Ok((namespaces.list_metadata(&all).await?, crds.list_metadata(&all).await?)) };
        let what = "the namespaces and CRDs cannot be listed";
        match listed.await.map_err(RequestError::because(what)) {
            Ok((namespaces, crds)) => Ok(Some(Names {
                namespaces: namespaces.items.iter().map(ResourceExt::name_any).collect(),
                crds: crds.items.iter().map(ResourceExt::name_any).collect(),
            })),
            Err(error) if error.cause() == Cause::Denied => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn config_map(&self, name: &str, shard: &[u8]) -> ConfigMap {
        let labels = [MANAGED_BY, (PLATFORM_LABEL, &self.platform)];
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
                ..ObjectMeta::default()
            },
            binary_data: Some([(KEY.to_owned(), ByteString(shard.to_vec()))].into()),
            ..ConfigMap::default()
        }
    }
}
