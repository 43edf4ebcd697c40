//! All that comes after the last app has gone.

use std::time::Duration;

use tiphys_run::Verdict;

use super::beside::Beside;
use super::inventory::{Division, Kept};
use super::leftovers::{self, Leftover, Search};
use super::{Context, End, Extent, Teardown, TeardownError, TeardownOutcome, namespaces_and_crds};
use crate::graph::DeployedGraph;
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
        let beside = Beside::read(&self.client, &self.platform.argocd.namespace, |_| false).await?;
        let kinds = context.app_resources.kinds();
        let division = beside.divide(&self.client, kinds, &self.platform, &graph).await?;
        let Division { going, alone, kept, .. } = division;
        let (namespaces, crds) = (going.namespaces.len(), going.crds.len());
        context.note(format!("removing {namespaces} namespaces and {crds} CRDs"));
        leftovers::remove_objects(kinds, &alone, self.removal_timeout()).await?;
        namespaces_and_crds::remove(&self.client, &going, self.removal_timeout()).await?;
        if self.options.keep_primitives {
            self.hold(&context.run).release_all(&graph.gone).await?;
        } else {
            self.remove_primitives(context, &beside).await?;
        }
        let (client, graph, came, beside) = (&self.client, &graph, &going, &beside);
        self.see_to_leftovers(context, Search { client, kinds, graph, came, beside }, kept).await
    }

    async fn remove_primitives(
        &self,
        context: &Context<'_>,
        beside: &Beside,
    ) -> Result<(), TeardownError> {
        context.note("removing accounts, rights and projects".to_owned());
        let used = |project: &str| match beside.user_of(project) {
            Some(other) => {
                context.note(format!("the project `{project}` stays: `{other}` is in it"));
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
        search: Search<'_>,
        mut kept: Vec<Kept>,
    ) -> Result<End, TeardownError> {
        let mut remains = search.run().await?;
        let certain = |leftovers: &[Leftover]| leftovers.iter().any(|leftover| leftover.certain);
        let found = &remains.leftovers;
        if certain(found) && self.options.clean_leftovers && context.ask(found).await {
            leftovers::clean(search.kinds, found).await?;
            remains = search.run().await?;
        }
        let mut leftovers = remains.leftovers;
        kept.extend(remains.kept);
        kept.sort();
        kept.dedup_by(|b, a| a.object == b.object);
        if certain(&leftovers) {
            leftovers.push(self.graph_as_leftover());
            let verdict = Verdict::Succeeded;
            return Ok(End::Stays(TeardownOutcome { verdict, leftovers, kept }));
        }
        self.store().delete().await?;
        Ok(End::Removed { leftovers, kept })
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
