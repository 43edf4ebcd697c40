//! A Lease that is ours, as long as it is renewed.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::Api;
use kube::api::PostParams;
use tiphys_cluster::names::FIELD_MANAGER;
use tiphys_cluster::{RequestError, delete, no_answer};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use super::LeaseError;
use super::decide::{self, DURATION, Owner, RENEWAL};
use super::fence::Fence;
use super::object::{read, renewed};

/// How long a renewal may take. It is tried again then: three fit into a Lease.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it is tried once it has run out, and the pause between. A process that was stopped for
/// long finds its connections closed, and learns only after that who holds the Lease.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// Why a Lease could not be renewed.
#[derive(Debug)]
pub(super) enum NotRenewed {
    /// Somebody else holds it.
    Lost { holder: String },
    /// There was no answer; it may still be ours.
    Unanswered(RequestError),
}

pub(super) struct Held {
    pub(super) leases: Api<Object>,
    /// As it was last read. Locked while it is written, so that one write follows another.
    pub(super) object: Mutex<Object>,
    pub(super) fence: Fence,
}

impl Held {
    /// Renews it until that fails for good.
    pub(super) async fn keep(self: Arc<Self>, end: watch::Sender<Option<LeaseError>>) {
        let mut failures = 0;
        loop {
            tokio::time::sleep(if self.has_run_out() { PAUSE } else { RENEWAL }).await;
            let error = match self.renew().await {
                Ok(()) => {
                    failures = 0;
                    continue;
                }
                Err(NotRenewed::Lost { holder }) => LeaseError::Lost { holder },
                Err(NotRenewed::Unanswered(error)) => {
                    failures += 1;
                    if !self.has_run_out() || failures < TRIES {
                        continue;
                    }
                    error.into()
                }
            };
            end.send_replace(Some(error));
            return;
        }
    }

    /// Whose it is by now, if not ours.
    pub(super) async fn successor(&self) -> Option<String> {
        let mut tries = 1;
        loop {
            match self.renew().await {
                Err(NotRenewed::Lost { holder }) => return Some(holder),
                Err(NotRenewed::Unanswered(_)) if self.has_run_out() && tries < TRIES => {
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(()) | Err(NotRenewed::Unanswered(_)) => return None,
            }
            tries += 1;
        }
    }

    pub(super) async fn renew(&self) -> Result<(), NotRenewed> {
        let mut current = self.object.lock().await;
        let sent = self.fence.now();
        match self.replace(renewed(current.clone())).await {
            Ok(object) => {
                *current = object;
                self.fence.set(sent + DURATION);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                self.look_after_conflict(&mut current).await
            }
            Err(error) => Err(unanswered(error)),
        }
    }

    /// Somebody wrote: another holder, or we did and the answer was lost.
    async fn look_after_conflict(&self, current: &mut Object) -> Result<(), NotRenewed> {
        let found = answered(self.leases.get_opt(name(current))).await.map_err(unanswered)?;
        let us = read(current).holder.unwrap_or_default();
        match (decide::owner(&us, found.as_ref().map(read).as_ref()), found) {
            (Owner::Us, Some(object)) => {
                *current = object;
                Ok(())
            }
            (Owner::Us, None) => Err(self.lost(None)),
            (Owner::Other { holder }, _) => Err(self.lost(holder)),
        }
    }

    fn lost(&self, holder: Option<String>) -> NotRenewed {
        self.fence.close();
        NotRenewed::Lost { holder: holder.unwrap_or_else(|| "nobody".to_owned()) }
    }

    /// Whether it may be somebody else's by now.
    pub(super) fn has_run_out(&self) -> bool {
        !self.fence.allows(Duration::ZERO)
    }

    pub(super) async fn remove(&self, object: Object) -> Result<(), RequestError> {
        let what = format!("cannot remove the Lease `{}`", name(&object));
        let this = delete::only(object.metadata.uid.clone());
        delete::delete(&self.leases, name(&object), &this, what).await
    }

    pub(super) async fn release(&self, mut object: Object) -> Result<(), RequestError> {
        if let Some(spec) = &mut object.spec {
            spec.holder_identity = None;
        }
        let what = format!("cannot release the Lease `{}`", name(&object));
        match self.replace(object).await {
            Ok(_) => Ok(()),
            // It is somebody else's already.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(RequestError::because(what)(error)),
        }
    }

    async fn replace(&self, object: Object) -> Result<Object, kube::Error> {
        answered(self.leases.replace(name(&object), &post(), &object)).await
    }
}

fn name(object: &Object) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// The answer, if it comes in time.
async fn answered<T>(
    asked: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    timeout(ANSWER_TIMEOUT, asked).await.unwrap_or_else(|_| Err(no_answer(ANSWER_TIMEOUT)))
}

fn unanswered(error: kube::Error) -> NotRenewed {
    NotRenewed::Unanswered(RequestError::because("cannot renew the Lease")(error))
}

pub(super) fn post() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}
