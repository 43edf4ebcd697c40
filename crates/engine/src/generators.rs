//! Generators: the root app, and what it creates that creates Applications in its turn. They are
//! synced before a run begins, so that every Application is there at the run's revision.
//!
//! A generator is done when its operation has succeeded and its children are there. Its health is
//! no question: a child that is held is not healthy, so who waited for it would wait for ever.

mod pinned;
pub(crate) mod sets;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Api;
use kube::api::DynamicObject;
use tiphys_model::operation::PlanTag;
use tiphys_model::{AppName, OperationId, Platform, SyncStatus};
use tiphys_run::gate::{self, OperationProgress};
use tiphys_run::{ConditionKind, Observation, Revisions};

use tiphys_argocd::ArgoCdClient;
use tiphys_argocd::application::{self, Application, ResourceStatus};
use tiphys_argocd::rest::{CallError, Refusal, SyncRequest};
use tiphys_cluster::names;
use tiphys_cluster::{ClusterError, Kind};
use tokio::time::Instant;

/// How long the operation of a generator may take.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(300);
/// How long ApplicationSets may take to make Applications.
const SETS_TIMEOUT: Duration = Duration::from_secs(120);
/// How long Applications may take to appear that the sync of a generator has created itself.
const CHILDREN_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(300);

/// Syncs the generators of a platform.
pub(crate) struct Generators<'a> {
    pub platform: &'a Platform,
    pub argocd: &'a ArgoCdClient,
    pub applications: &'a Api<Application>,
    pub sets: &'a Api<DynamicObject>,
    pub tag: PlanTag,
    pub epoch: u64,
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
    pub(crate) async fn newest(&self) -> Result<Revisions, ClusterError> {
        let name = names::root_application(self.platform);
        Ok(self.refresh(&name).await?.1.revisions)
    }

    /// Brings every generator to the newest commit.
    pub(crate) async fn sync(&self) -> Result<Generated, ClusterError> {
        self.sync_one(names::root_application(self.platform)).await
    }

    /// A generator as it is, compared with its source.
    async fn refresh(&self, name: &str) -> Result<(Application, Observation), ClusterError> {
        let refreshed = self.argocd.refresh(name, &self.platform.argocd.root_project).await;
        let application = refreshed.map_err(|error| refused(name, &error))?;
        let seen = observe(&application)?;
        match seen.conditions.iter().find(|condition| condition.kind != ConditionKind::Sync) {
            Some(condition) => Err(broken(name, &condition.message)),
            None => Ok((application, seen)),
        }
    }

    /// A generator, then those that it has created.
    fn sync_one(&self, name: String) -> BoxFuture<'_, Result<Generated, ClusterError>> {
        async move {
            let (application, seen) = self.refresh(&name).await?;
            refuse_waves(&application)?;
            let application = if is_current(&seen) {
                application
            } else {
                self.sync_to_the_end(&name, &seen).await?
            };
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
        .boxed()
    }

    async fn sync_to_the_end(
        &self,
        name: &str,
        seen: &Observation,
    ) -> Result<Application, ClusterError> {
        let app = AppName::parse(name).map_err(|error| {
            ClusterError::new(
                Kind::Configuration,
                format!("the generator `{name}`"),
                error.to_string(),
            )
        })?;
        let operation = OperationId { plan: self.tag, app, epoch: self.epoch, attempt: 1 };
        let request = SyncRequest {
            project: &self.platform.argocd.root_project,
            operation: &operation,
            revisions: &seen.revisions,
            prune: false,
        };
        self.argocd.sync(name, request).await.map_err(|error| refused(name, &error))?;
        let began = Instant::now();
        while began.elapsed() < OPERATION_TIMEOUT {
            tokio::time::sleep(POLL).await;
            let what = format!("the generator `{name}` cannot be read");
            let application =
                self.applications.get(name).await.map_err(ClusterError::kube(what))?;
            match gate::operation(&observe(&application)?, &operation) {
                OperationProgress::Succeeded(_) => return Ok(application),
                OperationProgress::Failed { message } => return Err(broken(name, &message)),
                OperationProgress::Replaced { by } => {
                    return Err(broken(name, &format!("{by} has started another operation")));
                }
                OperationProgress::Running | OperationProgress::Unseen => {}
            }
        }
        Err(broken(
            name,
            &format!("its operation did not end within {} s", OPERATION_TIMEOUT.as_secs()),
        ))
    }

    /// Whether a child creates Applications: those are in the generators' project.
    async fn is_generator(&self, name: &str) -> Result<bool, ClusterError> {
        let what = format!("the Application `{name}` cannot be read");
        let child = self.applications.get_opt(name).await.map_err(ClusterError::kube(what))?;
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
    ) -> Result<Vec<Application>, ClusterError> {
        let began = Instant::now();
        let timeout = if generated.sets { SETS_TIMEOUT } else { CHILDREN_TIMEOUT };
        loop {
            let listed = application::list(self.applications, |a| apps.contains(a.name())).await?;
            let mut missing = apps.clone();
            let mut elsewhere = Vec::new();
            for application in &listed {
                missing.remove(application.name());
                if application.spec.project != self.platform.argocd.project {
                    elsewhere.push(format!(
                        "{} ({})",
                        application.name(),
                        application.spec.project
                    ));
                }
            }
            if !elsewhere.is_empty() {
                let project = &self.platform.argocd.project;
                return Err(ClusterError::new(
                    Kind::Configuration,
                    format!("Applications of the platform are not in its project `{project}`"),
                    elsewhere.join(", "),
                )
                .hint("a hold on the project does not concern them: give them the right project"));
            }
            if missing.is_empty() {
                return Ok(listed);
            }
            if began.elapsed() > timeout {
                let missing: Vec<String> = missing.into_iter().collect();
                return Err(ClusterError::new(
                    Kind::NotFound,
                    format!("there is no Application for {}", missing.join(", ")),
                    format!("no generator has created them within {} s", timeout.as_secs()),
                )
                .hint("add them to the root app's source, or take them out of the platform file"));
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
fn refuse_waves(application: &Application) -> Result<(), ClusterError> {
    let resources = application.status.resources.iter().flatten();
    let waves: BTreeSet<i64> =
        resources.filter(|resource| is_application(resource)).map(|r| r.sync_wave).collect();
    if waves.len() < 2 {
        return Ok(());
    }
    Err(ClusterError::new(
        Kind::Configuration,
        format!("the Applications that `{}` creates have different sync waves", application.name()),
        format!("{waves:?}; a hold keeps the first of them from becoming healthy, for ever"),
    )
    .hint("remove the annotations argocd.argoproj.io/sync-wave: the platform file has the order"))
}

fn observe(application: &Application) -> Result<Observation, ClusterError> {
    application.observe().map_err(|error| broken(application.name(), &error.to_string()))
}

fn refused(name: &str, error: &CallError) -> ClusterError {
    let what = format!("the generator `{name}` cannot be synced");
    let kind = match error {
        CallError::Refused { refusal, .. } => match refusal {
            Refusal::Unauthenticated | Refusal::Forbidden => Kind::Denied,
            Refusal::NotFound => Kind::Configuration,
            Refusal::Window | Refusal::Busy | Refusal::Other => Kind::Failed,
        },
        CallError::Unanswered { .. } => Kind::Unreachable,
    };
    let failure = ClusterError::new(kind, what, error.to_string());
    match kind {
        Kind::Denied | Kind::Configuration => failure.hint("`tiphys configure` sets it up"),
        _ => failure,
    }
}

fn broken(name: &str, why: &str) -> ClusterError {
    ClusterError::new(Kind::Failed, format!("the generator `{name}` cannot be synced"), why)
        .hint("repair its source, and run the same command again")
}
