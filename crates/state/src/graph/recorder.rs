//! The deployed graph of a run: what becomes Done is kept in the cluster while the run goes on, in
//! batches and beside it, so that a kill loses the last seconds only.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use futures::FutureExt;
use tiphys_cluster::RequestError;
use tiphys_model::{AppIx, Plan};
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use super::{Containers, DeployedGraph, GraphError, GraphStore};
use crate::lease::Fence;

/// What changes within this time is written at once.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long it looks for what came with apps before it writes without that.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the end of a run waits for a write that is under way.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the last write is tried, and the pause between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

pub struct GraphRecorder {
    store: GraphStore,
    containers: Containers,
    graph: RefCell<DeployedGraph>,
    /// Apps that are Done, and whose namespaces and CRDs are not noted yet.
    unnoted: RefCell<BTreeSet<String>>,
    changed: Notify,
}

impl GraphRecorder {
    /// `graph` is what the store has.
    #[must_use]
    pub fn new(store: GraphStore, containers: Containers, graph: DeployedGraph) -> Self {
        let (graph, unnoted) = (RefCell::new(graph), RefCell::default());
        GraphRecorder { store, containers, graph, unnoted, changed: Notify::new() }
    }

    pub fn done(&self, plan: &Plan, app: AppIx) {
        self.unnoted.borrow_mut().insert(plan.app(app).app.name.to_string());
        self.change(|graph| graph.done(plan, app));
    }

    /// All apps of the platform are Done at this revision of the root app.
    pub fn all_done(&self, revision: String) {
        self.change(|graph| graph.deployed = Some(revision));
    }

    fn change(&self, change: impl FnOnce(&mut DeployedGraph)) {
        change(&mut self.graph.borrow_mut());
        self.changed.notify_one();
    }

    /// Waits for the run, and writes meanwhile what it changes.
    pub async fn during<T>(&self, fence: &Fence, run: impl Future<Output = T>) -> T {
        let (running, ended) = oneshot::channel();
        let run = async {
            let outcome = run.await;
            drop::<oneshot::Sender<()>>(running);
            outcome
        };
        let (outcome, ()) = futures::join!(run, self.keep(fence, ended));
        outcome
    }

    /// Writes the last state. One odd answer is not the end: without this write, the next run
    /// would not know how this one went.
    pub async fn finish(self) -> Result<(), GraphError> {
        let noted = self.note_came().await;
        let graph = self.graph.into_inner();
        for _ in 1..TRIES {
            match self.store.write(&graph).await {
                Err(GraphError::Request(_)) => sleep(PAUSE).await,
                Err(error) => return Err(error),
                Ok(()) => return Ok(noted?),
            }
        }
        self.store.write(&graph).await?;
        Ok(noted?)
    }

    /// Notes which namespaces and CRDs came with the apps that are Done.
    async fn note_came(&self) -> Result<(), RequestError> {
        let apps = self.unnoted.borrow().clone();
        let brought = self.containers.brought_by(&apps).await?;
        if !self.graph.borrow().unnoted(&brought).is_empty() {
            // Without the right to list them, a teardown cannot do more than go by their names.
            let there = self.containers.list().await?.unwrap_or_default();
            self.graph.borrow_mut().note_came(&brought, &there);
        }
        self.unnoted.borrow_mut().retain(|app| !apps.contains(app));
        Ok(())
    }

    /// One write at a time, none of which is given up halfway when the run ends: it could arrive
    /// after the last one.
    async fn keep(&self, fence: &Fence, mut ended: oneshot::Receiver<()>) {
        loop {
            let due = async {
                self.changed.notified().await;
                sleep(INTERVAL).await;
            };
            tokio::select! {
                () = due => {}
                _ = &mut ended => return,
            }
            let noted = timeout(READ_TIMEOUT, self.note_came()).await;
            if !fence.allows(WRITE_TIMEOUT) {
                continue;
            }
            // What changed since is part of this write.
            self.changed.notified().now_or_never();
            let graph = self.graph.borrow().clone();
            let written = timeout(WRITE_TIMEOUT, self.store.write(&graph)).await;
            if !matches!((noted, written), (Ok(Ok(())), Ok(Ok(())))) {
                // The next write has it too. If none succeeds, the last one says why.
                self.changed.notify_one();
            }
        }
    }
}
