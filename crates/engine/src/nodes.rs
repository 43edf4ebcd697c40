//! The local engine with a workflow beside it that has a node for each app.

use std::collections::BTreeMap;

use tiphys_cluster::names::Account;
use tiphys_model::{AppIx, Platform};
use tiphys_run::{Event, Time, Verdict};
use tiphys_state::lease::Lease;
use tiphys_workflows::{AgentPod, FromNodes, NodesRun, Owner, serve_nodes};
use tokio::sync::mpsc::unbounded_channel;

use crate::engine::{RunError, Setup};
use crate::local::{self, Admission, Gatekeeper, Reports};
use crate::run_update::RunUpdate;
use crate::signals::Signals;

/// The workflow that the run is a step of, and the pod of its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    pub owner: Owner,
    pub pod: AgentPod,
    /// The namespace of Argo CD.
    pub argocd: String,
    /// The ServiceAccount of that pod.
    pub account: String,
}

impl Nodes {
    #[must_use]
    pub fn of(platform: &Platform, owner: Owner, pod: AgentPod) -> Self {
        let account = Account::Nodes.name(platform);
        Nodes { owner, pod, argocd: platform.argocd.namespace.clone(), account }
    }

    pub(crate) async fn run(
        &self,
        setup: Setup,
        lease: &Lease,
        signals: &mut Signals,
        events: &dyn Fn(Time, Event),
        updates: &dyn Fn(RunUpdate),
    ) -> Result<Verdict, RunError> {
        let (client, plan, name) = (setup.client.clone(), setup.plan.clone(), setup.run.clone());
        let apps: BTreeMap<&str, AppIx> =
            plan.graph.apps().map(|app| (plan.app(app).app.name.as_str(), app)).collect();
        let (admit, admissions) = unbounded_channel();
        let (report, reports) = unbounded_channel();
        let tell = |news| {
            let admission = match news {
                FromNodes::Admitted(app) => apps.get(&*app).copied().map(Admission::App),
                FromNodes::Stopped => {
                    let told = "the workflow of the nodes was stopped, so this run stops";
                    updates(RunUpdate::Warning(told.to_owned()));
                    Some(Admission::Stopped)
                }
                FromNodes::Warning(text) => {
                    updates(RunUpdate::Warning(text));
                    None
                }
            };
            if let Some(admission) = admission {
                admit.send(admission).unwrap_or_default();
            }
        };
        let run = NodesRun {
            plan: &plan,
            run: &name,
            epoch: lease.epoch(),
            argocd: &self.argocd,
            account: &self.account,
            owner: &self.owner,
            pod: &self.pod,
        };
        let mut nodes = std::pin::pin!(serve_nodes(&client, &run, reports, &tell));
        let gatekeeper = Gatekeeper { admissions, reports: Reports::new(report) };
        let run = local::run(setup, Some(gatekeeper), lease, signals, events, updates);
        let ended = tokio::select! {
            ended = Box::pin(run) => ended,
            // Not before the end of the run, unless something is wrong.
            failed = &mut nodes => return Err(failed.err().map_or(RunError::NodesEnded, Into::into)),
        };
        // How the run ended does not depend on whether its nodes show it.
        if let Err(error) = nodes.await {
            updates(RunUpdate::Warning(error.to_string()));
        }
        ended
    }
}
