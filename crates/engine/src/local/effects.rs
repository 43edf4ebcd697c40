//! Carrying out what the driver asks for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use tiphys_model::{App, AppIx, AppName};
use tiphys_run::{Answer, Effect, SyncAnswer};
use tiphys_state::hold::{Hold, HoldError};
use tiphys_state::lease::Fence;
use tokio::sync::mpsc::UnboundedSender;

use super::drive::Incoming;
use super::frozen::Thaws;
use super::probe_schedule::{ProbeRequest, Probes};
use crate::app_resources::AppResources;
use crate::engine::RunError;
use crate::frozen::is_automated;
use tiphys_argocd::application::Application;
use tiphys_argocd::rest::{CallError, REQUEST_TIMEOUT, Refusal, SyncRequest};
use tiphys_argocd::{AppAddress, Applications, ArgoCdClient, Destination};
use tiphys_cluster::agent::LATE;
use tiphys_cluster::{Cause, ObjectName};
use tiphys_model::Explain;

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What requests are made with.
pub(super) struct Effects {
    pub(super) applications: Applications,
    pub(super) argocd: ArgoCdClient,
    pub(super) hold: Arc<Hold>,
    pub(super) fence: Fence,
    pub(super) thaws: Thaws,
    pub(super) probes: Probes,
    pub(super) known: Mutex<BTreeMap<AppIx, Known>>,
    pub(super) app_resources: Option<Arc<AppResources>>,
}

/// What a request for an app has to say besides its name.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    project: Arc<str>,
    namespace: Arc<str>,
    destination: Destination,
    prune: bool,
    synced: bool,
    reference: ObjectReference,
}

impl Known {
    /// What was not seen yet is looked for where Argo CD is.
    pub(super) fn address(&self, name: &str) -> AppAddress {
        let (project, namespace) = (self.project.clone(), self.namespace.clone());
        AppAddress { name: name.into(), project, namespace }
    }
}

impl Effects {
    pub(super) fn remember(&self, app: AppIx, application: &Application) {
        let prune = application.automated().is_some_and(|automated| automated.prune);
        let reference = application.object_ref(&());
        let known = Known {
            project: application.spec.project.as_str().into(),
            namespace: application.namespace().into(),
            destination: application.destination(),
            prune,
            synced: application.status.sync.status == "Synced",
            reference,
        };
        if let Ok(mut all) = self.known.lock() {
            all.insert(app, known);
        }
        if let Some(app_resources) = &self.app_resources {
            app_resources.remember(application);
        }
    }

    /// In a teardown, an app is gone when all that it has applied is gone.
    /// The hooks that stay are told.
    pub(super) async fn await_gone(&self, app: AppIx, name: &str) -> Vec<ObjectName> {
        self.thaws.settled(app).await;
        match &self.app_resources {
            Some(app_resources) => app_resources.await_gone(name).await,
            None => Vec::new(),
        }
    }

    /// The Application, for who wants to refer to it.
    pub(super) fn reference(&self, app: AppIx) -> ObjectReference {
        self.known(app).reference
    }

    /// Looks closer, and tells what it has found.
    pub(super) async fn probe(
        &self,
        request: ProbeRequest,
        app: &App,
        incoming: &UnboundedSender<Incoming>,
    ) {
        let known = self.known(request.app);
        let address = known.address(app.name.as_str());
        let result = self.probes.look(request, app, &known.destination, &address).await;
        incoming.send(Incoming::Probed(result)).unwrap_or_default();
    }

    pub(super) fn known(&self, app: AppIx) -> Known {
        self.known.lock().ok().and_then(|all| all.get(&app).cloned()).unwrap_or_default()
    }

    /// Does it, and tells what came of it. What the Lease does not cover any more is not done.
    /// `seen` is the newest version of the Application that the run has seen.
    pub(super) async fn carry_out(
        &self,
        effect: Effect,
        name: &AppName,
        seen: Option<u64>,
        incoming: &UnboundedSender<Incoming>,
    ) {
        let app = effect.app();
        let tell = |told: Incoming| incoming.send(told).unwrap_or_default();
        if !self.fence.allows(REQUEST_TIMEOUT) {
            let answer = not_sent(&effect, LATE);
            return tell(Incoming::Answered { app, doing: doing(&effect), answer });
        }
        let doing = doing(&effect);
        tell(match self.attempt(&effect, name.as_str(), seen, incoming).await {
            Ok(answer) => Incoming::Answered { app, doing, answer },
            Err((cause, error)) => {
                let answer = not_sent(&effect, &error.explain().why);
                Incoming::Odd { app, doing, cause, error, answer }
            }
        });
        self.clear_the_way(app, name.as_str()).await;
    }

    /// One try. An error is what no other app would fare better with, if it lasts; `None`: the
    /// machine asks again by itself.
    async fn attempt(
        &self,
        effect: &Effect,
        name: &str,
        seen: Option<u64>,
        incoming: &UnboundedSender<Incoming>,
    ) -> Result<Option<Answer>, (Cause, RunError)> {
        let (app, known) = (effect.app(), self.known(effect.app()));
        let address = known.address(name);
        let tell = |told: Incoming| incoming.send(told).unwrap_or_default();
        match effect {
            Effect::Sync { operation, revisions, number, .. } => {
                let request = SyncRequest { operation, revisions, prune: known.prune };
                let answer = match self.argocd.sync(&address, request).await {
                    Ok(application) => accepted(&application),
                    Err(error) => not_accepted(tolerable(effect, name, error)?),
                };
                Ok(Some(Answer::Sync { number: *number, answer }))
            }
            Effect::Refresh { number, .. } => match self.argocd.refresh(&address).await {
                Ok(application) => {
                    tell(Incoming::Seen(app, Box::new(application)));
                    Ok(Some(Answer::Refreshed { number: *number }))
                }
                Err(error) => {
                    tolerable(effect, name, error)?;
                    Ok(Some(Answer::RefreshFailed { number: *number }))
                }
            },
            Effect::Read { number, .. } => match self.applications.get_opt(name).await {
                Ok(found) => {
                    tell(match found {
                        Some(application) => Incoming::Seen(app, Box::new(application)),
                        None => Incoming::Missing(app, seen),
                    });
                    Ok(Some(Answer::Looked { number: *number }))
                }
                Err(_) => Ok(None),
            },
            Effect::Terminate { .. } => {
                match self.argocd.terminate(&address).await {
                    // Refused: there is nothing to stop any more.
                    Ok(()) | Err(CallError::Refused { refusal: Refusal::Other, .. }) => {
                        Ok(Some(Answer::Terminated))
                    }
                    Err(error) => {
                        tolerable(effect, name, error)?;
                        Ok(None)
                    }
                }
            }
            Effect::HandOff { .. } => match self.hand_off(app, name).await {
                Ok(()) => Ok(Some(Answer::HandedOff)),
                Err(error) if error.cause() == Cause::Unreachable => Ok(None),
                Err(HoldError::Request(error)) => {
                    Err((error.cause(), HoldError::Request(error).into()))
                }
                // No answer of a server, but what it says for good.
                Err(error) => {
                    tell(Incoming::Broken(error.into()));
                    Ok(None)
                }
            },
            Effect::Delete { .. } => Ok(Some(match self.remove(app, name, &known).await {
                Ok(()) | Err(CallError::Refused { refusal: Refusal::NotFound, .. }) => {
                    Answer::DeleteAccepted
                }
                Err(error) => match tolerable(effect, name, error)? {
                    CallError::Refused { refusal: Refusal::Busy | Refusal::Broken, .. }
                    | CallError::Unanswered { .. } => Answer::DeleteUnanswered,
                    CallError::Refused { message, .. } => {
                        Answer::DeleteRefused { message: message.into() }
                    }
                },
            })),
        }
    }

    /// Looks until there is an answer whether an Application is there.
    pub(super) async fn look_for(
        &self,
        app: AppIx,
        name: &str,
        seen: Option<u64>,
        incoming: &UnboundedSender<Incoming>,
    ) {
        let told = loop {
            match self.applications.get_opt(name).await {
                Ok(Some(application)) => break Incoming::Seen(app, Box::new(application)),
                Ok(None) => break Incoming::Missing(app, seen),
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        incoming.send(told).unwrap_or_default();
    }

    /// Removes the Application that was seen; another one of the same name may have come since.
    /// Argo CD does not begin to delete before an operation has ended, so that is stopped.
    async fn remove(&self, app: AppIx, name: &str, known: &Known) -> Result<(), CallError> {
        let unanswered = |message: String| CallError::Unanswered { message };
        let address = known.address(name);
        let found = self.applications.get_opt(name).await;
        let Some(found) = found.map_err(|error| unanswered(error.to_string()))? else {
            return Ok(());
        };
        if found.metadata.uid != known.reference.uid {
            let replaced = "another Application of the same name has replaced it";
            return Err(unanswered(replaced.to_owned()));
        }
        if is_automated(&found) {
            self.thaws.is_in_the_way(app);
        }
        if found.operation.is_some() {
            match self.argocd.terminate(&address).await {
                // It has ended by itself.
                Ok(()) | Err(CallError::Refused { refusal: Refusal::Other, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.fence.allows(REQUEST_TIMEOUT) {
            return Err(unanswered(LATE.to_owned()));
        }
        if let Some(app_resources) = &self.app_resources
            && app_resources.all_stay(name).await
        {
            // Only newer versions of Argo CD see to that by themselves.
            return self.argocd.delete_orphaning(&address).await;
        }
        self.argocd.delete(&address).await
    }

    /// Editing a project wakes nobody: an app that has drifted while it was held would stay so
    /// for minutes. One that has not, Argo CD looks at by itself as soon as something changes.
    async fn hand_off(&self, app: AppIx, name: &str) -> Result<(), HoldError> {
        self.thaws.let_go(app);
        self.hold.release_batched(name).await?;
        // As the watch has shown it by now.
        let known = self.known(app);
        if !known.synced {
            // If this fails, nothing is lost but time.
            self.argocd.refresh(&known.address(name)).await.ok();
        }
        Ok(())
    }
}

/// As one says it of an app.
fn doing(effect: &Effect) -> &'static str {
    match effect {
        Effect::Sync { .. } => "sync",
        Effect::Refresh { .. } => "refresh",
        Effect::Read { .. } => "read",
        Effect::Terminate { .. } => "stop the operation of",
        Effect::HandOff { .. } => "release",
        Effect::Delete { .. } => "delete",
    }
}

/// The answer to report for a request that failed or was not sent; `None` for requests that the
/// machine repeats by itself.
fn not_sent(effect: &Effect, why: &str) -> Option<Answer> {
    match effect {
        Effect::Sync { number, .. } => {
            let answer = SyncAnswer::Unanswered { message: why.into() };
            Some(Answer::Sync { number: *number, answer })
        }
        Effect::Refresh { number, .. } => Some(Answer::RefreshFailed { number: *number }),
        Effect::Delete { .. } => Some(Answer::DeleteUnanswered),
        Effect::Read { .. } | Effect::Terminate { .. } | Effect::HandOff { .. } => None,
    }
}

fn accepted(application: &Application) -> SyncAnswer {
    match application.version() {
        Ok(version) => SyncAnswer::Accepted { version },
        Err(error) => SyncAnswer::Unanswered { message: error.to_string().into() },
    }
}

fn not_accepted(error: CallError) -> SyncAnswer {
    match error {
        CallError::Refused { refusal: Refusal::Busy, .. } => SyncAnswer::Conflict,
        CallError::Refused { refusal: Refusal::Broken, message }
        | CallError::Unanswered { message } => SyncAnswer::Unanswered { message: message.into() },
        CallError::Refused { message, .. } => SyncAnswer::Refused { message: message.into() },
    }
}

/// The error, if it concerns this app alone. No other would fare better with a token that is not
/// accepted, or an account that lacks a right.
fn tolerable(
    effect: &Effect,
    name: &str,
    error: CallError,
) -> Result<CallError, (Cause, RunError)> {
    match error {
        CallError::Refused {
            refusal: refusal @ (Refusal::Unauthenticated | Refusal::Forbidden),
            ..
        } => {
            let (doing, app) = (doing(effect), name.to_owned());
            Err((Cause::Denied, RunError::Denied { doing, app, refusal, source: error }))
        }
        error => Ok(error),
    }
}
