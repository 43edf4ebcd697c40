//! The deployed graph, kept in the cluster so that a teardown needs no Git: for each app the
//! edges of its last Done, and what the cluster had before the platform came.

mod platform;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tiphys_model::{AppIx, Plan, Platform, Role};

pub use platform::Settings;
pub use store::GraphStore;

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployedGraph {
    pub settings: Settings,
    pub apps: BTreeMap<String, DeployedApp>,
    /// What was there before the first deployment; `None`: nobody could look.
    pub before: Option<Names>,
    /// What its apps are in, and define. Argo CD does not remove that with them.
    #[serde(default)]
    pub brought: Names,
    /// Apps that were removed: something of theirs may be left.
    #[serde(default)]
    pub gone: BTreeSet<String>,
}

/// An app, as it was when a run last deployed it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeployedApp {
    pub stack: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub sync_seconds: u64,
    pub health_seconds: u64,
    pub typical_seconds: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerate_drift: Vec<String>,
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

/// Names of namespaces and custom resource definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Names {
    pub namespaces: BTreeSet<String>,
    pub crds: BTreeSet<String>,
}

impl DeployedGraph {
    /// Of a platform that was never deployed.
    #[must_use]
    pub fn new(platform: &Platform, before: Option<Names>) -> Self {
        let settings = Settings::of(platform);
        DeployedGraph {
            settings,
            apps: BTreeMap::new(),
            before,
            brought: Names::default(),
            gone: BTreeSet::new(),
        }
    }

    /// Notes what a run sets out to deploy.
    pub fn plan(&mut self, platform: &Platform, plan: &Plan) {
        self.settings = Settings::of(platform);
        for (position, planned) in plan.apps.iter().enumerate() {
            if planned.role == Role::Deploy {
                let name = planned.app.name.to_string();
                self.gone.remove(&name);
                let app = self.apps.entry(name).or_default();
                app.stack = planned.app.stack.to_string();
                let group = planned.app.group.map(|group| &plan.policies.groups[group]);
                app.group = group.map(|group| group.name.to_string());
                app.sync_seconds = planned.app.timeouts.sync.as_secs();
                app.health_seconds = planned.app.timeouts.health.as_secs();
                app.typical_seconds = planned.app.typical.as_secs();
                app.tolerate_drift.clone_from(&planned.app.tolerate_drift);
                app.planned = dependencies(plan, AppIx::new(position));
            }
        }
    }

    /// Notes that an app is Done with the edges of the plan.
    pub fn done(&mut self, plan: &Plan, app: AppIx) {
        let name = plan.app(app).app.name.to_string();
        self.apps.entry(name).or_default().done = Some(dependencies(plan, app));
    }

    /// Notes that an app is gone.
    pub fn removed(&mut self, name: &str) {
        self.apps.remove(name);
        self.gone.insert(name.to_owned());
    }

    /// Namespaces and CRDs that came with the platform, and go with it.
    #[must_use]
    pub(crate) fn came_with_it(&self) -> Names {
        let Some(before) = &self.before else { return Names::default() };
        Names {
            namespaces: &self.brought.namespaces - &before.namespaces,
            crds: &self.brought.crds - &before.crds,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(namespaces: &[&str], crds: &[&str]) -> Names {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names { namespaces: set(namespaces), crds: set(crds) }
    }

    fn graph() -> DeployedGraph {
        let app = DeployedApp {
            stack: "storage".to_owned(),
            done: Some(["ceph-operator".to_owned()].into()),
            ..DeployedApp::default()
        };
        DeployedGraph {
            settings: Settings::default(),
            apps: [("ceph-cluster".to_owned(), app)].into(),
            before: Some(names(&["default"], &["old.example.org"])),
            brought: names(&["default", "rook"], &["new.example.org", "old.example.org"]),
            gone: BTreeSet::new(),
        }
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        assert_eq!(DeployedGraph::decode(&graph().encode().unwrap()).unwrap(), graph());
    }

    #[test]
    fn what_was_there_before_stays() {
        let mut graph = graph();
        assert_eq!(graph.came_with_it(), names(&["rook"], &["new.example.org"]));
        graph.before = None;
        assert_eq!(graph.came_with_it(), Names::default(), "nobody knows, so all of it stays");
    }

    #[test]
    fn the_edges_of_the_last_done_count_and_else_the_planned_ones() {
        let mut app = DeployedApp { planned: ["a".to_owned()].into(), ..DeployedApp::default() };
        assert_eq!(app.dependencies(), &app.planned);
        app.done = Some(["b".to_owned()].into());
        assert!(app.dependencies().contains("b") && !app.dependencies().contains("a"));
    }
}
