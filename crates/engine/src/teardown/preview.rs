//! What a teardown would do, read from the cluster before anything is changed.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::ResourceExt;
use tiphys_argocd::application::Application;
use tiphys_cluster::{Kinds, ObjectName, RequestError};
use tiphys_state::claim;
use tiphys_state::graph::DeployedGraph;

use super::beside::Beside;
use super::generators;
use super::inventory::{Division, Kept};
use super::{Extent, Teardown, TeardownError, volumes};

/// All that would go, and what would stay.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TeardownPreview {
    /// Apps that are there, in the order in which they may go.
    pub apps: Vec<String>,
    /// Root app, nested generators and ApplicationSets.
    pub generators: Vec<String>,
    pub namespaces: Vec<String>,
    /// CRDs, each with the number of its objects.
    pub crds: Vec<(String, usize)>,
    /// Volumes that are claimed from these namespaces, with what happens to their data.
    pub volumes: Vec<(String, String)>,
    pub kept: Vec<Kept>,
    /// What is somebody else's and goes, because it was named, and whose it is.
    pub taken: Vec<(ObjectName, String)>,
    /// For each app what Argo CD deletes only when somebody has approved that.
    pub unconfirmed: BTreeMap<String, Vec<ObjectName>>,
}

impl Teardown {
    /// Reads what would go. It may have changed when it goes, so everything is read again then.
    pub async fn preview(&self) -> Result<TeardownPreview, TeardownError> {
        claim::refuse_projects_of_others(&self.client, &self.platform).await?;
        claim::refuse_namesakes(&self.client, &self.platform).await?;
        let applications = self.applications().await?;
        let removed: Vec<&Application> =
            applications.iter().filter(|application| self.removes(application)).collect();
        let there = |name: &str| removed.iter().any(|application| application.name() == name);
        let names = self.plan.apps.iter().rev().map(|app| app.app.name.to_string());
        let apps = names.filter(|name| there(name)).collect();
        let unconfirmed = unconfirmed(&removed);
        if self.extent != Extent::Platform {
            let unmatched = self.options.including.clone();
            refuse_unmatched(&Division { unmatched, ..Division::default() })?;
            return Ok(TeardownPreview { apps, unconfirmed, ..TeardownPreview::default() });
        }
        let names = self.names();
        let found = generators::find(&self.client, &self.platform, &names, &applications).await?;
        let division = self.forecast_division(&removed).await?;
        refuse_unmatched(&division)?;
        let Division { going, kept, taken, defined, .. } = division;
        let volumes = self.claimed_volumes(&going.namespaces).await?;
        let crds = going.crds.into_iter();
        Ok(TeardownPreview {
            apps,
            generators: found.iter().map(ToString::to_string).collect(),
            crds: crds.map(|crd| (crd.clone(), defined.get(&crd).copied().unwrap_or(0))).collect(),
            namespaces: going.namespaces.into_iter().collect(),
            volumes,
            kept,
            taken,
            unconfirmed,
        })
    }

    /// As it will be when the apps have gone.
    async fn forecast_division(&self, removed: &[&Application]) -> Result<Division, RequestError> {
        let mut graph =
            self.graph.clone().unwrap_or_else(|| DeployedGraph::new(&self.platform, None));
        graph.note_going(removed.iter().copied());
        let kinds = Kinds::discover(&self.client).await?;
        let beside = self.beside().await?;
        let including = &self.options.including;
        beside.divide(&self.client, &kinds, &self.platform, &graph, including).await
    }

    /// Applications beside those that go.
    pub(super) async fn beside(&self) -> Result<Beside, RequestError> {
        let root = &self.platform.argocd.root_project;
        let ours = |application: &Application| {
            self.removes(application) || application.spec.project == *root
        };
        Beside::read(&self.client, &self.platform.argocd, ours).await
    }

    async fn claimed_volumes(
        &self,
        namespaces: &BTreeSet<String>,
    ) -> Result<Vec<(String, String)>, RequestError> {
        let claimed = volumes::claimed(&self.client, namespaces).await?;
        let policy = |volume: &PersistentVolume| match &volume.spec {
            _ if self.options.retain_volumes => "Retain".to_owned(),
            Some(spec) => spec.persistent_volume_reclaim_policy.clone().unwrap_or_default(),
            None => String::new(),
        };
        Ok(claimed.iter().map(|volume| (volume.name_any(), policy(volume))).collect())
    }
}

/// An approval from before the deletion does not count, so all that need one will wait for it.
fn unconfirmed(removed: &[&Application]) -> BTreeMap<String, Vec<ObjectName>> {
    let mut unconfirmed: BTreeMap<String, Vec<ObjectName>> = BTreeMap::new();
    for application in removed {
        let resources = application.status.resources.iter().flatten();
        for resource in resources.filter(|resource| resource.requires_deletion_confirmation) {
            let of_app = unconfirmed.entry(application.name().to_owned()).or_default();
            of_app.push(ObjectName {
                group: resource.group.clone(),
                kind: resource.kind.clone(),
                namespace: resource.namespace.clone(),
                name: resource.name.clone(),
            });
        }
    }
    unconfirmed
}

/// Whoever names what is not there may mean something else that is.
fn refuse_unmatched(division: &Division) -> Result<(), TeardownError> {
    match division.unmatched.first() {
        None => Ok(()),
        Some(named) => {
            let named = named.to_string();
            let candidates = nearest(&named, &division.candidates);
            Err(TeardownError::NothingNamed { named, candidates })
        }
    }
}

/// The three that begin most like it.
fn nearest(text: &str, candidates: &BTreeSet<String>) -> Vec<String> {
    let text = text.to_lowercase();
    let alike = |candidate: &String| {
        let candidate = candidate.to_lowercase();
        candidate.chars().zip(text.chars()).take_while(|(a, b)| a == b).count()
    };
    let mut candidates: Vec<String> = candidates.iter().cloned().collect();
    candidates.sort_by_key(|candidate| std::cmp::Reverse(alike(candidate)));
    candidates.truncate(3);
    candidates
}
