//! One process at a time looks after all platforms; another one waits until that is gone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use kube::Client;
use tiphys_cluster::{Cause, agent};
use tiphys_state::LeaseError;
use tiphys_state::deploy_loop::{LoopState, LoopStore};
use tiphys_state::lease::Lease;
use tokio::time::sleep;

use crate::platform::Watched;

/// In the namespace of the chart.
const LEASE: &str = "tiphys-serve";
/// How often each platform is looked at.
const POLL: Duration = Duration::from_secs(5);

/// What the loop has to say, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Note(String),
    Warning(String),
}

/// Looks after all platforms until `stop` comes; what that was. `namespace` is where the Lease is, and
/// `identity` who this is.
pub async fn deploy_loop<S>(
    client: &Client,
    namespace: &str,
    identity: &str,
    tell: &dyn Fn(Said),
    stop: impl Future<Output = S>,
) -> Result<S, LeaseError> {
    let mut stop = std::pin::pin!(stop);
    loop {
        let waits = |holder: &str| tell(Said::Note(format!("waiting: {holder} leads")));
        let acquired = tokio::select! {
            acquired = Lease::acquire(client.clone(), namespace, LEASE, identity, "serve", waits) => acquired,
            signal = &mut stop => return Ok(signal),
        };
        let lease = match acquired {
            Ok(lease) => lease,
            // It has waited for a whole Lease already.
            Err(LeaseError::Held { .. }) => continue,
            Err(LeaseError::Request(error)) if error.cause() == Cause::Unreachable => {
                tell(Said::Warning(error.to_string()));
                tokio::select! {
                    () = sleep(POLL) => continue,
                    signal = &mut stop => return Ok(signal),
                }
            }
            Err(error) => return Err(error),
        };
        tell(Said::Note("leading: deploying what Git has".to_owned()));
        let guarded = agent::guarded(client, "serve", lease.fence().guard());
        let ended = tokio::select! {
            never = lead(&guarded, identity, tell) => match never {},
            error = lease.ended() => error,
            signal = &mut stop => {
                lease.release().await?;
                return Ok(signal);
            }
        };
        tell(Said::Warning(ended.to_string()));
    }
}

async fn lead(client: &Client, identity: &str, tell: &dyn Fn(Said)) -> Infallible {
    let store = LoopStore::new(client);
    let mut watched: BTreeMap<String, Watched> = BTreeMap::new();
    let mut trouble = String::new();
    loop {
        match store.list().await {
            Ok(states) => {
                trouble.clear();
                watched.retain(|key, _| states.iter().any(|state| *key == key_of(state)));
                for state in &states {
                    let platform = watched.entry(key_of(state)).or_default();
                    platform.attend(client, identity, state, tell).await;
                }
            }
            Err(error) => {
                let error = error.to_string();
                if trouble != error {
                    tell(Said::Warning(error.clone()));
                    trouble = error;
                }
            }
        }
        sleep(POLL).await;
    }
}

fn key_of(state: &LoopState) -> String {
    format!("{}/{}", state.argocd, state.platform)
}
