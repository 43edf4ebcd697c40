//! One process at a time looks after all platforms; another one waits until that is gone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use kube::Client;
use tiphys_cluster::{Cause, RequestError, agent};
use tiphys_state::LeaseError;
use tiphys_state::changes::{self, NotedChange};
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
        match seen(client, &store).await {
            Ok((states, changes)) => {
                trouble.clear();
                watched.retain(|key, _| states.iter().any(|state| *key == key_of(state)));
                for state in &states {
                    let platform = watched.entry(key_of(state)).or_default();
                    let of_platform = |change: &&NotedChange| {
                        change.platform == state.platform && change.argocd == state.argocd
                    };
                    let changes: Vec<_> = changes.iter().filter(of_platform).cloned().collect();
                    platform.attend(client, identity, (state, &changes), tell).await;
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

/// All platforms, and which objects of theirs have changed.
async fn seen(
    client: &Client,
    store: &LoopStore,
) -> Result<(Vec<LoopState>, Vec<NotedChange>), RequestError> {
    let states = store.list().await?;
    let has_triggers = states.iter().any(|state| state.validates);
    let changes = if has_triggers { changes::noted(client).await? } else { Vec::new() };
    Ok((states, changes))
}

fn key_of(state: &LoopState) -> String {
    format!("{}/{}", state.argocd, state.platform)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tiphys_cluster::scripted::{Answer, Server};

    use super::*;

    const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/tiphys-system/leases/tiphys-serve";

    /// Runs it for so many seconds; what it said.
    async fn run_for(
        server: &Server,
        identity: &str,
        seconds: u64,
    ) -> Result<Vec<Said>, LeaseError> {
        let said = RefCell::default();
        let tell = |one| RefCell::<Vec<Said>>::borrow_mut(&said).push(one);
        let stop = sleep(Duration::from_secs(seconds));
        deploy_loop(&server.client(), "tiphys-system", identity, &tell, stop).await?;
        Ok(said.into_inner())
    }

    fn leading() -> Said {
        Said::Note("leading: deploying what Git has".to_owned())
    }

    fn leader(server: &Server) -> Option<String> {
        let lease = server.get(PATH)?;
        lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
    }

    #[tokio::test(start_paused = true)]
    async fn one_leads_and_another_follows_when_it_stops() {
        let server = Server::default();
        let both = tokio::join!(run_for(&server, "one", 60), run_for(&server, "two", 120));
        let waiting = Said::Note("waiting: one leads".to_owned());
        assert_eq!(both.0.unwrap(), [leading()]);
        let second = both.1.unwrap();
        assert_eq!(second.first(), Some(&waiting));
        assert_eq!(second.last(), Some(&leading()));
        assert_eq!(leader(&server), None, "it was given up");
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_has_configured_a_platform_it_waits_for_one() {
        let server = Server::default();
        let denied = || Answer::refused(403, "no");
        for _ in 0..100 {
            server.next_where(|asked| asked.path.contains("/configmaps?"), denied());
        }
        assert_eq!(run_for(&server, "one", 60).await.unwrap(), [leading()]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_right_to_lead_it_ends() {
        let server = Server::default();
        server.next_where(|asked| asked.path.contains("/leases/"), Answer::refused(403, "no"));
        assert!(run_for(&server, "one", 60).await.is_err());
    }
}
