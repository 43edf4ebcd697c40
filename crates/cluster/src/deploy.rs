//! A deployment from beginning to end: Lease, hold, generators, run, and giving back.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use futures::channel::mpsc::unbounded;
use kube::{Api, Client};
use tiphys_model::operation::PlanTag;
use tiphys_model::{Plan, Platform, Role};
use tiphys_run::{Action, Event, Revisions, Time, Verdict};

use crate::act::Actor;
use crate::application::Application;
use crate::argocd::CallError;
use crate::connect::Place;
use crate::criteria::Prober;
use crate::definitions;
use crate::engine::Engine;
use crate::error::{ClusterError, Kind};
use crate::evidence;
use crate::generators::Generators;
use crate::graph::{DeployedGraph, GraphStore};
use crate::hold::Hold;
use crate::lease::{Lease, NotRenewed, RENEWAL};
use crate::names::{self, Purpose};
use crate::signals::Signals;

/// What is to be deployed.
pub struct Deploy {
    pub client: Client,
    pub place: Place,
    pub platform: Arc<Platform>,
    pub plan: Arc<Plan>,
    /// Who this is, for who finds the Lease taken.
    pub identity: String,
    /// Whether the platform file is the one at this revision.
    pub check: Check,
}

/// Asked once the revision is known, before anything is changed.
pub type Check = Box<dyn Fn(&Revisions) -> Result<(), ClusterError> + Send>;

/// What a deployment tells while it goes on.
#[derive(Debug)]
pub enum News {
    /// What it is doing before the run begins.
    Note(String),
    /// The run begins.
    Began {
        run: String,
        revisions: Revisions,
    },
    Event(Time, Event),
}

impl Deploy {
    /// Deploys. Whatever the end, the Lease is given up if it is still ours; what is not Done
    /// stays held.
    pub async fn run(self, news: &dyn Fn(News)) -> Result<Verdict, ClusterError> {
        let note = |text: String| news(News::Note(text));
        let mut signals = Signals::listen()?;
        let prepared = tokio::select! {
            prepared = self.prepare(&note) => prepared?,
            signal = signals.next() => return Ok(Verdict::Interrupted(signal)),
        };
        let (argocd, mut lease) = prepared;
        let outcome = self.hold_and_run(argocd, &mut lease, &mut signals, news).await;
        match lease.release().await {
            Ok(()) => outcome,
            // The outcome says more.
            Err(error) => outcome.and(Err(error)),
        }
    }

    async fn prepare(&self, note: &impl Fn(String)) -> Result<(Actor, Lease), ClusterError> {
        let argocd = Actor::new(&self.client, &self.platform, Purpose::Deploy).await?;
        let namespace = &self.platform.argocd.namespace;
        definitions::verify(&self.client, namespace).await?;
        let lease = Lease::acquire(
            self.client.clone(),
            namespace,
            &names::own(&self.platform),
            &self.identity,
            Action::Deploy.as_str(),
            |holder| note(format!("waiting for {holder}, which holds the platform")),
        )
        .await?;
        Ok((argocd, lease))
    }

    async fn hold_and_run(
        &self,
        argocd: Actor,
        lease: &mut Lease,
        signals: &mut Signals,
        news: &dyn Fn(News),
    ) -> Result<Verdict, ClusterError> {
        let run = format!("{}-{}", self.plan.digest.short(), lease.epoch());
        let namespace = &self.platform.argocd.namespace;
        let project = &self.platform.argocd.project;
        let hold = Arc::new(Hold::new(self.client.clone(), namespace, project, &run));
        let revisions = tokio::select! {
            revisions = self.bring_in(&argocd, &hold, lease.epoch(), news) => revisions?,
            error = keep(lease) => return Err(error),
            signal = signals.next() => return Ok(Verdict::Interrupted(signal)),
        };
        let store = GraphStore::new(&self.client, &self.platform);
        let graph = RefCell::new(self.note_plan(&store).await?);
        news(News::Began { run: run.clone(), revisions });
        let witness = argocd.witness(&self.client);
        let engine = Engine {
            client: self.client.clone(),
            argocd,
            prober: Prober::new(self.client.clone(), self.place),
            namespace: namespace.clone(),
            plan: self.plan.clone(),
            action: Action::Deploy,
            hold,
            held: true,
            run,
        };
        let (sender, events) = unbounded();
        let run = async {
            let sender = sender;
            let events = |time, event: Event| {
                if let Event::Done { app, .. } = &event {
                    graph.borrow_mut().done(&self.plan, *app);
                }
                // Whoever shows them is there for as long as this is.
                sender.unbounded_send((time, event)).unwrap_or_default();
            };
            engine.run(lease, signals, &events).await
        };
        let look = async |app: &str, evidence| match &witness {
            Some(witness) => witness.enrich(app, project, evidence).await,
            None => evidence,
        };
        let show = |time, event| news(News::Event(time, event));
        let (verdict, ()) = tokio::join!(run, evidence::narrate(events, &self.plan, look, show));
        let verdict = verdict?;
        // Whoever took the platform over keeps the graph from now on.
        if verdict != Verdict::LeaseLost {
            store.write(&graph.into_inner()).await?;
        }
        Ok(verdict)
    }

    /// Keeps what this run sets out to deploy, so that a teardown finds it even if the run is
    /// killed.
    async fn note_plan(&self, store: &GraphStore) -> Result<DeployedGraph, ClusterError> {
        let mut graph = match store.read().await? {
            Some(graph) => graph,
            None => DeployedGraph { before: store.look_before().await, ..Default::default() },
        };
        graph.plan(&self.plan);
        store.write(&graph).await?;
        Ok(graph)
    }

    /// Holds the apps, syncs the generators, and waits for the Applications.
    async fn bring_in(
        &self,
        argocd: &Actor,
        hold: &Hold,
        epoch: u64,
        news: &dyn Fn(News),
    ) -> Result<Revisions, ClusterError> {
        let note = |text: String| news(News::Note(text));
        let deployed = self.plan.apps.iter().filter(|app| app.role == Role::Deploy);
        let deployed: BTreeSet<String> = deployed.map(|app| app.app.name.to_string()).collect();
        let applications: Api<Application> =
            Api::namespaced(self.client.clone(), &self.platform.argocd.namespace);
        let project = &self.platform.argocd.project;
        let generators = Generators {
            platform: &self.platform,
            argocd,
            applications: &applications,
            tag: PlanTag::of(&self.plan.digest),
            epoch,
        };
        (self.check)(&generators.newest().await?)?;
        note(format!("holding {} apps in the project `{project}`", deployed.len()));
        let stop = async |app: &str| match argocd.terminate(app, project).await {
            Err(error @ CallError::Unanswered { .. }) => Err(ClusterError::new(
                Kind::Unreachable,
                format!("the automated sync of `{app}` cannot be stopped"),
                error.to_string(),
            )),
            // Refused: it has ended by itself.
            Ok(()) | Err(CallError::Refused { .. }) => Ok(()),
        };
        hold.acquire(&deployed, &applications, stop).await?;
        note("syncing the root app".to_owned());
        let revisions = generators.sync().await?;
        let all = self.plan.apps.iter().map(|app| app.app.name.to_string()).collect();
        generators.await_children(&all).await?;
        Ok(revisions)
    }
}

/// Renews a Lease until that fails for good.
async fn keep(lease: &mut Lease) -> ClusterError {
    loop {
        tokio::time::sleep(RENEWAL).await;
        match lease.renew().await {
            Err(NotRenewed::Lost { holder }) => {
                let what = "the platform's Lease was lost before the run began";
                return ClusterError::new(Kind::Conflict, what, format!("{holder} holds it now"));
            }
            Err(NotRenewed::Unanswered(error)) if lease.has_run_out() => {
                return error;
            }
            Ok(()) | Err(NotRenewed::Unanswered(_)) => {}
        }
    }
}
