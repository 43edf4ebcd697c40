//! The deployed graph, kept in the cluster so that a teardown needs no Git: for each app the
//! edges of its last Done and of the last plan, and what the cluster had before the platform came.

mod app;
mod containers;
mod error;
mod names;
mod origins;
mod platform;
mod recorder;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tiphys_argocd::application::Application;
use tiphys_model::{AppIx, DeployPolicy, Plan, Platform, Role};

pub use app::DeployedApp;
pub use containers::Containers;
pub use error::GraphError;
pub use names::{Names, Uids, used};
pub use platform::Settings;
pub use recorder::GraphRecorder;
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
    /// What somebody else had made when a later deployment began.
    #[serde(default)]
    pub appeared: Names,
    /// What came with its apps; `None`: an older Tiphys has not noted it.
    #[serde(default)]
    pub came: Option<Uids>,
    /// Apps whose objects stay when they are deleted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub keeping: BTreeSet<String>,
    /// Apps that were removed: something of theirs may be left.
    #[serde(default)]
    pub gone: BTreeSet<String>,
    /// Of the root app, if all apps are Done at it since a run of the whole platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<String>,
    /// Somebody has begun to remove the whole platform since it was deployed last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removing: bool,
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
            appeared: Names::default(),
            came: Some(Uids::default()),
            keeping: BTreeSet::new(),
            gone: BTreeSet::new(),
            deployed: None,
            removing: false,
        }
    }

    /// Notes what a run sets out to deploy, and at which revision of the root app.
    pub fn plan(&mut self, platform: &Platform, plan: &Plan, revision: Option<&str>) {
        self.settings = Settings::of(platform);
        if self.deployed.as_deref() != revision {
            self.deployed = None;
        }
        self.removing = false;
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

    /// Notes what these Applications, which are about to go, have brought, and which of them keep
    /// their objects: afterwards nobody can ask them.
    pub fn note_going<'a>(&mut self, going: impl Iterator<Item = &'a Application> + Clone) {
        self.brought.extend(names::brought(going.clone()));
        for application in going {
            let name = application.name().to_owned();
            if application.keeps_its_objects() {
                self.keeping.insert(name);
            } else {
                self.keeping.remove(&name);
            }
        }
    }

    /// Notes that an app is gone.
    pub fn removed(&mut self, name: &str) {
        self.apps.remove(name);
        self.gone.insert(name.to_owned());
    }

    /// Who may start deployments; `None`: the next one is a person's.
    #[must_use]
    pub fn deploy_policy(&self) -> Option<&DeployPolicy> {
        (!self.removing).then_some(self.settings.deploy_policy())
    }

    /// The apps of which nobody knows whether they have health criteria: an older Tiphys has
    /// deployed them.
    #[must_use]
    pub fn without_criteria(&self) -> BTreeSet<String> {
        let unknown = self.apps.iter().filter(|(_, app)| app.health.is_none());
        unknown.map(|(name, _)| name.clone()).collect()
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
pub(crate) mod tests {
    use tiphys_model::Platform;
    use tiphys_spec::{Source, Sources};

    use super::*;

    /// `b` depends on `a`.
    pub(crate) fn platform() -> Platform {
        let file = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: prod }
spec:
  argocd: { project: apps }
  stacks: [{ name: s, apps: [{ name: a }, { name: b, dependsOn: [a] }] }]
";
        let source = Source::new("platform.yaml", file.into()).unwrap();
        tiphys_spec::platform(&Sources::new(vec![source])).unwrap()
    }

    pub(super) fn names(namespaces: &[&str], crds: &[&str]) -> Names {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names { namespaces: set(namespaces), crds: set(crds) }
    }

    pub(super) fn graph() -> DeployedGraph {
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
            appeared: Names::default(),
            came: Some(Uids::default()),
            keeping: BTreeSet::new(),
            gone: BTreeSet::new(),
            deployed: None,
            removing: false,
        }
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        assert_eq!(DeployedGraph::decode(&graph().encode().unwrap()).unwrap(), graph());
    }

    #[test]
    fn one_that_an_older_tiphys_has_written_is_read() {
        let mut old = serde_json::to_value(graph()).unwrap();
        for field in ["appeared", "came"] {
            assert!(old.as_object_mut().unwrap().remove(field).is_some());
        }
        let read = serde_json::from_value::<DeployedGraph>(old).unwrap();
        assert_eq!(read, DeployedGraph { came: None, ..graph() });
        assert_eq!(read.came_with_it(), names(&["rook"], &["new.example.org"]));
    }
}
