//! One generator: compared with its source, held if need be, and synced to its newest commit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tiphys_model::{AppName, OperationId, SyncStatus};
use tiphys_run::gate::{self, OperationProgress};
use tiphys_run::{ConditionKind, Observation, Revisions};
use tokio::time::Instant;

use super::{GeneratorError, Generators, POLL, observe, refused};
use crate::frozen;
use tiphys_argocd::application::{Application, ResourceStatus};
use tiphys_argocd::messages::{OVERRIDE_WANTED, PART_UNAVAILABLE, PROJECT_UNKNOWN, SERVER_UNKNOWN};
use tiphys_argocd::rest::{CallError, Refusal, SyncRequest};
use tiphys_argocd::{AppAddress, ArgoCdClient};
use tiphys_cluster::RequestError;

/// How long the operation of a generator may take.
pub(super) const OPERATION_TIMEOUT: Duration = Duration::from_secs(300);
/// How long Argo CD may take to begin an operation. It can miss one that is asked for right after a
/// refresh, and then finds it with the next refresh, which by itself is minutes away.
pub(super) const NOTICE: Duration = Duration::from_secs(10);
/// How long a part of Argo CD may be away.
pub(super) const PART_TIMEOUT: Duration = Duration::from_secs(60);
/// How long Argo CD may take to know a project that `configure` has just made.
pub(super) const PROJECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long Kubernetes may take to bring it to Argo CD what a Git server is known by.
pub(super) const TRUST_TIMEOUT: Duration = Duration::from_secs(120);
/// What takes longer than this, the run says that it waits for.
const SAY_AFTER: Duration = Duration::from_secs(5);
/// How often that is looked at meanwhile.
const PASSING_POLL: Duration = Duration::from_secs(3);

/// A generator as it is, compared with its source. What may pass by itself is waited for.
pub(crate) async fn refresh(
    argocd: &ArgoCdClient,
    generator: &AppAddress,
    note: &dyn Fn(String),
) -> Result<(Application, Observation), GeneratorError> {
    let name = &generator.name;
    let began = Instant::now();
    let mut said = false;
    let mut say = |message: &str| {
        if !said && began.elapsed() > SAY_AFTER {
            let message = message.lines().next().unwrap_or_default();
            note(format!("waiting for a problem that may be temporary: {message}"));
            said = true;
        }
    };
    loop {
        let application = match argocd.refresh(generator).await {
            Err(source) if is_away(&source) && began.elapsed() < PART_TIMEOUT => {
                say(&source.to_string());
                tokio::time::sleep(PASSING_POLL).await;
                continue;
            }
            refreshed => refreshed.map_err(|source| refused(name, source))?,
        };
        let seen = observe(&application)?;
        let trouble = seen.conditions.iter().find(|one| one.kind != ConditionKind::Sync);
        match trouble {
            None => return Ok((application, seen)),
            Some(condition) if began.elapsed() < patience(&condition.message) => {
                say(&condition.message);
                tokio::time::sleep(PASSING_POLL).await;
            }
            Some(condition) => return Err(failed(name, &condition.message)),
        }
    }
}

/// Argo CD's API server restarts when its settings change. What it was asked then, the next look at the
/// Application tells.
fn is_away(error: &CallError) -> bool {
    match error {
        CallError::Unanswered { .. } => true,
        CallError::Refused { refusal, .. } => *refusal == Refusal::Broken,
    }
}

impl Generators<'_> {
    pub(super) async fn refresh(
        &self,
        generator: &AppAddress,
    ) -> Result<(Application, Observation), GeneratorError> {
        refresh(self.argocd, generator, self.note).await
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
        let what = format!("cannot read the generator `{name}`");
        let application = self.applications.get(name).await.map_err(RequestError::because(what))?;
        if shown.elapsed() >= NOTICE && !has_begun(&observe(&application)?) {
            // What comes of it, the next look tells.
            self.argocd.refresh(&application.address()).await.ok();
            *shown = Instant::now();
        }
        Ok(application)
    }

    /// A generator at its newest commit.
    pub(super) async fn bring_up_to_date(
        &self,
        generator: &AppAddress,
    ) -> Result<Application, GeneratorError> {
        let name = &generator.name;
        let began = Instant::now();
        let mut held = false;
        loop {
            let (application, seen) = self.refresh(generator).await?;
            self.begun.set(self.begun.get().or(seen.reconciled_at));
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
                Err(GeneratorError::Call { source, .. })
                    if is_away(&source) && began.elapsed() < PART_TIMEOUT =>
                {
                    tokio::time::sleep(PASSING_POLL).await;
                }
                // An operation may still fail of what was noted before the last comparison.
                Err(GeneratorError::Failed { message, .. })
                    if began.elapsed() < patience(&message) =>
                {
                    tokio::time::sleep(PASSING_POLL).await;
                }
                ended => return ended,
            }
        }
    }

    /// Holds a generator that Argo CD syncs by itself: at the next commit it would change apps that
    /// are done, and nobody would see to their order. What it does before it is held does no harm,
    /// because the apps are.
    async fn hold(&self, generator: &Application) -> Result<(), GeneratorError> {
        let terminate = async |_: &str| frozen::stop(self.argocd, &generator.address()).await;
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
            operation: &operation,
            revisions: if follows { &newest } else { &seen.revisions },
            prune: false,
        };
        let address = generator.address();
        let sent = match self.argocd.sync(&address, request).await {
            // The right to override would let the account apply anything. What was compared is the
            // newest, so it is asked for, and looked at afterwards.
            Err(CallError::Refused { message, .. }) if message.contains(OVERRIDE_WANTED) => {
                self.argocd.sync(&address, SyncRequest { revisions: &newest, ..request }).await
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
pub(super) fn refuse_waves(application: &Application) -> Result<(), GeneratorError> {
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

fn failed(name: &str, message: &str) -> GeneratorError {
    GeneratorError::Failed { generator: name.to_owned(), message: message.to_owned() }
}
