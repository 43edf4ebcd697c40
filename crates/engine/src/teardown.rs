//! A teardown from beginning to end: what would create apps anew, the apps in reverse order, what
//! came with them, and at last what Tiphys itself has put there.
//!
//! Every stage finds out from the cluster what is left to do, so whoever runs it again goes on
//! where it stopped.

mod after;
mod before;
mod beside;
mod cascade;
mod error;
mod force;
mod generators;
mod inventory;
mod leftovers;
mod namespaces_and_crds;
mod preview;
#[cfg(test)]
mod tests;
mod volumes;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;
use tiphys_model::{Plan, PlannedApp, Platform, Role};
use tiphys_run::{Action, Clock, Event, Verdict};
use tiphys_state::graph::{DeployedGraph, GraphStore};
use tiphys_state::hold::Hold;
use tiphys_state::lease::Lease;
use tokio::sync::oneshot;

use crate::app_resources::AppResources;
use crate::engine::{Engine, Setup};
use crate::run_update::RunUpdate;
use crate::signals::Signals;
pub use error::TeardownError;
pub use force::ForcedFinalizer;
pub use inventory::Kept;
pub use leftovers::Leftover;
pub use leftovers::leftovers;
pub use preview::TeardownPreview;
use tiphys_argocd::application::Application;
use tiphys_argocd::{Applications, ArgoCdClient};
pub use tiphys_assess::ownership::Others;
use tiphys_cluster::Kinds;
use tiphys_cluster::agent::{self, Guard};
use tiphys_cluster::names;
use tiphys_cluster::{Cause, RequestError};
use tiphys_evidence::EvidenceCollector;
use tiphys_install::bootstrap;

/// What is to be removed.
pub struct Teardown {
    pub client: Client,
    pub platform: Arc<Platform>,
    /// What the plan was made of, if the cluster had it.
    pub graph: Option<DeployedGraph>,
    pub plan: Arc<Plan>,
    pub extent: Extent,
    pub engine: Engine,
    /// Who this is, for who finds the Lease taken.
    pub identity: String,
    pub options: TeardownOptions,
}

/// What goes with the apps of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All that belongs to the platform.
    Platform,
    /// Nothing. The apps stay held, in case something creates them anew.
    Apps,
    /// Nothing, and nobody will create them anew: they have left the platform file.
    Pruned,
}

/// How it is to be done.
#[derive(Debug, Clone, Default)]
pub struct TeardownOptions {
    /// Volumes stay, with what is in them.
    pub retain_volumes: bool,
    /// What `configure` has set up stays.
    pub keep_primitives: bool,
    /// What is left over is removed too, if somebody says yes.
    pub clean_leftovers: bool,
    /// What of others goes too. What is to be kept does not.
    pub including: Vec<Others>,
    /// Objects whose finalizers are removed by force.
    pub forced: Vec<ForcedFinalizer>,
}

/// How it ended.
#[derive(Debug)]
pub struct TeardownOutcome {
    pub verdict: Verdict,
    /// What is left in the cluster.
    pub leftovers: Vec<Leftover>,
    /// What stays, because somebody wants to keep it or it is somebody else's.
    pub kept: Vec<Kept>,
}

impl TeardownOutcome {
    fn empty(verdict: Verdict) -> Self {
        TeardownOutcome { verdict, leftovers: Vec::new(), kept: Vec::new() }
    }
}

impl Teardown {
    /// Tears down. Whatever the end, the Lease is given up if it is still ours.
    pub async fn run(self, updates: &dyn Fn(RunUpdate)) -> Result<TeardownOutcome, TeardownError> {
        let insisted = Signals::listen()?.insisted();
        tokio::select! {
            ended = self.run_to_the_end(updates) => ended,
            signal = insisted => Ok(TeardownOutcome::empty(Verdict::Interrupted(signal))),
        }
    }

    async fn run_to_the_end(
        self,
        updates: &dyn Fn(RunUpdate),
    ) -> Result<TeardownOutcome, TeardownError> {
        let mut signals = Signals::listen_in_run()?;
        let ended = TeardownOutcome::empty;
        let namespace = &self.platform.argocd.namespace;
        let note = |text: String| updates(RunUpdate::Note(text));
        if !self.is_there().await? {
            // The one before may have been stopped when only they were left.
            if let Some(verdict) = self.remove_primitives_at_last(&mut signals, &note).await? {
                return Ok(ended(verdict));
            }
            note(format!("nothing to do: found nothing of the platform `{}`", self.platform.name));
            return Ok(ended(Verdict::Succeeded));
        }
        let name = names::own(&self.platform);
        let acquired = Lease::acquire(
            self.client.clone(),
            namespace,
            &name,
            &self.identity,
            Action::Teardown.as_str(),
            |holder| note(format!("waiting for {holder}, which holds the platform")),
        );
        let lease = tokio::select! {
            lease = acquired => lease?,
            signal = signals.next() => return Ok(ended(Verdict::Interrupted(signal))),
        };
        let run = format!("{}-{}", self.plan.digest.short(), lease.epoch());
        let unguarded = agent::named(&self.client, agent::in_run(&run));
        let client = agent::guarded(&self.client, &run, lease.fence().guard());
        let named = Teardown { client, ..self };
        match Box::pin(named.tear_down(run, &lease, &mut signals, updates)).await {
            Ok(End::Removed { leftovers, kept }) => {
                lease.remove().await?;
                let named = Teardown { client: unguarded, ..named };
                let ended = named.remove_primitives_at_last(&mut signals, &note).await?;
                let verdict = ended.unwrap_or(Verdict::Succeeded);
                Ok(TeardownOutcome { verdict, leftovers, kept })
            }
            Ok(End::Stays(torn_down)) => {
                lease.release().await?;
                Ok(torn_down)
            }
            // What went wrong says more than what the Lease does.
            Err(error) => lease.release().await.map_err(TeardownError::from).and(Err(error)),
        }
    }

    /// What the Lease itself stands on goes when it is not needed any more. `None`: there was
    /// nothing of it.
    async fn remove_primitives_at_last(
        &self,
        signals: &mut Signals,
        note: &dyn Fn(String),
    ) -> Result<Option<Verdict>, TeardownError> {
        if self.extent != Extent::Platform || self.options.keep_primitives {
            return Ok(None);
        }
        tokio::select! {
            removed = bootstrap::remove(&self.client, &self.platform.name, note) => {
                Ok(removed?.then_some(Verdict::Succeeded))
            }
            signal = signals.next() => Ok(Some(Verdict::Interrupted(signal))),
        }
    }

    /// Whether there is anything to do.
    async fn is_there(&self) -> Result<bool, TeardownError> {
        if self.graph.is_some() {
            return Ok(true);
        }
        let argocd = &self.platform.argocd;
        let applications = self.applications().await?;
        let ours = |application: &Application| {
            application.spec.project == argocd.root_project || self.removes(application)
        };
        Ok(applications.iter().any(ours))
    }

    async fn tear_down(
        &self,
        run: String,
        lease: &Lease,
        signals: &mut Signals,
        updates: &dyn Fn(RunUpdate),
    ) -> Result<End, TeardownError> {
        let kinds = Kinds::discover(&self.client).await?;
        let forced = force::resolve(&kinds, &self.options.forced)?;
        let app_resources = Arc::new(AppResources::new(&self.client, &self.platform.argocd, kinds));
        let guard = lease.fence().guard();
        let context = Context { app_resources: app_resources.clone(), run, guard, updates };
        let forcing = async {
            let note = |text| context.note(text);
            force::remove_finalizers(app_resources.kinds(), forced, note).await?;
            std::future::pending().await
        };
        tokio::select! {
            end = self.stages(&context, lease, signals) => end,
            error = forcing => error,
        }
    }

    async fn stages(
        &self,
        context: &Context<'_>,
        lease: &Lease,
        signals: &mut Signals,
    ) -> Result<End, TeardownError> {
        let (argocd, graph) = tokio::select! {
            prepared = self.prepare(context) => match prepared {
                Ok(prepared) => prepared,
                Err(error) => return Err(lease.blame(error).await),
            },
            error = lease.ended() => return Err(error.into()),
            signal = signals.next() => return Ok(End::stays(Verdict::Interrupted(signal))),
        };
        let graph = RefCell::new(graph);
        let verdict = match argocd {
            Some(argocd) if !self.plan.apps.is_empty() => {
                self.remove_apps(context, argocd, &graph, lease, signals).await?
            }
            Some(_) | None => Verdict::Succeeded,
        };
        let graph = graph.into_inner();
        // Whoever took the platform over keeps the graph from now on.
        if verdict != Verdict::LeaseLost {
            self.store().write(&graph).await?;
        }
        if verdict != Verdict::Succeeded {
            return Ok(End::stays(verdict));
        }
        tokio::select! {
            end = self.finish(context, graph) => match end {
                Ok(end) => Ok(end),
                Err(error) => Err(lease.blame(error).await),
            },
            error = lease.ended() => Err(error.into()),
            signal = signals.next() => Ok(End::stays(Verdict::Interrupted(signal))),
        }
    }

    async fn remove_apps(
        &self,
        context: &Context<'_>,
        argocd: ArgoCdClient,
        graph: &RefCell<DeployedGraph>,
        lease: &Lease,
        signals: &mut Signals,
    ) -> Result<Verdict, TeardownError> {
        let engine = self.engine.name();
        (context.updates)(RunUpdate::Began { run: context.run.clone(), engine, revisions: None });
        let collector = EvidenceCollector::with(&self.client, &argocd);
        let setup = Setup {
            client: self.client.clone(),
            argocd,
            applications: Applications::of(&self.client, &self.platform.argocd),
            plan: self.plan.clone(),
            action: Action::Teardown,
            hold: Arc::new(self.hold(&context.run)),
            held: true,
            clock: Clock::default(),
            app_resources: Some(context.app_resources.clone()),
            prober: None,
            run: context.run.clone(),
        };
        let noted = |event: &Event| {
            if let Event::Removed { app } = event {
                graph.borrow_mut().removed(self.plan.app(*app).app.name.as_str());
            }
        };
        let look = async |app: &str, evidence| {
            context.app_resources.explain(app, collector.as_ref(), evidence).await
        };
        Ok(self.engine.run(setup, lease, signals, &noted, look, context.updates).await?)
    }

    async fn applications(&self) -> Result<Vec<Application>, RequestError> {
        let applications = Applications::of(&self.client, &self.platform.argocd);
        match applications.list(|_| true).await {
            // Without Argo CD there are none.
            Err(error) if error.cause() == Cause::NotFound => Ok(Vec::new()),
            listed => listed,
        }
    }

    fn store(&self) -> GraphStore {
        let namespace = &self.platform.argocd.namespace;
        GraphStore::new(&self.client, namespace, &self.platform.name)
    }

    fn hold(&self, run: &str) -> Hold {
        Hold::new(&self.client, &self.platform.argocd, run)
    }

    /// The apps that go.
    fn names(&self) -> BTreeSet<String> {
        let removed = self.plan.apps.iter().filter(|app| app.role == Role::Act);
        removed.map(|app| app.app.name.to_string()).collect()
    }

    /// Not what has the name of an app, and is in another project: it has moved to another platform.
    fn removes(&self, application: &Application) -> bool {
        let removed =
            |app: &PlannedApp| app.role == Role::Act && app.app.name.as_str() == application.name();
        self.platform.argocd.has_apps_in(&application.spec.project)
            && self.plan.apps.iter().any(removed)
    }
}

/// What all stages share.
struct Context<'a> {
    app_resources: Arc<AppResources>,
    run: String,
    guard: Guard,
    updates: &'a dyn Fn(RunUpdate),
}

impl Context<'_> {
    fn note(&self, text: String) {
        (self.updates)(RunUpdate::Note(text));
    }

    async fn ask(&self, leftovers: &[Leftover]) -> bool {
        let (answer, answered) = oneshot::channel();
        (self.updates)(RunUpdate::Ask { leftovers: leftovers.to_vec(), answer });
        // Whoever goes away without an answer has not said yes.
        answered.await.unwrap_or(false)
    }
}

/// What is left of the platform.
enum End {
    /// Nothing that a run would need the Lease for.
    Removed {
        leftovers: Vec<Leftover>,
        kept: Vec<Kept>,
    },
    Stays(TeardownOutcome),
}

impl End {
    fn stays(verdict: Verdict) -> Self {
        End::Stays(TeardownOutcome::empty(verdict))
    }
}
