//! The hold: automated sync is denied to apps that are not Done yet, and to the generators that
//! would change them meanwhile.
//!
//! A sync window stands in an AppProject, and which project an app will be in is known only when
//! its Application is there. So apps are held in all projects of the platform. [`decide`] says what
//! to do to get the hold; this file looks, and tells the time.

mod batch;
mod decide;
mod error;
mod others;
mod project;
#[cfg(test)]
pub(crate) mod tests;
mod wanted;
mod watch;
pub mod windows;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::try_join_all;
use kube::Client;
use tiphys_argocd::Applications;
use tiphys_argocd::application::Application;
use tiphys_argocd::rest::CallError;
use tiphys_model::platform::ArgoCd;
use tiphys_run::Time;
use tokio::time::Instant;

pub use decide::Why;
use decide::{Change, Holding, Next, Seen};
pub use error::HoldError;
use project::ProjectHold;

/// The windows in the projects of a platform.
pub struct Hold {
    /// Of the apps; at least one.
    projects: Vec<ProjectHold>,
    /// Of the root app, where only generators are.
    root: Option<ProjectHold>,
}

impl Hold {
    #[must_use]
    pub fn new(client: &Client, argocd: &ArgoCd, run: &str) -> Self {
        let hold = |project: &String| ProjectHold::new(client, &argocd.namespace, project, run);
        Hold {
            projects: argocd.projects.iter().map(hold).collect(),
            root: argocd.has_root_app.then(|| hold(&argocd.root_project)),
        }
    }

    /// The same without projects that are not there, as in a teardown that is repeated.
    pub async fn where_there_is_a_project(mut self) -> Result<Self, HoldError> {
        let mut there = Vec::new();
        for project in self.projects {
            if project.is_there().await? {
                there.push(project);
            }
        }
        self.projects = there;
        Ok(self)
    }

    /// The projects of the apps, as one says it.
    #[must_use]
    pub fn projects(&self) -> String {
        in_words(&self.projects.iter().collect::<Vec<_>>())
    }

    /// Whether this is a project of the apps.
    #[must_use]
    pub fn is_in(&self, project: &str) -> bool {
        self.projects.iter().any(|one| one.project == project)
    }

    /// The apps and generators that are held now, by this run or an earlier one.
    pub async fn held(&self) -> Result<BTreeSet<String>, HoldError> {
        let held = try_join_all(self.all().map(ProjectHold::held)).await?;
        Ok(held.into_iter().flatten().collect())
    }

    /// Holds apps, beside those that are held already, once none of them has an automated
    /// operation under way. `terminate` stops one that takes too long.
    pub async fn hold_when_idle(
        &self,
        apps: &BTreeSet<String>,
        applications: &Applications,
        terminate: impl AsyncFn(&str) -> Result<(), CallError>,
    ) -> Result<(), HoldError> {
        let projects: Vec<&ProjectHold> = self.projects.iter().collect();
        hold_when_idle(&projects, apps, applications, terminate).await
    }

    /// The same for a generator, in its own project if that is one of the platform's.
    pub async fn hold_generator_when_idle(
        &self,
        generator: &Application,
        applications: &Applications,
        terminate: impl AsyncFn(&str) -> Result<(), CallError>,
    ) -> Result<(), HoldError> {
        let Some(project) = self.all().find(|one| one.project == generator.spec.project) else {
            return Ok(());
        };
        let name = [generator.name().to_owned()].into();
        hold_when_idle(&[project], &name, applications, terminate).await
    }

    /// Holds one more app, whatever is under way.
    pub async fn hold_now(&self, app: &str) -> Result<(), HoldError> {
        write(&self.projects, &Change::Hold([app.to_owned()].into())).await.map(|_| ())
    }

    /// Lets automated sync resume for an app. Concurrent calls share one write.
    pub async fn release_batched(&self, app: &str) -> Result<(), HoldError> {
        let written = self.projects.iter().map(|project| project.release_batched(app));
        try_join_all(written).await.map(|_| ())
    }

    /// Releases apps and generators, wherever they are held.
    pub async fn release_all(&self, names: &BTreeSet<String>) -> Result<(), HoldError> {
        for project in self.all() {
            let held = &project.held().await? & names;
            if !held.is_empty() {
                project.write(&Change::Release(held)).await?;
            }
        }
        Ok(())
    }

    /// Releases all but these apps, unless one of them is still held: generators would change it.
    pub async fn release_generators(&self, apps: &BTreeSet<String>) -> Result<(), HoldError> {
        let held = self.held().await?;
        if held.is_disjoint(apps) && !held.is_empty() {
            self.release_all(&held).await?;
        }
        Ok(())
    }

    /// Releases all that this platform holds.
    pub async fn release_everything(&self) -> Result<(), HoldError> {
        self.release_generators(&BTreeSet::new()).await
    }

    fn all(&self) -> impl Iterator<Item = &ProjectHold> {
        self.projects.iter().chain(&self.root)
    }
}

fn in_words(projects: &[&ProjectHold]) -> String {
    let names: Vec<&str> = projects.iter().map(|one| &*one.project).collect();
    let noun = if names.len() == 1 { "project" } else { "projects" };
    format!("the {noun} `{}`", names.join("`, `"))
}

async fn hold_when_idle(
    projects: &[&ProjectHold],
    names: &BTreeSet<String>,
    applications: &Applications,
    terminate: impl AsyncFn(&str) -> Result<(), CallError>,
) -> Result<(), HoldError> {
    let began = Instant::now();
    let now = || Time::START + began.elapsed();
    let (mut holding, mut next) = Holding::begin(now());
    loop {
        let seen = match next {
            Next::Look { after } => look(applications, names, after).await?,
            Next::Terminate { app, look_after } => {
                let stopped = terminate(&app).await;
                stopped.map_err(|source| HoldError::NotStopped { app, source })?;
                look(applications, names, look_after).await?
            }
            Next::Hold => {
                let added = write(projects.iter().copied(), &Change::Hold(names.clone())).await?;
                Seen::Held { added }
            }
            Next::Release(added) => {
                write(projects.iter().copied(), &Change::Release(added)).await?;
                Seen::Released
            }
            Next::Done => {
                for project in projects {
                    project.begin().await;
                }
                return Ok(());
            }
            Next::GiveUp(why) => {
                return Err(HoldError::NeverIdle { projects: in_words(projects), why });
            }
        };
        next = holding.decide(now(), seen);
    }
}

/// Changes who is held in all of these; the apps that were not yet so in one of them.
async fn write(
    projects: impl IntoIterator<Item = &ProjectHold>,
    change: &Change,
) -> Result<BTreeSet<String>, HoldError> {
    let written = projects.into_iter().map(|project| project.write(change));
    Ok(try_join_all(written).await?.into_iter().flatten().collect())
}

/// Waits, and looks for an app that Argo CD is syncing by itself.
async fn look(
    applications: &Applications,
    apps: &BTreeSet<String>,
    after: Duration,
) -> Result<Seen, HoldError> {
    tokio::time::sleep(after).await;
    let busy = applications.list(|application| {
        let operation = application.operation.as_ref();
        apps.contains(application.name()) && operation.is_some_and(|o| o.initiated_by.automated)
    });
    Ok(Seen::Automated(busy.await?.first().map(|application| application.name().to_owned())))
}
