//! Waiting for the Applications of a platform, and finding generators that the root app knows
//! nothing of.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{GeneratorError, Generators, POLL, SETS_TIMEOUT};
use crate::created::{Creations, Generator, created};
use tiphys_argocd::AppAddress;
use tiphys_argocd::application::Application;
use tiphys_cluster::names;

/// How long Applications may take to appear that the sync of a generator has created itself.
pub(super) const CHILDREN_TIMEOUT: Duration = Duration::from_secs(5);

impl Generators<'_> {
    /// Waits until every Application of these names is there, in a project of the platform, and
    /// every generator that has created one is done.
    pub(crate) async fn await_children(
        &self,
        apps: &BTreeSet<String>,
    ) -> Result<Vec<Application>, GeneratorError> {
        let began = Instant::now();
        loop {
            let listed = self
                .applications
                .list(|one| apps.contains(one.name()) || created(one).next().is_some());
            let listed = listed.await?;
            if self.sync_what_is_left(&listed).await? {
                continue;
            }
            let found: Vec<Application> =
                listed.into_iter().filter(|one| apps.contains(one.name())).collect();
            self.refuse_other_projects(&found)?;
            let there: BTreeSet<&str> = found.iter().map(Application::name).collect();
            let missing = apps.iter().filter(|app| !there.contains(app.as_str()));
            let missing: BTreeSet<String> = missing.cloned().collect();
            if missing.is_empty() {
                return Ok(found);
            }
            let sets = self.done.borrow().iter().any(|done| matches!(done, Generator::Set(_)));
            // Sets have somebody else create Applications, in their own time.
            let timeout = if sets { SETS_TIMEOUT } else { CHILDREN_TIMEOUT };
            if began.elapsed() > timeout {
                return Err(GeneratorError::NoApplications { apps: missing, after: timeout });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Syncs generators that are not done yet; whether there were any.
    async fn sync_what_is_left(&self, listed: &[Application]) -> Result<bool, GeneratorError> {
        let creations = Creations::among(listed);
        let apps: BTreeSet<&str> = self.platform.apps.iter().map(|app| app.name.as_str()).collect();
        let root = names::root_application(self.platform);
        let found = creations.generators_of(apps.iter().copied(), &root);
        refuse_apps_that_create(&apps, &creations, &found)?;
        let mut left = false;
        for generator in creations.in_order(&found) {
            if self.done.borrow().contains(&generator) {
                continue;
            }
            left = true;
            match generator {
                Generator::Application(name) => {
                    let found = listed.iter().find(|one| one.name() == name);
                    let unknown = || AppAddress::own(&name, "");
                    self.sync_one(found.map_or_else(unknown, Application::address)).await?;
                }
                Generator::Set(name) => self.sync_set(name).await?,
            }
        }
        Ok(left)
    }

    fn refuse_other_projects(&self, found: &[Application]) -> Result<(), GeneratorError> {
        let argocd = &self.platform.argocd;
        let elsewhere = found.iter().filter(|one| !argocd.has_apps_in(&one.spec.project));
        let apps: Vec<(String, String)> =
            elsewhere.map(|one| (one.name().to_owned(), one.spec.project.clone())).collect();
        if apps.is_empty() {
            return Ok(());
        }
        Err(GeneratorError::OtherProject { projects: argocd.projects.clone(), apps })
    }
}

/// An app that creates others of the platform would have to be synced before the run, and in it.
fn refuse_apps_that_create(
    apps: &BTreeSet<&str>,
    creations: &Creations,
    found: &BTreeSet<Generator>,
) -> Result<(), GeneratorError> {
    let generators = found.iter().filter(|one| matches!(one, Generator::Application(_)));
    for generator in generators.filter(|one| apps.contains(one.name())) {
        let children = creations.of(generator).filter(|child| apps.contains(child.name()));
        let children: Vec<String> = children.map(|child| child.name().to_owned()).collect();
        if !children.is_empty() {
            let app = generator.name().to_owned();
            return Err(GeneratorError::AppCreates { app, apps: children });
        }
    }
    Ok(())
}
