//! Generators: the root app, and what else has created Applications of the platform. They are synced
//! before a run begins, so that every Application is there at the run's revision; those that Argo
//! CD would sync by itself are held with the apps.
//!
//! A generator is done when its operation has succeeded and its children are there. Its health is
//! no question: a child that is held is not healthy, so who waited for it would wait for ever.

mod children;
mod difference;
mod error;
mod pinned;
mod sets;
mod settled;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Api;
use kube::api::DynamicObject;
use tiphys_model::operation::PlanTag;
use tiphys_model::{AppName, OperationId, Platform, SyncStatus};
use tiphys_run::gate::{self, OperationProgress};
use tiphys_run::{ConditionKind, Observation, Revisions};

use tiphys_argocd::ArgoCdClient;
use tiphys_argocd::application::{Application, ResourceStatus};
use tiphys_argocd::messages::{OVERRIDE_WANTED, PART_UNAVAILABLE, PROJECT_UNKNOWN, SERVER_UNKNOWN};
use tiphys_argocd::rest::{CallError, Refusal, SyncRequest};
use tiphys_cluster::RequestError;
use tiphys_cluster::names;
use tiphys_state::hold::Hold;
use tokio::time::Instant;

use crate::created::{Generator, created};
use crate::frozen;
pub use error::GeneratorError;

/// How long the operation of a generator may take.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(300);
/// How long ApplicationSets and their controller may take to make Applications.
const SETS_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(300);
/// How long Argo CD may take to begin an operation. It can miss one that is asked for right after a
/// refresh, and then finds it with the next refresh, which by itself is minutes away.
const NOTICE: Duration = Duration::from_secs(10);
/// How long a part of Argo CD may be away.
const PART_TIMEOUT: Duration = Duration::from_secs(60);
/// How long Argo CD may take to know a project that `configure` has just made.
const PROJECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long Kubernetes may take to bring it to Argo CD what a Git server is known by.
const TRUST_TIMEOUT: Duration = Duration::from_secs(120);
/// What takes longer than this, the run says that it waits for.
const SAY_AFTER: Duration = Duration::from_secs(5);
/// How many Applications are looked at at the same time.
const AT_ONCE: usize = 16;
/// How often that is looked at meanwhile.
const PASSING_POLL: Duration = Duration::from_secs(3);

/// Syncs the generators of a platform.
pub(crate) struct Generators<'a> {
    pub platform: &'a Platform,
    pub argocd: &'a ArgoCdClient,
    pub applications: &'a Api<Application>,
    pub sets: &'a Api<DynamicObject>,
    pub hold: &'a Hold,
    pub tag: PlanTag,
    pub epoch: u64,
    /// For whom the run waits.
    pub note: &'a dyn Fn(String),
    /// Those that are done.
    pub done: RefCell<BTreeSet<Generator>>,
}

impl Generators<'_> {
    /// What the root app's source is at now.
    pub(crate) async fn newest(&self) -> Result<Revisions, GeneratorError> {
        let name = names::root_application(self.platform);
        Ok(self.refresh(&name, &self.platform.argocd.root_project).await?.1.revisions)
    }

    /// Brings the root app to the newest commit, and what it has created that creates Applications
    /// in its turn. Its revisions.
    pub(crate) async fn sync(&self) -> Result<Revisions, GeneratorError> {
        let root = names::root_application(self.platform);
        self.sync_one(root, self.platform.argocd.root_project.clone()).await
    }

    /// A generator as it is, compared with its source. What may pass by itself is waited for.
    async fn refresh(
        &self,
        name: &str,
        project: &str,
    ) -> Result<(Application, Observation), GeneratorError> {
        let began = Instant::now();
        let mut said = false;
        loop {
            let refreshed = self.argocd.refresh(name, project).await;
            let application = refreshed.map_err(|source| refused(name, source))?;
            let seen = observe(&application)?;
            let trouble = seen.conditions.iter().find(|one| one.kind != ConditionKind::Sync);
            match trouble {
                None => return Ok((application, seen)),
                Some(condition) if began.elapsed() < patience(&condition.message) => {
                    if !said && began.elapsed() > SAY_AFTER {
                        let message = condition.message.lines().next().unwrap_or_default();
                        (self.note)(format!("waiting for what may pass by itself: {message}"));
                        said = true;
                    }
                    tokio::time::sleep(PASSING_POLL).await;
                }
                Some(condition) => return Err(failed(name, &condition.message)),
            }
        }
    }

    /// Waits for the end of an operation, whoever has started it: a run that was killed, or Argo CD.
    async fn await_idle(&self, name: &str) -> Result<(), GeneratorError> {
        let began = Instant::now();
        let mut shown = began;
        while began.elapsed() < OPERATION_TIMEOUT {
            if self.poll(name, &mut shown).await?.operation.is_none() {
                return Ok(());
            }
        }
        Err(GeneratorError::Unfinished { generator: name.to_owned(), after: OPERATION_TIMEOUT })
    }

    /// The next look at a generator whose operation is waited for. One that does not begin is shown
    /// to Argo CD again; `shown` is when that was done last.
    async fn poll(&self, name: &str, shown: &mut Instant) -> Result<Application, GeneratorError> {
        tokio::time::sleep(POLL).await;
        let what = format!("the generator `{name}` cannot be read");
        let application = self.applications.get(name).await.map_err(RequestError::because(what))?;
        if shown.elapsed() >= NOTICE && !has_begun(&observe(&application)?) {
            // What comes of it, the next look tells.
            self.argocd.refresh(name, &application.spec.project).await.ok();
            *shown = Instant::now();
        }
        Ok(application)
    }

    /// A generator at its newest commit.
    async fn bring_up_to_date(
        &self,
        name: &str,
        project: &str,
    ) -> Result<Application, GeneratorError> {
        let began = Instant::now();
        let mut held = false;
        loop {
            let (application, seen) = self.refresh(name, project).await?;
            refuse_waves(&application)?;
            if application.automated().is_some() && !held {
                self.hold(&application).await?;
                held = true;
                continue;
            }
            if seen.operation.is_some() {
                self.await_idle(name).await?;
                continue;
            }
            if is_current(&seen) {
                return Ok(application);
            }
            if held {
                self.refuse_denied(&application).await?;
            }
            match self.sync_to_the_end(&application, &seen).await {
                // Somebody was quicker.
                Err(GeneratorError::Call {
                    source: CallError::Refused { refusal: Refusal::Busy, .. },
                    ..
                }) if began.elapsed() < OPERATION_TIMEOUT => self.await_idle(name).await?,
                ended => return ended,
            }
        }
    }

    /// Holds a generator that Argo CD syncs by itself: at the next commit it would change apps that
    /// are done, and nobody would see to their order. What it does before it is held does no harm,
    /// because the apps are.
    async fn hold(&self, generator: &Application) -> Result<(), GeneratorError> {
        let terminate =
            async |app: &str| frozen::stop(self.argocd, app, &generator.spec.project).await;
        let held = self.hold.hold_generator_when_idle(generator, self.applications, terminate);
        Ok(held.await?)
    }

    /// Our hold lets a manual sync through before Argo CD looks at anybody's windows.
    async fn refuse_denied(&self, generator: &Application) -> Result<(), GeneratorError> {
        match self.hold.denies_generator(generator).await? {
            None => Ok(()),
            Some(denied) => {
                Err(GeneratorError::Denied { generator: generator.name().to_owned(), denied })
            }
        }
    }

    /// A generator, then those that it has created.
    fn sync_one(
        &self,
        name: String,
        project: String,
    ) -> LocalBoxFuture<'_, Result<Revisions, GeneratorError>> {
        async move {
            if !self.platform.argocd.uses(&project) {
                return Err(GeneratorError::Elsewhere { generator: name, project });
            }
            let application = self.bring_up_to_date(&name, &project).await?;
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
        let generators: Vec<Option<(String, String)>> =
            stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        for (name, project) in generators.into_iter().flatten() {
            self.sync_one(name, project).await?;
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

    /// What a generator has created, with its project, if it creates Applications in its turn. In
    /// the generators' project, all do. Elsewhere it may have been created or changed just now, and
    /// Argo CD has to look at it first.
    async fn as_generator(&self, name: String) -> Result<Option<(String, String)>, GeneratorError> {
        if self.platform.apps.iter().any(|app| app.name.as_str() == name) {
            return Ok(None);
        }
        let what = format!("the Application `{name}` cannot be read");
        let found = self.applications.get_opt(&name).await.map_err(RequestError::because(what))?;
        let Some(found) = found else { return Ok(None) };
        let (argocd, project) = (&self.platform.argocd, found.spec.project.clone());
        if project == argocd.root_project {
            return Ok(Some((name, project)));
        }
        let compared = if argocd.has_apps_in(&project) {
            let refreshed = self.argocd.refresh(&name, &project).await;
            refreshed.map_err(|source| refused(&name, source))?
        } else {
            found
        };
        Ok(created(&compared).next().is_some().then_some((name, project)))
    }

    async fn sync_to_the_end(
        &self,
        generator: &Application,
        seen: &Observation,
    ) -> Result<Application, GeneratorError> {
        let name = generator.name();
        let app = AppName::parse(name)
            .map_err(|source| GeneratorError::Name { generator: name.to_owned(), source })?;
        let operation = OperationId { plan: self.tag, app, epoch: self.epoch, attempt: 1 };
        // Argo CD refuses any other revision than the one that it follows by itself.
        let follows = generator.automated().is_some() && !seen.pinned;
        let newest = Revisions::default();
        let request = SyncRequest {
            project: &generator.spec.project,
            operation: &operation,
            revisions: if follows { &newest } else { &seen.revisions },
            prune: false,
        };
        let sent = match self.argocd.sync(name, request).await {
            // The right to override would let the account apply anything. What was compared is the
            // newest, so it is asked for, and looked at afterwards.
            Err(CallError::Refused { message, .. }) if message.contains(OVERRIDE_WANTED) => {
                self.argocd.sync(name, SyncRequest { revisions: &newest, ..request }).await
            }
            sent => sent,
        };
        sent.map_err(|source| refused(name, source))?;
        let began = Instant::now();
        let mut shown = began;
        while began.elapsed() < OPERATION_TIMEOUT {
            let application = self.poll(name, &mut shown).await?;
            match gate::operation(&observe(&application)?, &operation) {
                OperationProgress::Succeeded(last)
                    if !follows && last.revisions != seen.revisions =>
                {
                    return Err(GeneratorError::Moved { generator: name.to_owned() });
                }
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
    } else if SERVER_UNKNOWN.iter().any(|words| message.contains(words)) {
        TRUST_TIMEOUT
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

/// Whether the operation that is asked for, if any, is the one that Argo CD tells about.
fn has_begun(seen: &Observation) -> bool {
    let told = seen.last.as_ref().map(|last| &last.operation.id);
    seen.operation.as_ref().is_none_or(|asked| told == Some(&asked.id))
}

fn is_application(resource: &ResourceStatus) -> bool {
    resource.group == "argoproj.io" && resource.kind == "Application"
}

/// With waves, Argo CD would create the children one after the other, each when the one before
/// is healthy: an order of its own beside the platform's.
fn refuse_waves(application: &Application) -> Result<(), GeneratorError> {
    let resources = application.status.resources.iter().flatten();
    let mut waves: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    for resource in resources.filter(|resource| is_application(resource)) {
        waves.entry(resource.sync_wave).or_default().insert(resource.name.clone());
    }
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
