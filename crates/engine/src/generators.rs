//! Generators: the root app, and what it creates that creates Applications in its turn. They are
//! synced before a run begins, so that every Application is there at the run's revision.
//!
//! A generator is done when its operation has succeeded and its children are there. Its health is
//! no question: a child that is held is not healthy, so who waited for it would wait for ever.

mod difference;
mod error;
mod pinned;
mod sets;
mod settled;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use kube::Api;
use kube::api::DynamicObject;
use tiphys_model::operation::PlanTag;
use tiphys_model::{AppName, OperationId, Platform, SyncStatus};
use tiphys_run::gate::{self, OperationProgress};
use tiphys_run::{ConditionKind, Observation, Revisions};

use tiphys_argocd::ArgoCdClient;
use tiphys_argocd::application::{self, Application, ResourceStatus};
use tiphys_argocd::messages::{PART_UNAVAILABLE, PROJECT_UNKNOWN};
use tiphys_argocd::rest::{CallError, Refusal, SyncRequest};
use tiphys_cluster::RequestError;
use tiphys_cluster::names;
use tokio::time::Instant;

pub use error::GeneratorError;

/// How long the operation of a generator may take.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(300);
/// How long ApplicationSets and their controller may take to make Applications.
const SETS_TIMEOUT: Duration = Duration::from_secs(120);
/// How long Applications may take to appear that the sync of a generator has created itself.
const CHILDREN_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(300);
/// How long a part of Argo CD may be away.
const PART_TIMEOUT: Duration = Duration::from_secs(60);
/// How long Argo CD may take to know a project that `configure` has just made.
const PROJECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How often that is looked at meanwhile.
const PASSING_POLL: Duration = Duration::from_secs(3);

/// Syncs the generators of a platform.
pub(crate) struct Generators<'a> {
    pub platform: &'a Platform,
    pub argocd: &'a ArgoCdClient,
    pub applications: &'a Api<Application>,
    pub sets: &'a Api<DynamicObject>,
    pub tag: PlanTag,
    pub epoch: u64,
    /// For whom the run waits.
    pub note: &'a dyn Fn(String),
}

/// What came of syncing the generators.
pub(crate) struct Generated {
    /// Of the root app.
    pub revisions: Revisions,
    /// ApplicationSets are among them: somebody else creates Applications, in their own time.
    sets: bool,
}

impl Generators<'_> {
    /// What the root app's source is at now.
    pub(crate) async fn newest(&self) -> Result<Revisions, GeneratorError> {
        let name = names::root_application(self.platform);
        Ok(self.refresh(&name).await?.1.revisions)
    }

    /// Brings every generator to the newest commit.
    pub(crate) async fn sync(&self) -> Result<Generated, GeneratorError> {
        self.sync_one(names::root_application(self.platform)).await
    }

    /// A generator as it is, compared with its source. What may pass by itself is waited for.
    async fn refresh(&self, name: &str) -> Result<(Application, Observation), GeneratorError> {
        let began = Instant::now();
        loop {
            let refreshed = self.argocd.refresh(name, &self.platform.argocd.root_project).await;
            let application = refreshed.map_err(|source| refused(name, source))?;
            let seen = observe(&application)?;
            let trouble = seen.conditions.iter().find(|one| one.kind != ConditionKind::Sync);
            match trouble {
                None => return Ok((application, seen)),
                Some(condition) if began.elapsed() < patience(&condition.message) => {
                    tokio::time::sleep(PASSING_POLL).await;
                }
                Some(condition) => return Err(failed(name, &condition.message)),
            }
        }
    }

    /// Waits for the end of an operation, whoever has started it: a run that was killed, or Argo CD.
    async fn await_idle(&self, name: &str) -> Result<(), GeneratorError> {
        let began = Instant::now();
        while began.elapsed() < OPERATION_TIMEOUT {
            let what = format!("the generator `{name}` cannot be read");
            let application =
                self.applications.get(name).await.map_err(RequestError::because(what))?;
            if application.operation.is_none() {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        Err(GeneratorError::Unfinished { generator: name.to_owned(), after: OPERATION_TIMEOUT })
    }

    /// A generator at its newest commit.
    async fn bring_up_to_date(&self, name: &str) -> Result<Application, GeneratorError> {
        let began = Instant::now();
        loop {
            let (application, seen) = self.refresh(name).await?;
            refuse_waves(&application)?;
            if seen.operation.is_some() {
                self.await_idle(name).await?;
                continue;
            }
            if is_current(&seen) {
                return Ok(application);
            }
            match self.sync_to_the_end(name, &seen).await {
                // Somebody was quicker.
                Err(GeneratorError::Call {
                    source: CallError::Refused { refusal: Refusal::Busy, .. },
                    ..
                }) if began.elapsed() < OPERATION_TIMEOUT => self.await_idle(name).await?,
                ended => return ended,
            }
        }
    }

    /// A generator, then those that it has created.
    fn sync_one(&self, name: String) -> LocalBoxFuture<'_, Result<Generated, GeneratorError>> {
        async move {
            let application = self.bring_up_to_date(&name).await?;
            let mut sets = false;
            for child in application.status.resources.iter().flatten() {
                if is_application(child) && self.is_generator(&child.name).await? {
                    sets |= self.sync_one(child.name.clone()).await?.sets;
                }
                if sets::is_application_set(child) {
                    sets = true;
                    for generator in self.settle(&child.name).await? {
                        self.sync_one(generator).await?;
                    }
                }
            }
            Ok(Generated { revisions: observe(&application)?.revisions, sets })
        }
        .boxed_local()
    }

    async fn sync_to_the_end(
        &self,
        name: &str,
        seen: &Observation,
    ) -> Result<Application, GeneratorError> {
        let app = AppName::parse(name)
            .map_err(|source| GeneratorError::Name { generator: name.to_owned(), source })?;
        let operation = OperationId { plan: self.tag, app, epoch: self.epoch, attempt: 1 };
        let request = SyncRequest {
            project: &self.platform.argocd.root_project,
            operation: &operation,
            revisions: &seen.revisions,
            prune: false,
        };
        self.argocd.sync(name, request).await.map_err(|source| refused(name, source))?;
        let began = Instant::now();
        while began.elapsed() < OPERATION_TIMEOUT {
            tokio::time::sleep(POLL).await;
            let what = format!("the generator `{name}` cannot be read");
            let application =
                self.applications.get(name).await.map_err(RequestError::because(what))?;
            match gate::operation(&observe(&application)?, &operation) {
                OperationProgress::Succeeded(_) => return Ok(application),
                OperationProgress::Failed { message } => return Err(failed(name, &message)),
                OperationProgress::Replaced { by } => {
                    let (generator, by) = (name.to_owned(), by.to_string());
                    return Err(GeneratorError::Replaced { generator, by });
                }
                OperationProgress::Running | OperationProgress::Unseen => {}
            }
        }
        Err(GeneratorError::Unfinished { generator: name.to_owned(), after: OPERATION_TIMEOUT })
    }

    /// Whether a child creates Applications: those are in the generators' project.
    async fn is_generator(&self, name: &str) -> Result<bool, GeneratorError> {
        let what = format!("the Application `{name}` cannot be read");
        let child = self.applications.get_opt(name).await.map_err(RequestError::because(what))?;
        Ok(child.is_some_and(|child| self.is_in_root_project(&child)))
    }

    fn is_in_root_project(&self, application: &Application) -> bool {
        application.spec.project == self.platform.argocd.root_project
    }

    /// Waits until every Application of these names is there, in the platform's project.
    pub(crate) async fn await_children(
        &self,
        apps: &BTreeSet<String>,
        generated: &Generated,
    ) -> Result<Vec<Application>, GeneratorError> {
        let began = Instant::now();
        let timeout = if generated.sets { SETS_TIMEOUT } else { CHILDREN_TIMEOUT };
        loop {
            let listed = application::list(self.applications, |a| apps.contains(a.name())).await?;
            let mut missing = apps.clone();
            let mut elsewhere = Vec::new();
            for application in &listed {
                missing.remove(application.name());
                if application.spec.project != self.platform.argocd.project {
                    let project = application.spec.project.clone();
                    elsewhere.push((application.name().to_owned(), project));
                }
            }
            if !elsewhere.is_empty() {
                let project = self.platform.argocd.project.clone();
                return Err(GeneratorError::OtherProject { project, apps: elsewhere });
            }
            if missing.is_empty() {
                return Ok(listed);
            }
            if began.elapsed() > timeout {
                return Err(GeneratorError::NoApplications { apps: missing, after: timeout });
            }
            tokio::time::sleep(POLL).await;
        }
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
             what it deploys may change while others are deployed; render the root app's \
             `revision` into its targetRevision",
            application.name()
        ))
    });
    moving.collect()
}

/// How long a condition may last before it counts.
fn patience(message: &str) -> Duration {
    if message.contains(PART_UNAVAILABLE) {
        PART_TIMEOUT
    } else if message.contains(PROJECT_UNKNOWN) {
        PROJECT_TIMEOUT
    } else {
        Duration::ZERO
    }
}

fn is_current(seen: &Observation) -> bool {
    seen.compared_to_spec
        && seen.sync == SyncStatus::Synced
        && seen.operation.is_none()
        && seen.last.as_ref().is_none_or(|last| last.phase == tiphys_run::OperationPhase::Succeeded)
}

fn is_application(resource: &ResourceStatus) -> bool {
    resource.group == "argoproj.io" && resource.kind == "Application"
}

/// With waves, Argo CD would create the children one after the other, each when the one before
/// is healthy: an order of its own beside the platform's.
fn refuse_waves(application: &Application) -> Result<(), GeneratorError> {
    let resources = application.status.resources.iter().flatten();
    let waves: BTreeSet<i64> =
        resources.filter(|resource| is_application(resource)).map(|r| r.sync_wave).collect();
    if waves.len() < 2 {
        return Ok(());
    }
    Err(GeneratorError::Waves { generator: application.name().to_owned(), waves })
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

fn failed(name: &str, message: &str) -> GeneratorError {
    GeneratorError::Failed { generator: name.to_owned(), message: message.to_owned() }
}
