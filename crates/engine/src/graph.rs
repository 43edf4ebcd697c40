//! The deployed graph, kept in the cluster so that a teardown needs no Git: for each app the
//! edges of its last Done and of the last plan, and what the cluster had before the platform came.

mod app;
mod error;
mod platform;
mod recorder;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tiphys_model::{AppIx, Plan, Platform, Role};

pub use app::DeployedApp;
pub use error::GraphError;
pub use platform::Settings;
pub(crate) use recorder::GraphRecorder;
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

/// Names of namespaces and custom resource definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Names {
    pub namespaces: BTreeSet<String>,
    pub crds: BTreeSet<String>,
}

impl Names {
    pub(crate) fn extend(&mut self, others: Names) {
        self.namespaces.extend(others.namespaces);
        self.crds.extend(others.crds);
    }
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
            if planned.role == Role::Act {
                let name = planned.app.name.to_string();
                self.gone.remove(&name);
                let done = self.apps.remove(&name).and_then(|before| before.done);
                let app = DeployedApp::planned(plan, AppIx::new(position), done);
                self.apps.insert(name, app);
            }
        }
    }

    /// Notes that an app is Done with the edges of the plan. What a plan only verifies has edges
    /// outside the plan: it keeps those that it has.
    pub fn done(&mut self, plan: &Plan, app: AppIx) {
        if plan.app(app).role == Role::Act
            && let Some(deployed) = self.apps.get_mut(plan.app(app).app.name.as_str())
        {
            deployed.done = Some(deployed.planned.clone());
        }
    }

    /// Notes that an app is gone.
    pub fn removed(&mut self, name: &str) {
        self.apps.remove(name);
        self.gone.insert(name.to_owned());
    }

    /// The apps of which nobody knows whether they have health criteria: an older Tiphys has
    /// deployed them.
    #[must_use]
    pub fn without_criteria(&self) -> BTreeSet<String> {
        let unknown = self.apps.iter().filter(|(_, app)| app.health.is_none());
        unknown.map(|(name, _)| name.clone()).collect()
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
}
