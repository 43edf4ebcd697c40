//! All that comes before the first app goes.

use kube::ResourceExt;
use tiphys_model::{AppIx, Plan, Role};
use tiphys_state::claim;
use tiphys_state::graph::{self, DeployedGraph, GraphStore};
use tiphys_state::hold::HoldError;

use super::generators;
use super::{Context, Extent, Teardown, TeardownError, volumes};
use crate::frozen::FrozenOperations;
use tiphys_argocd::application::Application;
use tiphys_argocd::{AppAddress, Applications, ArgoCdClient};
use tiphys_cluster::names::Purpose;

impl Teardown {
    /// Nobody to act with is needed if nothing is left to act on.
    pub(super) async fn prepare(
        &self,
        context: &Context<'_>,
    ) -> Result<(Option<ArgoCdClient>, DeployedGraph), TeardownError> {
        claim::refuse_projects_of_others(&self.client, &self.platform).await?;
        claim::refuse_namesakes(&self.client, &self.platform).await?;
        let store = self.store();
        let mut graph = self.unchanged_graph(&store).await?;
        let applications = self.applications().await?;
        let removed: Vec<&Application> =
            applications.iter().filter(|application| self.removes(application)).collect();
        let generators = match self.extent {
            Extent::Platform => {
                let apps = self.names();
                generators::find(&self.client, &self.platform, &apps, &applications).await?
            }
            Extent::Apps | Extent::Pruned => {
                refuse_generated(&removed)?;
                Vec::new()
            }
        };
        graph.note_going(removed.iter().copied());
        graph.removing |= self.extent == Extent::Platform;
        self.refuse_cascades(context.app_resources.kinds(), &graph, &removed).await?;
        if self.options.retain_volumes {
            // Those of an earlier attempt too: its apps may be gone, and their claims not yet.
            let mut namespaces = graph::used(removed.iter().copied()).namespaces;
            namespaces.extend(graph.brought.namespaces.iter().cloned());
            let changed = volumes::retain(&self.client, &namespaces).await?;
            context.note(format!("set {changed} volumes to Retain"));
        }
        store.write(&graph).await?;
        if removed.is_empty() && generators.is_empty() {
            removed_before(&mut graph, &self.plan);
            return Ok((None, graph));
        }
        let argocd = ArgoCdClient::new(&self.client, &self.platform, Purpose::Teardown).await?;
        let argocd =
            argocd.in_run(&self.client, &self.platform, &context.run, context.guard.clone());
        // What cannot go need not be held: the run will say why it stays.
        if !self.is_needed(&applications) {
            self.hold_apps(context, &argocd, &applications).await?;
        }
        if !generators.is_empty() {
            context.note(format!(
                "removing {} generators, but not the Applications they created",
                generators.len()
            ));
            generators::remove(&self.client, &self.platform, &argocd, generators).await?;
        }
        Ok((Some(argocd), graph))
    }

    /// Whether something outside the scope depends on what is to go.
    fn is_needed(&self, applications: &[Application]) -> bool {
        let plan = &self.plan;
        let removed = |app: &AppIx| plan.app(*app).role == Role::Act;
        let outside = plan.graph.apps().filter(|app| !removed(app));
        let mut users = outside.filter(|app| plan.graph.dependencies(*app).iter().any(removed));
        users.any(|app| {
            let name = plan.app(app).app.name.as_str();
            applications.iter().any(|application| application.name() == name)
        })
    }

    /// The graph that the plan was made of, or a new one if there was none.
    async fn unchanged_graph(&self, store: &GraphStore) -> Result<DeployedGraph, TeardownError> {
        let found = store.read().await?;
        if found != self.graph {
            return Err(TeardownError::Outdated);
        }
        Ok(found.unwrap_or_else(|| {
            let mut graph = DeployedGraph::new(&self.platform, None);
            graph.plan(&self.platform, &self.plan, None);
            graph
        }))
    }

    /// Argo CD must not repair what is being taken apart. Without a project there is nothing to
    /// hold, and nothing syncs.
    async fn hold_apps(
        &self,
        context: &Context<'_>,
        argocd: &ArgoCdClient,
        there: &[Application],
    ) -> Result<(), HoldError> {
        let apps = self.names();
        let address = |app: &str| {
            let found = there.iter().find(|application| application.name() == app);
            found.map_or_else(|| AppAddress::own(app, ""), Application::address)
        };
        let terminate = async |app: &str| {
            // If it cannot be stopped, deleting the app will stop it, or say why it cannot.
            argocd.terminate(&address(app)).await.ok();
            Ok(())
        };
        let applications = Applications::of(&self.client, &self.platform.argocd);
        let hold = self.hold(&context.run).where_there_is_a_project().await?;
        let frozen = FrozenOperations { hold: &hold, applications: &applications, argocd };
        for app in frozen.end(&apps).await? {
            let stopped = format!("stopped the automated sync of `{app}`");
            context.note(format!("{stopped}, which an earlier hold had frozen"));
        }
        context.note(format!("holding {} apps in {}", apps.len(), hold.projects()));
        hold.hold_when_idle(&apps, &applications, terminate).await
    }
}

/// Apps of the plan that an earlier run has removed without noting it.
fn removed_before(graph: &mut DeployedGraph, plan: &Plan) {
    for app in plan.apps.iter().filter(|app| app.role == Role::Act) {
        graph.removed(app.app.name.as_str());
    }
}

/// What an ApplicationSet has created, it would create anew.
fn refuse_generated(removed: &[&Application]) -> Result<(), TeardownError> {
    let generated = removed.iter().find_map(|application| {
        let owners = application.owner_references().iter();
        let set = owners.filter(|owner| owner.kind == "ApplicationSet").map(|owner| &owner.name);
        set.map(|set| (application.name(), set)).next()
    });
    match generated {
        None => Ok(()),
        Some((app, set)) => {
            Err(TeardownError::Generated { app: app.to_owned(), set: set.to_owned() })
        }
    }
}
