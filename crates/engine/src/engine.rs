//! What executes a run. A new engine is a module like `local`, and a line in each `match` here.

mod error;

use std::pin::pin;
use std::sync::Arc;

use futures::channel::mpsc::unbounded;
use kube::Client;
use tiphys_model::Plan;
use tiphys_run::{Action, Clock, EngineName, Event, Evidence, Verdict};
use tiphys_state::hold::Hold;
use tiphys_state::lease::Lease;
use tokio::sync::watch;

use crate::app_resources::AppResources;
use crate::local;
use crate::nodes::Nodes;
use crate::run_update::RunUpdate;
use crate::signals::Signals;
use tiphys_argocd::{Applications, ArgoCdClient};
use tiphys_evidence::attach_evidence;
use tiphys_evidence::criteria::Prober;

pub use error::RunError;

/// The engines of runs on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// The driver in this process.
    Local,
    /// The same, with a workflow beside it that has a node for each app.
    Nodes(Box<Nodes>),
}

/// What a run works with.
pub(crate) struct Setup {
    pub(crate) client: Client,
    pub(crate) argocd: ArgoCdClient,
    pub(crate) prober: Option<Prober>,
    pub(crate) applications: Applications,
    pub(crate) plan: Arc<Plan>,
    pub(crate) action: Action,
    pub(crate) hold: Arc<Hold>,
    pub(crate) held: bool,
    pub(crate) clock: Clock,
    /// What has to be gone with an app, in a teardown.
    pub(crate) app_resources: Option<Arc<AppResources>>,
    /// How this run is called.
    pub(crate) run: String,
}

impl Engine {
    #[must_use]
    pub fn name(&self) -> EngineName {
        match self {
            Engine::Local => EngineName::Local,
            Engine::Nodes(_) => EngineName::Workflows,
        }
    }

    /// Runs to the end, and tells what happens in the order in which it does, with evidence for
    /// what failed. `noted` hears of it at once.
    ///
    /// The Lease is renewed meanwhile, and still held afterwards if it was not lost. An error means
    /// that the run could not go on; what it had asked for goes on without it.
    pub(crate) async fn run(
        &self,
        setup: Setup,
        lease: &Lease,
        signals: &mut Signals,
        noted: &dyn Fn(&Event),
        look: impl AsyncFn(&str, Evidence) -> Evidence,
        updates: &dyn Fn(RunUpdate),
    ) -> Result<Verdict, RunError> {
        let plan = setup.plan.clone();
        let (sender, events) = unbounded();
        let tell = |time, event: Event| {
            noted(&event);
            // Whoever shows them is there for as long as this is.
            sender.unbounded_send((time, event)).unwrap_or_default();
        };
        let (hurry, hurried) = watch::channel(false);
        let look = async |app: &str, evidence: Evidence| {
            let mut hurried = hurried.clone();
            tokio::select! {
                looked = look(app, evidence.clone()) => looked,
                _ = hurried.wait_for(|hurry| *hurry) => evidence,
            }
        };
        let show = |time, event| updates(RunUpdate::Event(time, event));
        let mut narrated = pin!(attach_evidence(events, &plan, look, show));
        let run = async {
            match self {
                Engine::Local => local::run(setup, None, lease, signals, &tell, updates).await,
                Engine::Nodes(nodes) => nodes.run(setup, lease, signals, &tell, updates).await,
            }
        };
        let ended = tokio::select! {
            ended = Box::pin(run) => ended,
            () = &mut narrated => unreachable!("it ends with the sender, which is still here"),
        };
        sender.close_channel();
        // Whoever interrupts a run does not wait for a closer look at what has failed.
        hurry.send_replace(matches!(ended, Ok(Verdict::Interrupted(_))));
        if !matches!(ended, Ok(verdict) if verdict != Verdict::LeaseLost) {
            narrated.await;
            return ended;
        }
        // The last evidence may take longer than the Lease lasts.
        tokio::select! {
            () = &mut narrated => ended,
            error = lease.ended() => {
                narrated.await;
                Err(error.into())
            }
        }
    }
}
