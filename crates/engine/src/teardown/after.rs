//! All that comes after the last app has gone.

use std::time::Duration;

use tiphys_run::Verdict;

use super::leftovers::{self, Leftover, Search};
use super::{Context, End, Extent, Teardown, TeardownError, TeardownOutcome, namespaces_and_crds};
use crate::graph::{DeployedGraph, Names};
use tiphys_argocd::application::Application;
use tiphys_cluster::ObjectName;
use tiphys_cluster::names;
use tiphys_install::configure;

impl Teardown {
    pub(super) async fn finish(
        &self,
        context: &Context<'_>,
        graph: DeployedGraph,
    ) -> Result<End, TeardownError> {
        match self.extent {
            Extent::Apps => return Ok(End::stays(Verdict::Succeeded)),
            Extent::Pruned => {
                self.hold(&context.run).release_all(&self.names()).await?;
                return Ok(End::stays(Verdict::Succeeded));
            }
            Extent::Platform => {}
        }
        let others = self.applications().await?;
        let used = namespaces_and_crds::names_of(others.iter());
        let argocd = &self.platform.argocd;
        let removable =
            namespaces_and_crds::removable(graph.came_with_it(), &argocd.namespace, &used);
        let (namespaces, crds) = (removable.namespaces.len(), removable.crds.len());
        context.note(format!("removing {namespaces} namespaces and {crds} CRDs"));
        namespaces_and_crds::remove(&self.client, &removable, self.removal_timeout()).await?;
        if self.options.keep_primitives {
            self.hold(&context.run).release_all(&graph.gone).await?;
        } else {
            self.remove_primitives(context, &others).await?;
        }
        self.see_to_leftovers(context, &graph, &removable).await
    }

    async fn remove_primitives(
        &self,
        context: &Context<'_>,
        others: &[Application],
    ) -> Result<(), TeardownError> {
        context.note("removing accounts, rights and projects".to_owned());
        let user = |project: &str| others.iter().find(|other| other.spec.project == project);
        let used = |project: &str| match user(project) {
            Some(other) => {
                context.note(format!("the project `{project}` stays: `{}` is in it", other.name()));
                true
            }
            None => false,
        };
        Ok(configure::remove(&self.client, &self.platform, used).await?)
    }

    /// What is left is removed if that is wanted; otherwise the graph stays, because only it
    /// knows whose that is.
    async fn see_to_leftovers(
        &self,
        context: &Context<'_>,
        graph: &DeployedGraph,
        came: &Names,
    ) -> Result<End, TeardownError> {
        let kinds = context.app_resources.kinds();
        let search = Search { client: &self.client, kinds, graph, came };
        let mut leftovers = search.run().await?;
        let certain = |leftovers: &[Leftover]| leftovers.iter().any(|leftover| leftover.certain);
        if certain(&leftovers) && self.options.clean_leftovers && context.ask(&leftovers).await {
            leftovers::clean(kinds, &leftovers).await?;
            leftovers = search.run().await?;
        }
        if certain(&leftovers) {
            leftovers.push(self.graph_as_leftover());
            return Ok(End::Stays(TeardownOutcome { verdict: Verdict::Succeeded, leftovers }));
        }
        self.store().delete().await?;
        Ok(End::Removed(leftovers))
    }

    fn graph_as_leftover(&self) -> Leftover {
        Leftover {
            object: ObjectName {
                group: String::new(),
                kind: "ConfigMap".to_owned(),
                namespace: self.platform.argocd.namespace.clone(),
                name: names::own(&self.platform),
            },
            why: "it remembers whose these are, for `teardown --clean-leftovers`".to_owned(),
            certain: true,
            uid: None,
        }
    }

    /// What came with the platform may take as long to go as the slowest of its apps.
    fn removal_timeout(&self) -> Duration {
        self.plan.apps.iter().map(|app| app.app.timeouts.health).max().unwrap_or_default()
    }
}
