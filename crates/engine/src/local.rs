//! The local engine: the driver in this process, one watch, and requests to Argo CD.

mod announce;
mod closer;
mod drive;
mod effects;
mod pace;
mod thaw;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use futures::channel::mpsc::unbounded;
use kube::{Api, Client};
use tiphys_model::{AppIx, Plan};
use tiphys_run::{Action, Driver, Event, Evidence, Machine, Time, Verdict};
use tokio::sync::mpsc::unbounded_channel;

use crate::belongings::Belongings;
use crate::hold::Hold;
use crate::lease::Lease;
use crate::news::News;
use crate::signals::Signals;
use announce::Announcer;
use closer::{Closer, Eyes};
use drive::Local;
use effects::Hands;
use tiphys_argocd::Actor;
use tiphys_argocd::watch;
use tiphys_cluster::ClusterError;
use tiphys_evidence::criteria::Prober;
use tiphys_evidence::{Witness, narrate};

/// What a run works with.
pub struct Engine {
    pub client: Client,
    pub argocd: Actor,
    pub prober: Option<Prober>,
    pub namespace: String,
    pub plan: Arc<Plan>,
    pub action: Action,
    pub hold: Arc<Hold>,
    pub held: bool,
    /// What has to be gone with an app, in a teardown.
    pub belongings: Option<Arc<Belongings>>,
    /// How this run is called.
    pub run: String,
}

impl Engine {
    /// Runs to the end. The Lease is renewed meanwhile, and still held afterwards if it was not
    /// lost. An error means that the run could not go on; what it had asked for goes on without it.
    pub async fn run(
        self,
        lease: &mut Lease,
        signals: &mut Signals,
        events: &dyn Fn(Time, Event),
        news: &dyn Fn(News),
    ) -> Result<Verdict, ClusterError> {
        let names: BTreeMap<String, AppIx> = self
            .plan
            .graph
            .apps()
            .map(|app| (self.plan.app(app).app.name.as_str().to_owned(), app))
            .collect();
        let watched: BTreeSet<String> = names.keys().cloned().collect();
        let seen = watch::applications(self.client.clone(), &self.namespace, watched);
        let (returned, inbox) = unbounded_channel();
        let announcer = Announcer::start(self.client.clone(), self.run);
        let eyes = Eyes::new(self.prober, Witness::with(&self.client, &self.argocd));
        let closer = Closer::new(self.plan.clone(), self.action, eyes.sees());
        let hands = Hands {
            eyes,
            applications: Api::namespaced(self.client, &self.namespace),
            argocd: self.argocd,
            hold: self.hold,
            fence: lease.fence(),
            pace: pace::Pace::new(),
            thaw: thaw::Thaw::default(),
            known: std::sync::Mutex::default(),
            belongings: self.belongings,
        };
        let machine = Machine::new(self.plan.clone(), self.action, lease.epoch());
        let local = Local {
            driver: Driver::new(machine),
            began: Instant::now(),
            first: Some(vec![None; names.len()]),
            first_looks: None,
            closer,
            names,
            hands: Arc::new(hands),
            returned,
            announcer,
            events,
            news,
            held: self.held,
        };
        local.drive(seen, inbox, lease, signals).await
    }

    /// Runs to the end, and tells what happens in the order in which it does, with evidence for
    /// what failed. `noted` hears of it at once.
    pub(crate) async fn run_and_tell(
        self,
        lease: &mut Lease,
        signals: &mut Signals,
        noted: &dyn Fn(&Event),
        look: impl AsyncFn(&str, Evidence) -> Evidence,
        news: &dyn Fn(News),
    ) -> Result<Verdict, ClusterError> {
        let plan = self.plan.clone();
        let (sender, events) = unbounded();
        let run = async {
            let sender = sender;
            let events = |time, event: Event| {
                noted(&event);
                // Whoever shows them is there for as long as this is.
                sender.unbounded_send((time, event)).unwrap_or_default();
            };
            self.run(lease, signals, &events, news).await
        };
        let show = |time, event| news(News::Event(time, event));
        let (verdict, ()) = tokio::join!(run, narrate(events, &plan, look, show));
        verdict
    }
}
