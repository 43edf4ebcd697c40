//! The Lease of a platform: one run at a time, and none that acts after it has lost it.
//!
//! [`decide`] says what to do; this file asks the API server, and tells the time.

mod decide;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tiphys_cluster::agent::Guard;
use tiphys_cluster::delete;
use tiphys_cluster::names::{FIELD_MANAGER, MANAGED_BY};
use tiphys_cluster::{RequestError, no_answer};
use tiphys_model::{Exit, Explain, Explanation};
use tiphys_run::Time;
use tokio::time::{Instant, timeout};

pub use decide::RENEWAL;
use decide::{DURATION, Next, Owner, Read, Waiting};

const POLL: Duration = Duration::from_secs(1);
/// How long a renewal may take. It is tried again then: three fit into a Lease.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Two clocks that are further apart than this differ because the machine slept.
const ASLEEP: Duration = Duration::from_secs(2);
/// What the holder is doing.
pub const ACTION: &str = "tiphys.dev/action";

/// A Lease that this process holds.
pub struct Lease {
    leases: Api<Object>,
    object: Object,
    fence: Fence,
}

/// Until when effects may be sent. Whoever sends one asks it first.
#[derive(Clone)]
pub struct Fence {
    clock: Clock,
    valid_until: Arc<Mutex<Time>>,
}

/// Our own time, which the decisions are made with. The clock of a process stands still while its
/// machine sleeps, and others do not wait for it: then the time of day says how long that was. One
/// that was set ahead only makes us more careful.
#[derive(Debug, Clone, Copy)]
struct Clock {
    began: Instant,
    time_of_day: SystemTime,
}

impl Clock {
    fn start() -> Self {
        Clock { began: Instant::now(), time_of_day: SystemTime::now() }
    }

    fn now(self) -> Time {
        let (awake, passed) = (self.began.elapsed(), self.time_of_day.elapsed());
        let passed = passed.unwrap_or_default();
        Time::START + if passed > awake + ASLEEP { passed } else { awake }
    }
}

impl Fence {
    fn new(clock: Clock, valid_until: Time) -> Self {
        Fence { clock, valid_until: Arc::new(Mutex::new(valid_until)) }
    }

    /// Whether a request that is sent now, and given up after `timeout`, cannot take effect
    /// after the Lease may be somebody else's.
    #[must_use]
    pub fn allows(&self, timeout: Duration) -> bool {
        decide::may_send(self.clock.now(), self.valid_until(), timeout)
    }

    /// The same question, for whoever sends requests.
    #[must_use]
    pub fn guard(&self) -> Guard {
        let fence = self.clone();
        Arc::new(move |timeout| fence.allows(timeout))
    }

    fn valid_until(&self) -> Time {
        // A poisoned lock means that a thread panicked while it held it: nothing is sent then.
        self.valid_until.lock().map_or(Time::START, |until| *until)
    }

    fn set(&self, valid_until: Time) {
        if let Ok(mut current) = self.valid_until.lock() {
            *current = valid_until;
        }
    }

    fn close(&self) {
        self.set(Time::START);
    }
}

/// Why there is no Lease, or none any more.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum LeaseError {
    /// Another run is alive.
    Held {
        name: String,
        holder: String,
    },
    Lost {
        holder: String,
    },
    Request(#[from] RequestError),
}

impl Explain for LeaseError {
    fn explain(&self) -> Explanation {
        match self {
            LeaseError::Held { name, holder } => Explanation::new(
                Exit::Held,
                "another run holds the platform",
                format!("{holder} keeps renewing the Lease `{name}`"),
            )
            .hint("wait until it has ended, or end it"),
            LeaseError::Lost { holder } => Explanation::new(
                Exit::Held,
                "another run took over the platform, so this one stopped",
                format!("{holder} holds the Lease now"),
            )
            .hint("wait until that run has ended (`tiphys status` shows it), then run again"),
            LeaseError::Request(error) => error.explain(),
        }
    }
}

/// Why a Lease could not be renewed.
#[derive(Debug)]
pub enum NotRenewed {
    /// Somebody else holds it.
    Lost { holder: String },
    /// There was no answer; it may still be ours.
    Unanswered(RequestError),
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
        let what = || format!("the Lease `{name}` cannot be taken");
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
                    return Ok(Lease { leases, object, fence });
                }
                // Somebody was quicker: look again.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(RequestError::because(what())(error).into()),
            }
        }
    }

    /// Counts holders: two runs never have the same.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        let spec = self.object.spec.as_ref();
        let transitions = spec.and_then(|spec| spec.lease_transitions).unwrap_or_default();
        u64::try_from(transitions).unwrap_or_default()
    }

    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Whether it may be somebody else's by now.
    #[must_use]
    pub fn has_run_out(&self) -> bool {
        !self.fence.allows(Duration::ZERO)
    }

    pub async fn renew(&mut self) -> Result<(), NotRenewed> {
        let sent = self.fence.clock.now();
        let mut object = self.object.clone();
        if let Some(spec) = &mut object.spec {
            spec.renew_time = Some(MicroTime(Timestamp::now()));
        }
        let name = object.metadata.name.clone().unwrap_or_default();
        match answered(self.leases.replace(&name, &post(), &object)).await {
            Ok(object) => {
                self.object = object;
                self.fence.set(sent + DURATION);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                self.look_after_conflict(&name).await
            }
            Err(error) => Err(unanswered(error)),
        }
    }

    /// Renews it until that fails for good: for what is done while no run is in progress.
    pub async fn keep(&mut self) -> LeaseError {
        loop {
            tokio::time::sleep(RENEWAL).await;
            match self.renew().await {
                Err(NotRenewed::Lost { holder }) => return LeaseError::Lost { holder },
                Err(NotRenewed::Unanswered(error)) if self.has_run_out() => return error.into(),
                Ok(()) | Err(NotRenewed::Unanswered(_)) => {}
            }
        }
    }

    /// Why something failed that was done under this Lease. A process that was stopped for long sees
    /// its requests fail first when it goes on; if the Lease is somebody else's by then, that is why.
    pub async fn blame<E: From<LeaseError>>(&mut self, error: E) -> E {
        match self.renew().await {
            Err(NotRenewed::Lost { holder }) => LeaseError::Lost { holder }.into(),
            Ok(()) | Err(NotRenewed::Unanswered(_)) => error,
        }
    }

    /// Somebody wrote: another holder, or we did and the answer was lost.
    async fn look_after_conflict(&mut self, name: &str) -> Result<(), NotRenewed> {
        let found = answered(self.leases.get_opt(name)).await.map_err(unanswered)?;
        let us = read(&self.object).holder.unwrap_or_default();
        match (decide::owner(&us, found.as_ref().map(read).as_ref()), found) {
            (Owner::Us, Some(object)) => {
                self.object = object;
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

    /// Removes it: there is no platform any more for which to hold it.
    pub async fn remove(self) -> Result<(), RequestError> {
        self.fence.close();
        let ObjectMeta { name, uid, .. } = self.object.metadata;
        let name = name.unwrap_or_default();
        let what = format!("the Lease `{name}` cannot be removed");
        delete::delete(&self.leases, &name, &delete::only(uid), what).await
    }

    /// Gives it up, so that the next run need not wait.
    pub async fn release(mut self) -> Result<(), RequestError> {
        self.fence.close();
        if let Some(spec) = &mut self.object.spec {
            spec.holder_identity = None;
        }
        let name = self.object.metadata.name.clone().unwrap_or_default();
        match answered(self.leases.replace(&name, &post(), &self.object)).await {
            Ok(_) => Ok(()),
            // It is somebody else's already.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => {
                Err(RequestError::because(format!("the Lease `{name}` cannot be given up"))(error))
            }
        }
    }
}

/// The answer, if it comes in time.
async fn answered<T>(
    asked: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    timeout(ANSWER_TIMEOUT, asked).await.unwrap_or_else(|_| Err(no_answer(ANSWER_TIMEOUT)))
}

fn unanswered(error: kube::Error) -> NotRenewed {
    NotRenewed::Unanswered(RequestError::because("the Lease cannot be renewed")(error))
}

fn read(object: &Object) -> Read {
    let holder = object.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    Read {
        version: object.metadata.resource_version.clone().unwrap_or_default(),
        holder: holder.filter(|holder| !holder.is_empty()),
    }
}

fn post() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

fn new(name: &str, identity: &str, action: &str) -> Object {
    let object = Object {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: None,
    };
    taken(object, identity, action)
}

fn taken(mut object: Object, identity: &str, action: &str) -> Object {
    let before = object.spec.take().and_then(|spec| spec.lease_transitions).unwrap_or_default();
    let now = MicroTime(Timestamp::now());
    object.spec = Some(LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        acquire_time: Some(now.clone()),
        renew_time: Some(now),
        lease_transitions: Some(before + 1),
        ..LeaseSpec::default()
    });
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert(ACTION.to_owned(), action.to_owned());
    object
}
