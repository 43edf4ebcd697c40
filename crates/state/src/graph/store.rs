//! Where the deployed graph is kept: ConfigMaps, compressed, in pieces that they take.
//!
//! The first ConfigMap decides. It holds the graph, or its beginning and the names of those with
//! the rest, which are one of two banks. A new graph is written to the bank that the first one does
//! not name, and to the first one at last: whoever is killed in between leaves the old graph.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, PartialObjectMeta, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use tiphys_model::PlatformName;

use super::DeployedGraph;
use super::error::{GraphError, NOT_KEPT};
use tiphys_cluster::names::{self, FIELD_MANAGER, GraphNames, MANAGED_BY, PLATFORM_LABEL};
use tiphys_cluster::{RequestError, delete};

/// A ConfigMap takes a little more than a million bytes, and base64 makes four of three.
const SHARD: usize = 700_000;
const KEY: &str = "graph.json.gz";
/// On the first ConfigMap: the names of those with the rest of the graph. It is written empty too,
/// because an apply does not remove what somebody else has set as well.
const CONTINUED: &str = "tiphys.dev/continued-in";

/// Where it is kept.
pub struct GraphStore {
    maps: Api<ConfigMap>,
    names: GraphNames,
    /// How many bytes go into each.
    shard: usize,
    platform: String,
}

impl GraphStore {
    #[must_use]
    pub fn new(client: &Client, namespace: &str, platform: &PlatformName) -> Self {
        GraphStore {
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
        let what = format!("cannot list the ConfigMaps in `{namespace}`");
        let listed = maps.list_metadata(&ListParams::default().labels(&ours)).await;
        let listed = listed.map_err(RequestError::because(what))?;
        let platform = |map: &PartialObjectMeta<ConfigMap>| {
            let platform = PlatformName::parse(map.labels().get(PLATFORM_LABEL)?).ok()?;
            // The others mean nothing without it.
            (names::graph(&platform).first == map.name_any()).then_some(platform)
        };
        Ok(listed.items.iter().filter_map(platform).collect())
    }

    /// What is kept; nothing if the platform was never deployed.
    pub async fn read(&self) -> Result<Option<DeployedGraph>, GraphError> {
        let mut seen = None;
        loop {
            let Some(first) = self.get(&self.names.first).await? else { return Ok(None) };
            let version = first.resource_version();
            match self.read_from(first).await {
                // A run may have written a new one to both banks meanwhile.
                Err(GraphError::Unreadable { .. }) if version != seen => seen = version,
                read => return read,
            }
        }
    }

    async fn read_from(&self, first: ConfigMap) -> Result<Option<DeployedGraph>, GraphError> {
        let unreadable = |source| GraphError::Unreadable { map: self.names.first.clone(), source };
        let rest = continued(&self.names, first.annotations());
        let invalid = || io::Error::other(format!("its annotation {CONTINUED} is invalid"));
        let rest = rest.ok_or_else(|| unreadable(invalid()))?;
        let Some(mut bytes) = content(first) else { return Ok(None) };
        for name in rest {
            let shard = self.get(name).await?.and_then(content);
            let missing = || io::Error::other(format!("the ConfigMap `{name}` is missing"));
            bytes.extend(shard.ok_or_else(|| unreadable(missing()))?);
        }
        DeployedGraph::decode(&bytes).map(Some).map_err(unreadable)
    }

    pub async fn write(&self, graph: &DeployedGraph) -> Result<(), GraphError> {
        let bytes = graph.encode().map_err(GraphError::Unwritable)?;
        let (beginning, rest) = bytes.split_at(bytes.len().min(self.shard));
        let rest: Vec<&[u8]> = rest.chunks(self.shard).collect();
        let first = self.look_at(&self.names.first).await?;
        let bank = spare(&self.names, self.in_use(first.as_ref()));
        let Some(bank) = bank.get(..rest.len()) else {
            return Err(GraphError::TooLarge { bytes: bytes.len() });
        };
        for (name, shard) in bank.iter().zip(rest) {
            let found = self.look_at(name).await?;
            self.apply(name, shard, found, BTreeMap::new()).await?;
        }
        let continued = [(CONTINUED.to_owned(), bank.join(" "))].into();
        self.apply(&self.names.first, beginning, first, continued).await
    }

    /// Deletes the graph. If this is interrupted, the graph is still complete, or it is gone.
    pub async fn delete(&self) -> Result<(), GraphError> {
        let first = self.look_at(&self.names.first).await?;
        let in_use = self.in_use(first.as_ref());
        let spare = self.names.banks.iter().flatten().filter(|name| !in_use.contains(name));
        let mut found = Vec::new();
        for name in spare.chain([&self.names.first]).chain(in_use) {
            found.extend(self.look_at(name).await?.map(|map| (name, map.uid())));
        }
        for (name, uid) in found {
            let what = format!("cannot delete the ConfigMap `{name}`");
            delete::delete(&self.maps, name, &delete::only(uid), what).await?;
        }
        Ok(())
    }

    async fn get(&self, name: &str) -> Result<Option<ConfigMap>, GraphError> {
        let map = self.maps.get_opt(name).await.map_err(RequestError::because(not_read(name)))?;
        map.map(|map| self.own(map)).transpose()
    }

    /// What there is to know of a ConfigMap without its content.
    async fn look_at(
        &self,
        name: &str,
    ) -> Result<Option<PartialObjectMeta<ConfigMap>>, GraphError> {
        let map = self.maps.get_metadata_opt(name).await;
        let map = map.map_err(RequestError::because(not_read(name)))?;
        map.map(|map| self.own(map)).transpose()
    }

    /// Only what says that it is this platform's is read, written or deleted.
    fn own<K: ResourceExt>(&self, map: K) -> Result<K, GraphError> {
        match map.labels().get(PLATFORM_LABEL) {
            Some(owner) if *owner == self.platform => Ok(map),
            owner => Err(GraphError::Foreign {
                map: map.name_any(),
                platform: self.platform.clone(),
                owner: owner.cloned(),
            }),
        }
    }

    /// What a graph goes on in that cannot be read need not be spared.
    fn in_use(&self, first: Option<&PartialObjectMeta<ConfigMap>>) -> &[String] {
        first.and_then(|first| continued(&self.names, first.annotations())).unwrap_or_default()
    }

    /// Writes one ConfigMap: the one that was `found`, as it was found, or a new one.
    async fn apply(
        &self,
        name: &str,
        shard: &[u8],
        found: Option<PartialObjectMeta<ConfigMap>>,
        annotations: BTreeMap<String, String>,
    ) -> Result<(), GraphError> {
        let labels = [MANAGED_BY, (PLATFORM_LABEL, &self.platform)];
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                resource_version: found.and_then(|found| found.resource_version()),
                labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            binary_data: Some([(KEY.to_owned(), ByteString(shard.to_vec()))].into()),
            ..ConfigMap::default()
        };
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let written = self.maps.patch(name, &params, &Patch::Apply(map)).await;
        written.map_err(RequestError::because(NOT_KEPT))?;
        Ok(())
    }
}

fn not_read(name: &str) -> String {
    format!("cannot read the ConfigMap `{name}` with the deployed graph")
}

fn content(map: ConfigMap) -> Option<Vec<u8>> {
    Some(map.binary_data?.remove(KEY)?.0)
}

/// In which ConfigMaps the graph goes on, as the first one says; `None` if those are not ours.
fn continued<'a>(names: &'a GraphNames, first: &BTreeMap<String, String>) -> Option<&'a [String]> {
    let said = first.get(CONTINUED).map_or("", String::as_str);
    let said: Vec<&str> = said.split_whitespace().collect();
    names.banks.iter().filter_map(|bank| bank.get(..said.len())).find(|bank| *bank == said)
}

/// The bank that does not hold what is in use.
fn spare<'a>(names: &'a GraphNames, in_use: &[String]) -> &'a [String] {
    let [a, b] = &names.banks;
    if in_use.iter().any(|name| a.contains(name)) { b } else { a }
}
