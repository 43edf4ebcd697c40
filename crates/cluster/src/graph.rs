//! The deployed graph, kept in the cluster so that a teardown needs no Git: for each app the
//! edges of its last Done, and what the cluster had before the platform came.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde::{Deserialize, Serialize};
use tiphys_model::{AppIx, Plan, Platform, Role};

use crate::error::{ClusterError, Kind};
use crate::names::{self, FIELD_MANAGER, MANAGED_BY, PLATFORM_LABEL};

/// A ConfigMap takes a little more than a million bytes, and base64 makes four of three.
const SHARD: usize = 700_000;
const KEY: &str = "graph.json.gz";

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployedGraph {
    pub apps: BTreeMap<String, DeployedApp>,
    /// What was there before the first deployment; `None`: nobody could look.
    pub before: Option<Before>,
}

/// An app, as it was when a run last deployed it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployedApp {
    pub stack: String,
    /// The edges of its last Done; none if it never was.
    pub done: Option<BTreeSet<String>>,
    /// The edges of the run that began last.
    pub planned: BTreeSet<String>,
}

impl DeployedApp {
    #[must_use]
    pub fn dependencies(&self) -> &BTreeSet<String> {
        self.done.as_ref().unwrap_or(&self.planned)
    }
}

/// Names of what a platform may leave behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Before {
    pub namespaces: BTreeSet<String>,
    pub definitions: BTreeSet<String>,
}

impl DeployedGraph {
    /// Notes what a run sets out to deploy.
    pub fn plan(&mut self, plan: &Plan) {
        for (position, planned) in plan.apps.iter().enumerate() {
            if planned.role == Role::Deploy {
                let app = self.apps.entry(planned.app.name.to_string()).or_default();
                app.stack = planned.app.stack.to_string();
                app.planned = dependencies(plan, AppIx::new(position));
            }
        }
    }

    /// Notes that an app is Done with the edges of the plan.
    pub fn done(&mut self, plan: &Plan, app: AppIx) {
        let name = plan.app(app).app.name.to_string();
        self.apps.entry(name).or_default().done = Some(dependencies(plan, app));
    }

    fn encode(&self) -> Result<Vec<u8>, std::io::Error> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&serde_json::to_vec(self)?)?;
        encoder.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, std::io::Error> {
        let mut text = Vec::new();
        // Nothing of ours is near this; somebody else's may be a bomb.
        GzDecoder::new(bytes).take(64 << 20).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

fn dependencies(plan: &Plan, app: AppIx) -> BTreeSet<String> {
    let names = plan.graph.dependencies(app).iter();
    names.map(|dependency| plan.app(*dependency).app.name.to_string()).collect()
}

/// Where it is kept.
pub struct GraphStore {
    client: Client,
    maps: Api<ConfigMap>,
    /// Its ConfigMaps, the first of which is always there.
    names: Vec<String>,
    platform: String,
}

impl GraphStore {
    #[must_use]
    pub fn new(client: &Client, platform: &Platform) -> Self {
        GraphStore {
            client: client.clone(),
            maps: Api::namespaced(client.clone(), &platform.argocd.namespace),
            names: names::graph(platform),
            platform: platform.name.to_string(),
        }
    }

    /// What is kept; nothing if the platform was never deployed.
    pub async fn read(&self) -> Result<Option<DeployedGraph>, ClusterError> {
        let mut bytes = Vec::new();
        for (number, name) in self.names.iter().enumerate() {
            let what = format!("the ConfigMap `{name}` with the deployed graph cannot be read");
            let map = self.maps.get_opt(name).await.map_err(ClusterError::kube(what))?;
            match map.and_then(|map| map.binary_data?.remove(KEY)) {
                Some(shard) => bytes.extend(shard.0),
                None if number == 0 => return Ok(None),
                None => break,
            }
        }
        DeployedGraph::decode(&bytes).map(Some).map_err(|error| {
            let what = format!("the deployed graph in the ConfigMap `{}`", self.names[0]);
            ClusterError::new(Kind::Failed, what, format!("it cannot be read: {error}"))
                .hint("delete it, and deploy again")
        })
    }

    pub async fn write(&self, graph: &DeployedGraph) -> Result<(), ClusterError> {
        let what = || "the deployed graph cannot be kept in the cluster".to_owned();
        let failed = |why: String| ClusterError::new(Kind::Failed, what(), why);
        let bytes = graph.encode().map_err(|error| failed(error.to_string()))?;
        let shards: Vec<&[u8]> = bytes.chunks(SHARD).collect();
        if shards.len() > self.names.len() {
            return Err(failed(format!(
                "it has {} bytes, more than there is room for",
                bytes.len()
            )));
        }
        let params = PatchParams::apply(FIELD_MANAGER).force();
        for (name, shard) in self.names.iter().zip(&shards) {
            let patch = Patch::Apply(self.config_map(name, shard));
            self.maps.patch(name, &params, &patch).await.map_err(ClusterError::kube(what()))?;
        }
        // Fewer than before: the rest would be read as part of it.
        for name in &self.names[shards.len()..] {
            match self.maps.get_opt(name).await.map_err(ClusterError::kube(what()))? {
                Some(_) => {
                    let gone = self.maps.delete(name, &DeleteParams::default()).await;
                    gone.map_err(ClusterError::kube(what()))?;
                }
                None => break,
            }
        }
        Ok(())
    }

    /// What the cluster has now. Whoever may not look gets nothing: a teardown then leaves
    /// namespaces and definitions where they are.
    pub async fn look_before(&self) -> Option<Before> {
        let all = ListParams::default();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let namespaces = namespaces.list_metadata(&all).await.ok()?;
        let definitions = definitions.list_metadata(&all).await.ok()?;
        Some(Before {
            namespaces: namespaces.items.iter().map(ResourceExt::name_any).collect(),
            definitions: definitions.items.iter().map(ResourceExt::name_any).collect(),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        let app = DeployedApp {
            stack: "storage".to_owned(),
            done: Some(["ceph-operator".to_owned()].into()),
            planned: BTreeSet::new(),
        };
        let graph = DeployedGraph {
            apps: [("ceph-cluster".to_owned(), app)].into(),
            before: Some(Before::default()),
        };
        assert_eq!(DeployedGraph::decode(&graph.encode().unwrap()).unwrap(), graph);
    }

    #[test]
    fn the_edges_of_the_last_done_count_and_else_the_planned_ones() {
        let mut app = DeployedApp { planned: ["a".to_owned()].into(), ..DeployedApp::default() };
        assert_eq!(app.dependencies(), &app.planned);
        app.done = Some(["b".to_owned()].into());
        assert!(app.dependencies().contains("b") && !app.dependencies().contains("a"));
    }
}
