//! All that comes after the last app has gone.

use std::time::Duration;

use tiphys_model::platform::AppType;
use tiphys_run::Verdict;
use tiphys_state::graph::DeployedGraph;

use super::beside::Beside;
use super::inventory::{Division, Kept};
use super::leftovers::{self, Leftover, Search};
use super::{Context, End, Extent, Teardown, TeardownError, TeardownOutcome, namespaces_and_crds};
use tiphys_cluster::names;
use tiphys_cluster::{Kinds, ObjectName, RequestError};
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
        // Others may have brought kinds meanwhile.
        let kinds = &Kinds::discover(&self.client).await?;
        let (beside, Division { going, kept, .. }) =
            self.remove_what_came(context, kinds, &graph).await?;
        // Projects of others stay.
        self.hold(&context.run).release_everything().await?;
        if !self.options.keep_primitives {
            self.remove_primitives(context, &beside).await?;
        }
        let (client, graph, came, beside) = (&self.client, &graph, &going, &beside);
        let argocd = &self.platform.argocd;
        let search = Search { client, argocd, kinds, graph, came, beside };
        self.see_to_leftovers(context, search, kept).await
    }

    /// Removes what came with the platform, and tells what stays. Others may make objects at any
    /// time, so all is read again after each wait.
    async fn remove_what_came(
        &self,
        context: &Context<'_>,
        kinds: &Kinds,
        graph: &DeployedGraph,
    ) -> Result<(Beside, Division), TeardownError> {
        let (client, timeout) = (&self.client, self.removal_timeout());
        let read = async || -> Result<(Beside, Division), RequestError> {
            let beside = Beside::read(client, &self.platform.argocd, |_| false).await?;
            let (platform, including) = (&self.platform, &self.options.including);
            let division = beside.divide(client, kinds, platform, graph, including).await?;
            Ok((beside, division))
        };
        let (mut beside, mut division) = read().await?;
        let (namespaces, crds) = (division.going.namespaces.len(), division.going.crds.len());
        context.note(format!("removing {namespaces} namespaces and {crds} CRDs"));
        if !division.alone.is_empty() {
            leftovers::remove_objects(kinds, &division.alone, timeout).await?;
            (beside, division) = read().await?;
        }
        let namespaces = &division.uids.namespaces;
        if !namespaces.is_empty() {
            namespaces_and_crds::remove_namespaces(client, namespaces, timeout).await?;
            (beside, division) = read().await?;
        }
        namespaces_and_crds::remove_crds(client, &division.uids.crds, timeout).await?;
        Ok((beside, division))
    }

    async fn remove_primitives(
        &self,
        context: &Context<'_>,
        beside: &Beside,
    ) -> Result<(), TeardownError> {
        context.note("removing accounts, rights and projects".to_owned());
        let used = |project: &str| match beside.user_of(project) {
            Some(other) => {
                context.note(format!(
                    "the project `{project}` stays: the Application `{other}` is in it"
                ));
                true
            }
            None => false,
        };
        configure::remove(&self.client, &self.platform, used).await?;
        let namespaces = configure::namespaces(&self.client, &self.platform).await?;
        for needed in namespaces.needed {
            context.note(needed);
        }
        let timeout = self.removal_timeout();
        namespaces_and_crds::remove_namespaces(&self.client, &namespaces.unneeded, timeout).await
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
            why: "it records which objects belong to the platform, for `teardown \
                  --clean-leftovers`"
                .to_owned(),
            certain: true,
            uid: None,
        }
    }

    /// What came with the platform may take as long to go as the slowest of its apps. A teardown that
    /// resumes has only the apps that are left, or none.
    fn removal_timeout(&self) -> Duration {
        let apps = self.plan.apps.iter().map(|app| app.app.timeouts.health);
        apps.fold(AppType::Simple.timeout(), Duration::max)
    }
}
