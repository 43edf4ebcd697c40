//! The platform as the deployed graph knows it, for actions that are given no platform file.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiphys_model::graph::Edge;
use tiphys_model::platform::{
    Allowed, ArgoCd, ArgoCdAccess, Environment, Group, GroupKind, Hold, Policies, TeardownPolicy,
    WorkflowMode,
};
use tiphys_model::{
    ApiServer, AppIx, DeployPolicy, Graph, GroupName, NamespaceName, Platform, PlatformName,
};

use super::{DeployedApp, DeployedGraph, GraphError};

/// What concerns the platform as a whole, as of the run that began last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The first of the projects; an older Tiphys knows no others.
    project: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more_projects: Vec<String>,
    root_project: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    application_namespaces: Vec<NamespaceName>,
    /// Nobody creates the Applications for Tiphys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rootless: bool,
    /// What `TIPHYS_ENVIRONMENT` is compared with; an older Tiphys has not noted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    /// Runs act through the fields of Applications.
    through_fields: bool,
    always_held: bool,
    concurrency: u32,
    groups: BTreeMap<String, u32>,
    timeout_seconds: u64,
    /// An older Tiphys has not noted it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    disposable: Vec<GroupKind>,
    /// How Argo CD's API server is reached, where the platform file said so.
    #[serde(default, skip_serializing_if = "is_default")]
    server: ApiServer,
    /// Who starts deployments; an older Tiphys knows people only.
    #[serde(default, skip_serializing_if = "is_default")]
    deploy: DeployPolicy,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Settings {
    pub(super) fn of(platform: &Platform) -> Self {
        let groups = platform.policies.groups.iter();
        let (project, more) = platform.argocd.projects.split_first().unzip();
        Settings {
            project: project.cloned().unwrap_or_default(),
            more_projects: more.unwrap_or_default().to_vec(),
            rootless: !platform.argocd.has_root_app,
            root_project: platform.argocd.root_project.clone(),
            application_namespaces: platform.argocd.application_namespaces.clone(),
            environment: platform.environment.as_ref().map(|environment| environment.name.clone()),
            through_fields: platform.argocd.access == ArgoCdAccess::Kubernetes,
            always_held: platform.policies.hold == Hold::Always,
            concurrency: platform.policies.concurrency.get(),
            groups: groups.map(|g| (g.name.to_string(), g.concurrency.get())).collect(),
            timeout_seconds: platform.policies.timeout.as_secs(),
            disposable: platform.teardown.disposable.clone(),
            server: platform.argocd.server.clone(),
            deploy: platform.deploy.clone(),
        }
    }

    pub(super) fn deploy_policy(&self) -> &DeployPolicy {
        &self.deploy
    }

    fn argocd(&self, namespace: &str) -> ArgoCd {
        ArgoCd {
            namespace: namespace.to_owned(),
            application_namespaces: self.application_namespaces.clone(),
            projects: [&self.project].into_iter().chain(&self.more_projects).cloned().collect(),
            root_project: self.root_project.clone(),
            has_root_app: !self.rootless,
            access: if self.through_fields { ArgoCdAccess::Kubernetes } else { ArgoCdAccess::Api },
            server: self.server.clone(),
            // Only `configure` asks, which is given the platform file.
            allowed: Allowed::default(),
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
    /// The platform that was deployed. Edges of the last Done and of the last plan count both,
    /// unless they contradict each other; then those of the plan do.
    pub fn platform(&self, name: &PlatformName, namespace: &str) -> Result<Platform, GraphError> {
        let names: Vec<&str> = self.apps.keys().map(String::as_str).collect();
        let mut edges = self.edges(DeployedApp::dependencies);
        let mut graph = Graph::new(self.apps.len(), &edges);
        if !graph.cycles().is_empty() {
            edges = self.edges(|app| app.planned.iter().map(String::as_str).collect());
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
            environment: self
                .settings
                .environment
                .clone()
                .map(|name| Environment { name, domain: None }),
            source: None,
            bootstrap: None,
            argocd: self.settings.argocd(namespace),
            teardown: TeardownPolicy { disposable: self.settings.disposable.clone() },
            // Only runs ask, which are given the platform file.
            workflows: WorkflowMode::default(),
            deploy: self.settings.deploy.clone(),
            triggers: Vec::new(),
            apps: apps.collect::<Option<_>>().ok_or_else(garbled)?,
            policies,
            graph,
        })
    }

    /// What is not deployed any more is no dependency.
    fn edges<'a>(&'a self, of: impl Fn(&'a DeployedApp) -> BTreeSet<&'a str>) -> Vec<Edge> {
        let positions: BTreeMap<&str, AppIx> = self
            .apps
            .keys()
            .enumerate()
            .map(|(at, name)| (name.as_str(), AppIx::new(at)))
            .collect();
        let mut edges = Vec::new();
        for (position, app) in self.apps.values().enumerate() {
            let dependant = AppIx::new(position);
            let known = of(app).into_iter().filter_map(|name| positions.get(name).copied());
            edges.extend(known.map(|dependency| Edge { dependant, dependency }));
        }
        edges
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::graph::{Names, Uids};

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
            appeared: Names::default(),
            came: Some(Uids::default()),
            keeping: BTreeSet::new(),
            gone: BTreeSet::new(),
            deployed: None,
            removing: false,
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
    fn edges_of_the_last_done_and_of_the_last_plan_count() {
        let graph = graph(&[
            ("a", app(None, &[])),
            ("b", app(Some(&["a", "gone"]), &[])),
            ("c", app(Some(&["a"]), &["b"])),
        ]);
        assert_eq!(edges(&graph).unwrap(), ["b->a", "c->a", "c->b"]);
    }

    #[test]
    fn edges_that_contradict_each_other_give_way_to_the_planned_ones() {
        let turned = [("a", app(Some(&["b"]), &[])), ("b", app(Some(&[]), &["a"]))];
        assert_eq!(edges(&graph(&turned)).unwrap(), ["b->a"]);
        let circle = [("a", app(Some(&["b"]), &["b"])), ("b", app(Some(&["a"]), &["a"]))];
        let error = edges(&graph(&circle)).unwrap_err();
        assert!(matches!(error, GraphError::Circle { .. }), "{error}");
    }

    /// For each app the apps that it depends on: those that come before it in some order.
    fn acyclic(apps: usize) -> impl Strategy<Value = Vec<BTreeSet<usize>>> {
        let order = Just((0..apps).collect::<Vec<_>>()).prop_shuffle();
        let chosen = vec(vec(any::<bool>(), apps), apps);
        (order, chosen).prop_map(move |(order, chosen)| {
            let before = |app: usize, other: &usize| order[*other] < order[app];
            let of = |app: usize| {
                let chosen = (0..apps).filter(|other| chosen[app][*other]);
                chosen.filter(|other| before(app, other)).collect()
            };
            (0..apps).map(of).collect()
        })
    }

    fn is_acyclic(edges: &[BTreeSet<usize>]) -> bool {
        let mut left: BTreeSet<usize> = (0..edges.len()).collect();
        while let Some(free) = left.iter().copied().find(|app| edges[*app].is_disjoint(&left)) {
            left.remove(&free);
        }
        left.is_empty()
    }

    fn two_runs() -> impl Strategy<Value = (Vec<BTreeSet<usize>>, Vec<BTreeSet<usize>>)> {
        (2..7_usize).prop_flat_map(|apps| (acyclic(apps), acyclic(apps)))
    }

    proptest! {
        #[test]
        fn what_two_runs_leave_is_a_platform_with_all_that_was_planned_and_with_both_if_it_can_be(
            (done, planned) in two_runs(),
        ) {
            let names = |apps: &BTreeSet<usize>| apps.iter().map(|app| format!("app{app}")).collect();
            let apps = done.iter().zip(&planned).enumerate().map(|(at, (done, planned))| {
                let deployed = DeployedApp {
                    done: Some(names(done)), planned: names(planned), ..app(None, &[])
                };
                (format!("app{at}"), deployed)
            });
            let graph = DeployedGraph { apps: apps.collect(), ..graph(&[]) };
            let platform = graph.platform(&PlatformName::parse("prod").unwrap(), "argocd").unwrap();
            let edges: Vec<BTreeSet<usize>> = platform.graph.apps().map(|app| {
                platform.graph.dependencies(app).iter().map(|app| app.position()).collect()
            }).collect();
            prop_assert!(is_acyclic(&edges), "{:?}", edges);
            let both: Vec<_> = done.iter().zip(&planned).map(|(done, planned)| done | planned).collect();
            let expected = if is_acyclic(&both) { both } else { planned };
            prop_assert_eq!(edges, expected);
        }
    }

    #[test]
    fn what_nobody_can_have_written_is_an_error() {
        let mut graph = graph(&[("a", app(None, &[]))]);
        graph.settings.concurrency = 0;
        assert!(edges(&graph).is_err());
    }
}
