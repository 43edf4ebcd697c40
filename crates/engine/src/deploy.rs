//! A deployment from beginning to end: Lease, hold, generators, run, and giving back.

mod criteria_rights;
mod other_clusters;
mod outcome;
mod outside;
#[cfg(test)]
mod tests;
mod unattended;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;

use kube::Client;
use tiphys_model::operation::PlanTag;
use tiphys_model::platform::ArgoCdAccess;
use tiphys_model::{Exit, Explain, Explanation, Plan, Platform, Role, Scope};
use tiphys_run::{Action, Clock, Event, Revisions, Signal, Stamp, Verdict};
use tiphys_state::claim::{self, ClaimError};
use tiphys_state::graph::{Containers, DeployedGraph, GraphError, GraphRecorder, GraphStore};
use tiphys_state::hold::{Hold, HoldError};
use tiphys_state::lease::{Lease, LeaseError};

use crate::engine::{Engine, RunError, Setup};
use crate::frozen::{self, FrozenOperations};
use crate::generators::{self, GeneratorError, Generators};
use crate::root_source::{PlatformFileError, RootSource};
use crate::run_update::RunUpdate;
use crate::signals::{SignalError, Signals};
use criteria_rights::CriteriaRightsError;
use other_clusters::CriteriaOnOtherClusters;
use outcome::Outcome;
use outside::Outside;
use tiphys_argocd::application::Application;
use tiphys_argocd::application_set;
use tiphys_argocd::credentials::CredentialsError;
use tiphys_argocd::rest::CallError;
use tiphys_argocd::{AppAddress, Applications, ArgoCdClient};
use tiphys_assess::argocd_version::Support;
use tiphys_cluster::Place;
use tiphys_cluster::RequestError;
use tiphys_cluster::agent;
use tiphys_cluster::names::{self, Purpose};
use tiphys_evidence::EvidenceCollector;
use tiphys_evidence::criteria::Prober;
use tiphys_install::definitions::{self, DefinitionsError};

/// What is to be deployed.
pub struct Deploy {
    pub client: Client,
    pub place: Place,
    pub platform: Arc<Platform>,
    pub plan: Arc<Plan>,
    pub engine: Engine,
    /// Who this is, for who finds the Lease taken.
    pub identity: String,
    /// Whether the platform file is the one that Git has, if that matters.
    pub check: Option<Check>,
    /// No person has asked for it.
    pub unattended: bool,
}

/// What everybody can see is what should be deployed, but nobody can tell.
const UNCOMPARED: &str = "the platform file is not compared with Git, because the root app does not \
    contain it: add it with `tiphys init --root-app`";

/// Asked once it is known what Git has, before anything is changed.
pub type Check = Box<dyn Fn(&RootSource) -> Result<(), Refused> + Send>;
/// Why the caller does not want this revision.
pub type Refused = Box<dyn Explain + Send + Sync>;

/// Why a deployment could not begin, or not go on.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum DeployError {
    Refused(Refused),
    Claim(#[from] ClaimError),
    Signals(#[from] SignalError),
    Credentials(#[from] CredentialsError),
    Definitions(#[from] DefinitionsError),
    Lease(#[from] LeaseError),
    Hold(#[from] HoldError),
    Generators(#[from] GeneratorError),
    Graph(#[from] GraphError),
    PlatformFile(#[from] PlatformFileError),
    Run(#[from] RunError),
    OtherClusters(#[from] CriteriaOnOtherClusters),
    CriteriaRights(#[from] CriteriaRightsError),
    Request(#[from] RequestError),
}

impl Explain for DeployError {
    fn explain(&self) -> Explanation {
        match self {
            DeployError::Refused(error) => error.explain(),
            DeployError::Claim(error) => error.explain(),
            DeployError::Signals(error) => error.explain(),
            DeployError::Credentials(error) => error.explain(),
            DeployError::Definitions(error) => error.explain(),
            DeployError::Lease(error) => error.explain(),
            DeployError::Hold(error) => error.explain(),
            DeployError::Generators(error) => error.explain(),
            DeployError::Graph(error) => error.explain(),
            DeployError::PlatformFile(error) => error.explain(),
            DeployError::Run(error) => error.explain(),
            DeployError::OtherClusters(error) => error.explain(),
            DeployError::CriteriaRights(error) => error.explain(),
            DeployError::Request(error) => error.explain(),
        }
    }
}

impl Deploy {
    /// Deploys. Whatever the end, the Lease is given up if it is still ours; what is not Done
    /// stays held.
    pub async fn run(self, updates: &dyn Fn(RunUpdate)) -> Result<Verdict, DeployError> {
        let insisted = Signals::listen()?.insisted();
        tokio::select! {
            ended = self.run_to_the_end(updates) => ended,
            signal = insisted => Ok(Verdict::Interrupted(signal)),
        }
    }

    async fn run_to_the_end(self, updates: &dyn Fn(RunUpdate)) -> Result<Verdict, DeployError> {
        let note = |text: String| updates(RunUpdate::Note(text));
        let mut signals = Signals::listen_in_run()?;
        let prepared = tokio::select! {
            prepared = self.prepare(&note) => prepared?,
            signal = signals.next() => return Ok(Verdict::Interrupted(signal)),
        };
        let Prepared { argocd, lease, settled } = prepared;
        if self.unattended
            && let Some(refusal) = self.refused_under(&lease).await?
        {
            note(refusal);
            lease.release().await?;
            return Ok(Verdict::Succeeded);
        }
        let run = format!("{}-{}", self.plan.digest.short(), lease.epoch());
        let guard = lease.fence().guard();
        let client = agent::guarded(&self.client, &run, guard.clone());
        let argocd = argocd.in_run(&client, &self.platform, &run, guard);
        let deploy = Deploy { client, ..self };
        let run = Run { name: run, argocd, settled };
        let outcome = Box::pin(deploy.hold_and_run(run, &lease, &mut signals, updates)).await;
        match lease.release().await {
            Ok(()) => outcome,
            // The outcome says more.
            Err(error) => outcome.and(Err(error.into())),
        }
    }

    async fn refused_under(&self, lease: &Lease) -> Result<Option<String>, DeployError> {
        tokio::select! {
            refusal = unattended::refusal(&self.client, &self.platform) => refusal,
            error = lease.ended() => Err(error.into()),
        }
    }

    async fn prepare(&self, note: &impl Fn(String)) -> Result<Prepared, DeployError> {
        let argocd = ArgoCdClient::new(&self.client, &self.platform, Purpose::Deploy).await?;
        let namespace = &self.platform.argocd.namespace;
        let settled = definitions::verify(&self.client, namespace).await?;
        let settled = settled.map(|changed| Stamp(changed.0.as_second()));
        let lease = Lease::acquire(
            self.client.clone(),
            namespace,
            &names::own(&self.platform),
            &self.identity,
            Action::Deploy.as_str(),
            |holder| note(format!("waiting for {holder}, which holds the platform")),
        )
        .await?;
        Ok(Prepared { argocd, lease, settled })
    }

    async fn hold_and_run(
        &self,
        run: Run,
        lease: &Lease,
        signals: &mut Signals,
        updates: &dyn Fn(RunUpdate),
    ) -> Result<Verdict, DeployError> {
        let hold = Arc::new(Hold::new(&self.client, &self.platform.argocd, &run.name));
        let applications = self.applications();
        let outside = Outside::of(&self.plan, &self.platform, hold, applications);
        let outside = match under_lease(lease, signals, outside).await? {
            ControlFlow::Continue(outside) => outside,
            ControlFlow::Break(signal) => return Ok(Verdict::Interrupted(signal)),
        };
        let ended = Box::pin(self.run_held(run, &outside, lease, signals, updates)).await;
        let gives_back = match &ended {
            // Whoever took the platform over holds what it wants to.
            Ok(Verdict::LeaseLost) | Err(DeployError::Lease(_)) => false,
            Ok(_) => true,
            Err(error) => error.explain().exit != Exit::Unreachable,
        };
        if !gives_back {
            return ended;
        }
        let succeeded = matches!(ended, Ok(Verdict::Succeeded));
        let let_go = tokio::select! {
            let_go = outside.let_go(succeeded) => let_go,
            error = lease.ended() => Err(error.into()),
            signal = signals.next() => return ended.and(Ok(Verdict::Interrupted(signal))),
        };
        match let_go {
            Ok(stay) => {
                if !stay.is_empty() {
                    updates(RunUpdate::Note(outside::stays_held(&stay)));
                }
                ended
            }
            // The end of the run says more.
            Err(error) => ended.and(Err(error)),
        }
    }

    async fn run_held(
        &self,
        Run { name, argocd, settled }: Run,
        outside: &Outside,
        lease: &Lease,
        signals: &mut Signals,
        updates: &dyn Fn(RunUpdate),
    ) -> Result<Verdict, DeployError> {
        let namespace = &self.platform.argocd.namespace;
        let brought = self.bring_in(&argocd, outside, lease.epoch(), updates);
        let Brought { revisions, addresses, begun } =
            match under_lease(lease, signals, brought).await? {
                ControlFlow::Continue(brought) => brought,
                ControlFlow::Break(signal) => return Ok(Verdict::Interrupted(signal)),
            };
        let store = GraphStore::new(&self.client, namespace, &self.platform.name);
        let containers = Containers::new(&self.client, self.applications());
        let revision = revisions.as_ref().map(Revisions::to_string);
        let planned = self.note_plan(&store, &containers, revision.as_deref());
        let planned = match under_lease(lease, signals, planned).await? {
            ControlFlow::Continue(planned) => planned,
            ControlFlow::Break(signal) => return Ok(Verdict::Interrupted(signal)),
        };
        let graph = GraphRecorder::new(store, containers, planned);
        let engine = self.engine.name();
        updates(RunUpdate::Began { run: name.clone(), engine, revisions });
        let collector = EvidenceCollector::with(&self.client, &argocd);
        let setup = Setup {
            client: self.client.clone(),
            argocd,
            prober: Some(Prober::new(self.client.clone(), self.place)),
            applications: self.applications(),
            plan: self.plan.clone(),
            action: Action::Deploy,
            hold: outside.hold.clone(),
            held: true,
            clock: Clock { settled, begun },
            app_resources: None,
            run: name.clone(),
        };
        let outcome = RefCell::new(Outcome::default());
        let noted = |event: &Event| {
            outcome.borrow_mut().note(&self.plan, event);
            if let Event::Done { app, .. } = event {
                graph.done(&self.plan, *app);
            }
        };
        let look = async |app: &str, evidence| match &collector {
            Some(collector) => {
                let unknown = || AppAddress::own(app, "");
                let address = addresses.get(app).cloned().unwrap_or_else(unknown);
                collector.gather(&address, evidence).await.evidence
            }
            None => evidence,
        };
        let fence = lease.fence();
        let run = Box::pin(self.engine.run(setup, lease, signals, &noted, look, updates));
        let verdict = graph.during(&fence, run).await?;
        if let (Verdict::Succeeded, Scope::Platform, Some(revision)) =
            (verdict, &self.plan.scope, &revision)
        {
            graph.all_done(revision.clone());
        }
        // Whoever took the platform over keeps the graph from now on.
        if verdict != Verdict::LeaseLost {
            graph.finish().await?;
        }
        if let Some(revision) = revision {
            let outcome = outcome.into_inner();
            outcome.publish(&self.client, &self.platform, &name, verdict, &revision).await;
        }
        Ok(verdict)
    }

    /// Keeps what this run sets out to deploy, and what is there before it begins, so that a
    /// teardown finds it even if the run is killed.
    async fn note_plan(
        &self,
        store: &GraphStore,
        containers: &Containers,
        revision: Option<&str>,
    ) -> Result<DeployedGraph, DeployError> {
        let (found, there) = (store.read().await?, containers.list().await?);
        let mut graph = match found {
            Some(mut graph) => {
                if let Some(there) = there {
                    let brought = containers.brought_before(&graph).await?;
                    graph.note_there(&there, &brought);
                }
                graph
            }
            None => DeployedGraph::new(&self.platform, there.map(|there| there.names())),
        };
        graph.plan(&self.platform, &self.plan, revision);
        store.write(&graph).await?;
        Ok(graph)
    }

    /// Holds the apps, syncs the generators, and waits for the Applications.
    async fn bring_in(
        &self,
        argocd: &ArgoCdClient,
        outside: &Outside,
        epoch: u64,
        updates: &dyn Fn(RunUpdate),
    ) -> Result<Brought, DeployError> {
        let note = |text: String| updates(RunUpdate::Note(text));
        let deployed = self.plan.apps.iter().filter(|app| app.role == Role::Act);
        let deployed: BTreeSet<String> = deployed.map(|app| app.app.name.to_string()).collect();
        let held: BTreeSet<String> = deployed.iter().cloned().chain(outside.names()).collect();
        let all: BTreeSet<String> =
            self.plan.apps.iter().map(|app| app.app.name.to_string()).collect();
        let applications = self.applications();
        let has_root_app = self.platform.argocd.has_root_app;
        let generators = Generators {
            platform: &self.platform,
            argocd,
            applications: &applications,
            sets: &application_set::api(&self.client, &self.platform.argocd.namespace),
            hold: &outside.hold,
            tag: PlanTag::of(&self.plan.digest),
            epoch,
            note: &note,
            done: RefCell::default(),
            begun: Cell::default(),
        };
        // Who cannot be asked for its version cannot be asked for anything else either.
        if let Ok(Some(said)) = argocd.version().await
            && let Some(warning) = Support::of(&said).warning()
        {
            updates(RunUpdate::Warning(warning));
        }
        claim::refuse_projects_of_others(&self.client, &self.platform).await?;
        claim::refuse_namesakes(&self.client, &self.platform).await?;
        if has_root_app {
            let revisions = generators.newest().await?;
            if let Some(check) = &self.check {
                let source = generators.root_source(revisions).await?;
                check(&source).map_err(DeployError::Refused)?;
                if source.files.is_none() && self.platform.argocd.access == ArgoCdAccess::Api {
                    updates(RunUpdate::Warning(UNCOMPARED.to_owned()));
                }
            }
        }
        if self.plan.apps.iter().any(|app| !app.app.health.is_empty()) {
            let there = applications.list(|a| all.contains(a.name())).await?;
            other_clusters::refuse_criteria(&self.plan, &there)?;
        }
        for (denied, apps) in outside.hold.denied_now(&deployed, &applications).await? {
            let apps = apps.join("`, `");
            updates(RunUpdate::Warning(format!("cannot sync `{apps}` now: {denied}")));
        }
        let ending = FrozenOperations { hold: &outside.hold, applications: &applications, argocd };
        // Generators may be among what an earlier run has held.
        for app in ending.end(&(&held | &outside.hold.held().await?)).await? {
            note(format!(
                "stopped the automated sync of `{app}`, which an earlier hold had frozen"
            ));
        }
        note(format!("holding {} apps in {}", held.len(), outside.hold.projects()));
        let terminate = async |app: &str| {
            let found = applications.get(app).await;
            let found =
                found.map_err(|error| CallError::Unanswered { message: error.to_string() })?;
            frozen::stop(argocd, &found.address()).await
        };
        outside.hold.hold_when_idle(&held, &applications, terminate).await?;
        note(if has_root_app {
            "syncing the root app".to_owned()
        } else {
            "no root app: Tiphys does not create the Applications or keep them at one revision"
                .to_owned()
        });
        let generate = async {
            let revisions = if has_root_app { Some(generators.sync().await?) } else { None };
            let applications = generators.await_children(&all).await?;
            Ok::<_, GeneratorError>((revisions, applications))
        };
        let warn = |warning| updates(RunUpdate::Warning(warning));
        let (revisions, applications) = tokio::select! {
            generated = generate => generated?,
            error = outside.hold.watch(&warn) => return Err(error.into()),
        };
        // The generators may just have created one.
        claim::refuse_namesakes(&self.client, &self.platform).await?;
        other_clusters::refuse_criteria(&self.plan, &applications)?;
        criteria_rights::refuse_unreadable(&self.client, &self.plan, &applications).await?;
        if let Some(revisions) = &revisions {
            for warning in generators::unpinned(&self.platform, &applications, revisions) {
                updates(RunUpdate::Warning(warning));
            }
        }
        let address = |one: &Application| (one.name().to_owned(), one.address());
        let addresses = applications.iter().map(address).collect();
        Ok(Brought { revisions, addresses, begun: generators.begun.get() })
    }

    fn applications(&self) -> Applications {
        Applications::of(&self.client, &self.platform.argocd)
    }
}

/// What is there before anything is changed.
struct Prepared {
    argocd: ArgoCdClient,
    lease: Lease,
    /// When Argo CD's settings changed last, if that is known.
    settled: Option<Stamp>,
}

/// One run: its name, and what it asks.
struct Run {
    name: String,
    argocd: ArgoCdClient,
    settled: Option<Stamp>,
}

/// What a run begins with.
struct Brought {
    /// Of the root app.
    revisions: Option<Revisions>,
    /// By app.
    addresses: BTreeMap<String, AppAddress>,
    /// When Argo CD first compared a generator in this run, by its own clock.
    begun: Option<Stamp>,
}

/// Does a part of the preparation, unless the Lease ends or a signal comes first.
async fn under_lease<T>(
    lease: &Lease,
    signals: &mut Signals,
    work: impl Future<Output = Result<T, DeployError>>,
) -> Result<ControlFlow<Signal, T>, DeployError> {
    let failed = tokio::select! {
        done = work => match done {
            Ok(done) => return Ok(ControlFlow::Continue(done)),
            Err(error) => error,
        },
        error = lease.ended() => return Err(error.into()),
        signal = signals.next() => return Ok(ControlFlow::Break(signal)),
    };
    Err(lease.blame(failed).await)
}
