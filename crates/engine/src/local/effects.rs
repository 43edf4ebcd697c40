//! Carrying out what the driver asks for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Resource};
use tiphys_model::{App, AppIx, AppName};
use tiphys_run::{Answer, Effect, RequestNumber, SyncAnswer};
use tokio::sync::mpsc::UnboundedSender;

use super::drive::Incoming;
use super::frozen::FrozenOperations;
use super::probe_schedule::{ProbeRequest, Probes};
use super::rate_limit::RateLimit;
use crate::app_resources::AppResources;
use crate::engine::RunError;
use crate::hold::{Hold, HoldError};
use crate::lease::Fence;
use tiphys_argocd::ArgoCdClient;
use tiphys_argocd::application::Application;
use tiphys_argocd::rest::{CallError, REQUEST_TIMEOUT, Refusal, SyncRequest};
use tiphys_cluster::Cause;

/// What requests are made with.
pub(super) struct Effects {
    pub(super) applications: Api<Application>,
    pub(super) argocd: ArgoCdClient,
    pub(super) hold: Arc<Hold>,
    pub(super) fence: Fence,
    pub(super) rate_limit: RateLimit,
    pub(super) frozen: FrozenOperations,
    pub(super) probes: Probes,
    pub(super) known: Mutex<BTreeMap<AppIx, Known>>,
    pub(super) app_resources: Option<Arc<AppResources>>,
}

/// What a request for an app has to say besides its name.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    project: Arc<str>,
    /// Where its resources are.
    namespace: Arc<str>,
    prune: bool,
    reference: ObjectReference,
}

impl Effects {
    pub(super) fn remember(&self, app: AppIx, application: &Application) {
        let prune = application.automated().is_some_and(|automated| automated.prune);
        let reference = application.object_ref(&());
        let namespace = application.spec.destination["namespace"].as_str().unwrap_or_default();
        let known = Known {
            project: application.spec.project.as_str().into(),
            namespace: namespace.into(),
            prune,
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
    pub(super) async fn await_gone(&self, name: &str) {
        if let Some(app_resources) = &self.app_resources {
            app_resources.await_gone(name).await;
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
        let result = self.probes.look(request, app, &known.namespace, &known.project).await;
        incoming.send(Incoming::Probed(result)).unwrap_or_default();
    }

    fn known(&self, app: AppIx) -> Known {
        self.known.lock().ok().and_then(|all| all.get(&app).cloned()).unwrap_or_default()
    }

    /// Does it, and tells what came of it. What the Lease does not cover any more is not done.
    pub(super) async fn carry_out(
        &self,
        effect: Effect,
        name: &AppName,
        incoming: &UnboundedSender<Incoming>,
    ) {
        self.rate_limit.wait().await;
        let app = effect.app();
        let tell = |told: Incoming| incoming.send(told).unwrap_or_default();
        if !self.fence.allows(REQUEST_TIMEOUT) {
            if let Some(answer) = not_sent(&effect) {
                tell(Incoming::Answer(app, answer));
            }
            return;
        }
        let (name, known) = (name.as_str(), self.known(app));
        let answered = match effect {
            Effect::Sync { operation, revisions, number, .. } => {
                let request = SyncRequest {
                    project: &known.project,
                    operation: &operation,
                    revisions: &revisions,
                    prune: known.prune,
                };
                let taken = self.argocd.sync(name, request).await;
                sync_answer(name, taken).map(|answer| Answer::Sync { number, answer })
            }
            Effect::Refresh { number, .. } => {
                self.refresh(app, name, &known, number, incoming).await
            }
            Effect::Read { number, .. } => match self.applications.get_opt(name).await {
                Ok(application) => {
                    if let Some(application) = application {
                        tell(Incoming::Seen(app, Box::new(application)));
                    }
                    Ok(Answer::Looked { number })
                }
                // The machine asks again by itself.
                Err(_) => return,
            },
            Effect::Terminate { .. } => {
                match self.argocd.terminate(name, &known.project).await {
                    // Refused: there is nothing to stop any more.
                    Ok(()) | Err(CallError::Refused { refusal: Refusal::Other, .. }) => {
                        Ok(Answer::Terminated)
                    }
                    Err(error) => match fatal("stop the operation of", name, &error) {
                        Some(error) => Err(error),
                        None => return,
                    },
                }
            }
            Effect::HandOff { .. } => match self.hand_off(app, name, &known).await {
                Err(error) if error.cause() == Cause::Unreachable => return,
                handed => handed.map(|()| Answer::HandedOff).map_err(RunError::from),
            },
            Effect::Delete { .. } => match self.remove(name, &known).await {
                Ok(()) | Err(CallError::Refused { refusal: Refusal::NotFound, .. }) => {
                    Ok(Answer::DeleteAccepted)
                }
                Err(error) => match fatal("delete", name, &error) {
                    Some(error) => Err(error),
                    None => Ok(match error {
                        CallError::Refused { message, .. } => {
                            Answer::DeleteRefused { message: message.into() }
                        }
                        CallError::Unanswered { .. } => Answer::DeleteUnanswered,
                    }),
                },
            },
        };
        tell(match answered {
            Ok(answer) => Incoming::Answer(app, answer),
            Err(error) => Incoming::Broken(error),
        });
    }

    /// Removes the Application that was seen; another one of the same name may have come since.
    /// Argo CD does not begin to delete before an operation has ended, so that is stopped.
    async fn remove(&self, name: &str, known: &Known) -> Result<(), CallError> {
        let unanswered = |message: String| CallError::Unanswered { message };
        let found = self.applications.get_opt(name).await;
        let Some(found) = found.map_err(|error| unanswered(error.to_string()))? else {
            return Ok(());
        };
        if found.metadata.uid != known.reference.uid {
            return Err(unanswered("another Application has taken its place".to_owned()));
        }
        if found.operation.is_some() {
            match self.argocd.terminate(name, &known.project).await {
                // It has ended by itself.
                Ok(()) | Err(CallError::Refused { refusal: Refusal::Other, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.fence.allows(REQUEST_TIMEOUT) {
            return Err(unanswered("the Lease was about to run out".to_owned()));
        }
        self.argocd.delete(name, &known.project).await
    }

    /// Editing a project wakes nobody: an app that has drifted while it was held would stay so
    /// for minutes. One that has not, Argo CD looks at by itself as soon as something changes.
    async fn hand_off(&self, app: AppIx, name: &str, known: &Known) -> Result<(), HoldError> {
        self.frozen.let_go(app);
        self.hold.release_batched(name).await?;
        let seen = self.applications.get_opt(name).await.ok().flatten();
        if seen.is_none_or(|application| application.status.sync.status != "Synced") {
            // If this fails, nothing is lost but time.
            self.argocd.refresh(name, &known.project).await.ok();
        }
        Ok(())
    }

    async fn refresh(
        &self,
        app: AppIx,
        name: &str,
        known: &Known,
        number: RequestNumber,
        incoming: &UnboundedSender<Incoming>,
    ) -> Result<Answer, RunError> {
        match self.argocd.refresh(name, &known.project).await {
            Ok(application) => {
                let seen = Incoming::Seen(app, Box::new(application));
                incoming.send(seen).unwrap_or_default();
                Ok(Answer::Refreshed { number })
            }
            Err(error) => match fatal("refresh", name, &error) {
                Some(error) => Err(error),
                None => Ok(Answer::RefreshFailed { number }),
            },
        }
    }
}

/// What the machine is told of a request that was held back. What it asks again by itself is
/// not answered.
fn not_sent(effect: &Effect) -> Option<Answer> {
    let message = || "the Lease was about to run out".into();
    match effect {
        Effect::Sync { number, .. } => {
            let answer = SyncAnswer::Unanswered { message: message() };
            Some(Answer::Sync { number: *number, answer })
        }
        Effect::Refresh { number, .. } => Some(Answer::RefreshFailed { number: *number }),
        Effect::Delete { .. } => Some(Answer::DeleteUnanswered),
        Effect::Read { .. } | Effect::Terminate { .. } | Effect::HandOff { .. } => None,
    }
}

fn sync_answer(name: &str, taken: Result<Application, CallError>) -> Result<SyncAnswer, RunError> {
    let error = match taken {
        Ok(application) => {
            return Ok(match application.version() {
                Ok(version) => SyncAnswer::Accepted { version },
                Err(error) => SyncAnswer::Unanswered { message: error.to_string().into() },
            });
        }
        Err(error) => error,
    };
    if let Some(error) = fatal("sync", name, &error) {
        return Err(error);
    }
    Ok(match error {
        CallError::Refused { refusal: Refusal::Busy, .. } => SyncAnswer::Conflict,
        CallError::Refused { message, .. } => SyncAnswer::Refused { message: message.into() },
        CallError::Unanswered { message } => SyncAnswer::Unanswered { message: message.into() },
    })
}

/// What no other app would fare better with.
fn fatal(doing: &'static str, name: &str, error: &CallError) -> Option<RunError> {
    let CallError::Refused { refusal, .. } = error else { return None };
    match *refusal {
        refusal @ (Refusal::Unauthenticated | Refusal::Forbidden) => {
            let (app, source) = (name.to_owned(), error.clone());
            Some(RunError::Denied { doing, app, refusal, source })
        }
        Refusal::Window | Refusal::NotFound | Refusal::Busy | Refusal::Other => None,
    }
}
