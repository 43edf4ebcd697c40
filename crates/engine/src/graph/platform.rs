//! The platform as the deployed graph knows it, for actions that are given no platform file.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiphys_model::graph::Edge;
use tiphys_model::platform::{ArgoCd, ArgoCdAccess, Group, Hold, Policies};
use tiphys_model::{AppIx, Graph, GroupName, Platform, PlatformName};

use super::{DeployedApp, DeployedGraph, GraphError};

/// What concerns the platform as a whole, as of the run that began last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    project: String,
    root_project: String,
    /// Runs act through the fields of Applications.
    through_fields: bool,
    always_held: bool,
    concurrency: u32,
    groups: BTreeMap<String, u32>,
    timeout_seconds: u64,
}

impl Settings {
    pub(super) fn of(platform: &Platform) -> Self {
        let groups = platform.policies.groups.iter();
        Settings {
            project: platform.argocd.project.clone(),
            root_project: platform.argocd.root_project.clone(),
            through_fields: platform.argocd.access == ArgoCdAccess::Kubernetes,
            always_held: platform.policies.hold == Hold::Always,
            concurrency: platform.policies.concurrency.get(),
            groups: groups.map(|g| (g.name.to_string(), g.concurrency.get())).collect(),
            timeout_seconds: platform.policies.timeout.as_secs(),
        }
    }

    fn argocd(&self, namespace: &str) -> ArgoCd {
        ArgoCd {
            namespace: namespace.to_owned(),
            project: self.project.clone(),
            root_project: self.root_project.clone(),
            access: if self.through_fields { ArgoCdAccess::Kubernetes } else { ArgoCdAccess::Api },
        }
    }

    fn policies(&self) -> Option<Policies> {
        let group = |(name, limit): (&String, &u32)| {
            Some(Group {
                name: GroupName::parse(name).ok()?,
                concurrency: NonZeroU32::new(*limit)?,
            })
        };
        Some(Policies {
            hold: if self.always_held { Hold::Always } else { Hold::DuringRun },
            concurrency: NonZeroU32::new(self.concurrency)?,
            groups: self.groups.iter().map(group).collect::<Option<_>>()?,
            timeout: Duration::from_secs(self.timeout_seconds),
        })
    }
}

impl DeployedGraph {
    /// The platform that was deployed. Edges of different runs may contradict each other; then
    /// those of the run that began last count.
    pub fn platform(&self, name: &PlatformName, namespace: &str) -> Result<Platform, GraphError> {
        let names: Vec<&str> = self.apps.keys().map(String::as_str).collect();
        let mut edges = self.edges(DeployedApp::dependencies);
        let mut graph = Graph::new(self.apps.len(), &edges);
        if !graph.cycles().is_empty() {
            edges = self.edges(|app| &app.planned);
            graph = Graph::new(self.apps.len(), &edges);
        }
        if let Some(cycle) = graph.cycles().first() {
            let apps = cycle.iter().map(|app| names[app.position()].to_owned()).collect();
            return Err(GraphError::Circle { platform: name.clone(), apps });
        }
        let garbled = || GraphError::Garbled { platform: name.clone() };
        let policies = self.settings.policies().ok_or_else(garbled)?;
        let apps = self.apps.iter().enumerate().map(|(position, (name, app))| {
            let dependencies = graph.dependencies(AppIx::new(position)).iter();
            let dependencies = dependencies.map(|at| (*at, names[at.position()]));
            app.restored(name, dependencies, &policies)
        });
        Ok(Platform {
            name: name.clone(),
            environment: None,
            source: None,
            bootstrap: None,
            argocd: self.settings.argocd(namespace),
            apps: apps.collect::<Option<_>>().ok_or_else(garbled)?,
            policies,
            graph,
        })
    }

    /// What is not deployed any more is no dependency.
    fn edges<'a>(&'a self, of: impl Fn(&'a DeployedApp) -> &'a BTreeSet<String>) -> Vec<Edge> {
        let positions: BTreeMap<&str, AppIx> = self
            .apps
            .keys()
            .enumerate()
            .map(|(at, name)| (name.as_str(), AppIx::new(at)))
            .collect();
        let mut edges = Vec::new();
        for (position, app) in self.apps.values().enumerate() {
            let known = of(app).iter().filter_map(|name| positions.get(name.as_str()));
            let dependant = AppIx::new(position);
            edges.extend(known.map(|app| Edge { dependant, dependency: *app }));
        }
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Names;

    fn app(done: Option<&[&str]>, planned: &[&str]) -> DeployedApp {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        DeployedApp {
            stack: "all".to_owned(),
            done: done.map(set),
            planned: set(planned),
            health_seconds: 60,
            ..DeployedApp::default()
        }
    }

    fn graph(apps: &[(&str, DeployedApp)]) -> DeployedGraph {
        DeployedGraph {
            settings: Settings { concurrency: 4, ..Settings::default() },
            apps: apps.iter().map(|(name, app)| ((*name).to_owned(), app.clone())).collect(),
            before: None,
            brought: Names::default(),
            gone: BTreeSet::new(),
        }
    }

    fn edges(graph: &DeployedGraph) -> Result<Vec<String>, GraphError> {
        let platform = graph.platform(&PlatformName::parse("prod").unwrap(), "argocd")?;
        let name = |app: AppIx| platform.apps[app.position()].name.to_string();
        let of = |app: AppIx| {
            let dependencies = platform.graph.dependencies(app).iter();
            dependencies.map(|other| format!("{}->{}", name(app), name(*other))).collect::<Vec<_>>()
        };
        Ok(platform.graph.apps().flat_map(of).collect())
    }

    #[test]
    fn the_edges_of_the_last_done_count() {
        let graph = graph(&[("a", app(Some(&[]), &["b"])), ("b", app(None, &["a", "gone"]))]);
        assert_eq!(edges(&graph).unwrap(), ["b->a"]);
    }

    #[test]
    fn edges_of_different_runs_that_contradict_each_other_give_way_to_the_planned_ones() {
        let turned = [("a", app(Some(&["b"]), &[])), ("b", app(Some(&["a"]), &["a"]))];
        assert_eq!(edges(&graph(&turned)).unwrap(), ["b->a"]);
        let circle = [("a", app(Some(&["b"]), &["b"])), ("b", app(Some(&["a"]), &["a"]))];
        let error = edges(&graph(&circle)).unwrap_err();
        assert!(matches!(error, GraphError::Circle { .. }), "{error}");
    }

    #[test]
    fn what_nobody_can_have_written_is_an_error() {
        let mut graph = graph(&[("a", app(None, &[]))]);
        graph.settings.concurrency = 0;
        assert!(edges(&graph).is_err());
    }
}
