//! The Lease of a platform: one run at a time, and none that acts after it has lost it.
//!
//! [`decide`] says what to do; the rest asks the API server, and tells the time.

mod decide;
mod error;
mod fence;
mod held;
mod object;
mod seen;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::{Api, Client};
use tiphys_cluster::RequestError;
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;

use decide::{DURATION, Next, Waiting};
pub use error::LeaseError;
use fence::Clock;
pub use fence::Fence;
use held::{Held, post};
pub use object::ACTION;
use object::{new, read, taken};
pub use seen::seen;

const POLL: Duration = Duration::from_secs(1);

/// A Lease that this process holds. A task of its own renews it, whatever the run is busy with,
/// until this is dropped.
pub struct Lease {
    held: Arc<Held>,
    epoch: u64,
    keeper: AbortHandle,
    end: watch::Receiver<Option<LeaseError>>,
}

impl Lease {
    /// Takes the platform's Lease. One that is held is watched for its whole duration: if its
    /// holder does not renew it, it is dead, otherwise it is busy.
    pub async fn acquire(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        action: &str,
        waiting_for: impl Fn(&str),
    ) -> Result<Lease, LeaseError> {
        let leases: Api<Object> = Api::namespaced(client, namespace);
        let what = || format!("cannot acquire the Lease `{name}`");
        let clock = Clock::start();
        let mut waiting = Waiting::default();
        let mut announced = false;
        loop {
            let found = leases.get_opt(name).await.map_err(RequestError::because(what()))?;
            let next = waiting.decide(clock.now(), found.as_ref().map(read).as_ref());
            let sent = clock.now();
            let taken = match (next, found) {
                (Next::Create, _) | (Next::Take, None) => {
                    leases.create(&post(), &new(name, identity, action)).await
                }
                (Next::Take, Some(object)) => {
                    leases.replace(name, &post(), &taken(object, identity, action)).await
                }
                (Next::Wait { holder }, _) => {
                    if !announced {
                        waiting_for(&holder);
                        announced = true;
                    }
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                (Next::GiveUp { holder }, _) => {
                    return Err(LeaseError::Held { name: name.to_owned(), holder });
                }
            };
            match taken {
                Ok(object) => {
                    let fence = Fence::new(clock, sent + DURATION);
                    return Ok(Lease::new(leases, object, fence));
                }
                // Somebody was quicker: look again.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(RequestError::because(what())(error).into()),
            }
        }
    }

    fn new(leases: Api<Object>, object: Object, fence: Fence) -> Self {
        let spec = object.spec.as_ref();
        let transitions = spec.and_then(|spec| spec.lease_transitions).unwrap_or_default();
        let held = Arc::new(Held { leases, object: Mutex::new(object), fence });
        let (ends, end) = watch::channel(None);
        let keeper = tokio::spawn(held.clone().keep(ends)).abort_handle();
        Lease { held, epoch: u64::try_from(transitions).unwrap_or_default(), keeper, end }
    }

    /// Counts holders: two runs never have the same.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    #[must_use]
    pub fn fence(&self) -> Fence {
        self.held.fence.clone()
    }

    /// Why it is not ours any more, as soon as that is so.
    pub async fn ended(&self) -> LeaseError {
        let mut end = self.end.clone();
        let end = end.wait_for(Option::is_some).await;
        let error = end.ok().and_then(|error| error.clone());
        error.expect("whoever renews it says why it ends")
    }

    /// Why something failed that was done under this Lease. A process that was stopped for long sees
    /// its requests fail first when it goes on; if the Lease is somebody else's by then, that is why.
    pub async fn blame<E: From<LeaseError>>(&self, error: E) -> E {
        match self.held.successor().await {
            Some(holder) => LeaseError::Lost { holder }.into(),
            None => error,
        }
    }

    /// Deletes the Lease: the platform is gone.
    pub async fn remove(self) -> Result<(), RequestError> {
        let object = self.stop().await;
        self.held.remove(object).await
    }

    /// Gives it up, so that the next run need not wait.
    pub async fn release(self) -> Result<(), RequestError> {
        let object = self.stop().await;
        self.held.release(object).await
    }

    /// From now on nothing is sent, and nothing renewed. A renewal that is under way is awaited: one
    /// that arrived later would look like somebody else's.
    async fn stop(&self) -> Object {
        self.held.fence.close();
        let object = self.held.object.lock().await;
        self.keeper.abort();
        object.clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}
