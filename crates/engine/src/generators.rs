//! Generators: the root app, and what else has created Applications of the platform. They are synced
//! before a run begins, so that every Application is there at the run's revision; those that Argo
//! CD would sync by itself are held with the apps.
//!
//! A generator is done when its operation has succeeded and its children are there. Its health is
//! no question: a child that is held is not healthy, so who waited for it would wait for ever.

mod children;
mod difference;
mod error;
pub(crate) mod one;
mod pinned;
mod sets;
mod settled;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Api;
use kube::api::DynamicObject;
use tiphys_model::Platform;
use tiphys_model::operation::PlanTag;
use tiphys_run::{Observation, Revisions, Stamp};

use tiphys_argocd::application::Application;
use tiphys_argocd::rest::CallError;
use tiphys_argocd::{AppAddress, Applications, ArgoCdClient};
use tiphys_cluster::RequestError;
use tiphys_cluster::names;
use tiphys_state::hold::Hold;

use crate::created::{Generator, created};
use crate::root_source::{PlatformFileError, RootSource};
pub use error::GeneratorError;

/// How long ApplicationSets and their controller may take to make Applications.
const SETS_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(300);
/// How many Applications are looked at at the same time.
const AT_ONCE: usize = 16;

/// Syncs the generators of a platform.
pub(crate) struct Generators<'a> {
    pub platform: &'a Platform,
    pub argocd: &'a ArgoCdClient,
    pub applications: &'a Applications,
    pub sets: &'a Api<DynamicObject>,
    pub hold: &'a Hold,
    pub tag: PlanTag,
    pub epoch: u64,
    /// For whom the run waits.
    pub note: &'a dyn Fn(String),
    /// Those that are done.
    pub done: RefCell<BTreeSet<Generator>>,
    /// When Argo CD first compared one since the apps are held, by its own clock.
    pub begun: Cell<Option<Stamp>>,
}

impl Generators<'_> {
    /// What the root app's source is at now.
    pub(crate) async fn newest(&self) -> Result<Revisions, GeneratorError> {
        Ok(self.refresh(&self.root()).await?.1.revisions)
    }

    /// What the root app's source has there.
    pub(crate) async fn root_source(
        &self,
        revisions: Revisions,
    ) -> Result<RootSource, PlatformFileError> {
        RootSource::at(revisions, self.argocd, &self.root(), &self.platform.name).await
    }

    /// Brings the root app to the newest commit, and what it has created that creates Applications
    /// in its turn. Its revisions.
    pub(crate) async fn sync(&self) -> Result<Revisions, GeneratorError> {
        self.sync_one(self.root()).await
    }

    fn root(&self) -> AppAddress {
        let name = names::root_application(self.platform);
        AppAddress::own(&name, &self.platform.argocd.root_project)
    }

    /// A generator, then those that it has created.
    fn sync_one(
        &self,
        generator: AppAddress,
    ) -> LocalBoxFuture<'_, Result<Revisions, GeneratorError>> {
        async move {
            let name = generator.name.to_string();
            if !self.platform.argocd.uses(&generator.project) {
                let project = generator.project.to_string();
                return Err(GeneratorError::Elsewhere { generator: name, project });
            }
            let application = self.bring_up_to_date(&generator).await?;
            self.done.borrow_mut().insert(Generator::Application(name));
            self.sync_children(created(&application)).await?;
            Ok(observe(&application)?.revisions)
        }
        .boxed_local()
    }

    /// What a generator has created: what is a generator itself, and not done yet.
    async fn sync_children(
        &self,
        children: impl Iterator<Item = Generator>,
    ) -> Result<(), GeneratorError> {
        let is_left = |child: &Generator| !self.done.borrow().contains(child);
        let (mut applications, mut sets) = (Vec::new(), Vec::new());
        for child in children.filter(is_left) {
            match child {
                Generator::Application(name) => applications.push(name),
                Generator::Set(name) => sets.push(name),
            }
        }
        // There may be hundreds that are none.
        let looks = applications.into_iter().map(|name| self.as_generator(name));
        let generators: Vec<Option<AppAddress>> =
            stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        for generator in generators.into_iter().flatten() {
            self.sync_one(generator).await?;
        }
        for name in sets {
            self.sync_set(name).await?;
        }
        Ok(())
    }

    /// An ApplicationSet, then what it has made.
    async fn sync_set(&self, name: String) -> Result<(), GeneratorError> {
        let made = self.settle(&name).await?;
        self.done.borrow_mut().insert(Generator::Set(name));
        let made = made.into_iter().map(Generator::Application);
        Box::pin(self.sync_children(made)).await
    }

    /// What a generator has created, if it creates Applications in its turn. In
    /// the generators' project, all do. Elsewhere it may have been created or changed just now, and
    /// Argo CD has to look at it first.
    async fn as_generator(&self, name: String) -> Result<Option<AppAddress>, GeneratorError> {
        if self.platform.apps.iter().any(|app| app.name.as_str() == name) {
            return Ok(None);
        }
        let what = format!("cannot read the Application `{name}`");
        let found = self.applications.get_opt(&name).await.map_err(RequestError::because(what))?;
        let Some(found) = found else { return Ok(None) };
        let (argocd, address) = (&self.platform.argocd, found.address());
        if *address.project == *argocd.root_project {
            return Ok(Some(address));
        }
        let compared = if argocd.has_apps_in(&address.project) {
            let refreshed = self.argocd.refresh(&address).await;
            refreshed.map_err(|source| refused(&name, source))?
        } else {
            found
        };
        Ok(created(&compared).next().is_some().then_some(address))
    }
}

/// A warning for each app of the platform's repository that does not stay at the run's revision.
pub(crate) fn unpinned(
    platform: &Platform,
    applications: &[Application],
    revisions: &Revisions,
) -> Vec<String> {
    let Some(source) = &platform.source else { return Vec::new() };
    let moving = applications.iter().filter_map(|application| {
        let target = pinned::moving(application, &source.repo_url, revisions)?;
        Some(format!(
            "`{}` follows `{target}` of the platform's repository, not the revision of the run: \
             its manifests may change during the run; render the root app's `revision` into its \
             targetRevision",
            application.name()
        ))
    });
    moving.collect()
}

fn observe(application: &Application) -> Result<Observation, GeneratorError> {
    application.observe().map_err(|source| GeneratorError::Unreadable {
        generator: application.name().to_owned(),
        source,
    })
}

fn refused(name: &str, source: CallError) -> GeneratorError {
    GeneratorError::Call { generator: name.to_owned(), source }
}
