//! The executor plugin: what Argo Workflows asks about the nodes of a run, in the pod of its agent.
//!
//! How a node stands, the run writes itself. The plugin keeps nodes open as long as that run holds the
//! Lease, and fails them afterwards: a workflow that somebody retries must not wait for ever, nor may it
//! deploy an old plan.

mod liveness;
mod server;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::{Value, json};
use tiphys_cluster::names;
use tiphys_model::PlatformName;
use tiphys_run::Time;
use tokio::sync::watch;
use tokio::time::Instant;

use liveness::{Liveness, Verdict};
pub use server::PluginError;

/// Between two looks at the Lease.
const LOOK: Duration = Duration::from_secs(5);
/// When Argo Workflows should ask again.
const AGAIN: &str = "10s";

/// The run whose nodes these are.
#[derive(Debug, Clone)]
pub struct PluginRun {
    pub platform: PlatformName,
    /// The namespace of Argo CD.
    pub argocd: String,
    pub epoch: u64,
}

/// Answers until the process is ended.
pub async fn serve_plugin(client: &Client, run: &PluginRun) -> Result<(), PluginError> {
    let (look, looked) = watch::channel(Verdict::Unknown);
    tokio::select! {
        () = follow(client, run, &look) => Ok(()),
        ended = server::serve(move || answer(*looked.borrow(), &run.platform)) => ended,
    }
}

/// Looks at the Lease again and again.
async fn follow(client: &Client, run: &PluginRun, look: &watch::Sender<Verdict>) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), &run.argocd);
    let name = names::of(&run.platform);
    let began = Instant::now();
    let mut liveness = Liveness::new(run.epoch);
    loop {
        match leases.get_opt(&name).await {
            Ok(lease) => {
                look.send_replace(liveness.judge(Time::START + began.elapsed(), lease.as_ref()));
            }
            Err(error) => tracing::warn!("cannot read the Lease {name}: {error}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The answer, which is the same for all nodes.
fn answer(verdict: Verdict, platform: &PlatformName) -> Value {
    match verdict {
        // Without a phase, nothing is written: the run does that.
        Verdict::Unknown => json!({ "node": {}, "requeue": "1s" }),
        Verdict::Alive => json!({ "node": {}, "requeue": AGAIN }),
        Verdict::Gone => {
            let message = format!(
                "the run of this workflow has ended: submit a new one with `tiphys deploy --engine \
                 workflows --platform {platform}`"
            );
            json!({ "node": { "phase": "Failed", "message": message } })
        }
    }
}
