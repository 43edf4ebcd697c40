//! The deployed graph of a run: what becomes Done is kept in the cluster while the run goes on, in
//! batches and beside it, so that a kill loses the last seconds only.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use super::{DeployedGraph, GraphError, GraphStore};
use crate::lease::Fence;

/// What changes within this time is written at once.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long the end of a run waits for a write that is under way.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the last write is tried, and the pause between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct GraphRecorder {
    store: GraphStore,
    graph: RefCell<DeployedGraph>,
    changed: Notify,
}

impl GraphRecorder {
    /// `graph` is what the store has.
    pub(crate) fn new(store: GraphStore, graph: DeployedGraph) -> Self {
        GraphRecorder { store, graph: RefCell::new(graph), changed: Notify::new() }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut DeployedGraph)) {
        change(&mut self.graph.borrow_mut());
        self.changed.notify_one();
    }

    /// Waits for the run, and writes meanwhile what it changes.
    pub(crate) async fn during<T>(&self, fence: &Fence, run: impl Future<Output = T>) -> T {
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
    pub(crate) async fn finish(self) -> Result<(), GraphError> {
        let graph = self.graph.into_inner();
        for _ in 1..TRIES {
            match self.store.write(&graph).await {
                Err(GraphError::Request(_)) => sleep(PAUSE).await,
                written => return written,
            }
        }
        self.store.write(&graph).await
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
            if !fence.allows(WRITE_TIMEOUT) {
                continue;
            }
            // What changed since is part of this write.
            self.changed.notified().now_or_never();
            let graph = self.graph.borrow().clone();
            let written = timeout(WRITE_TIMEOUT, self.store.write(&graph)).await;
            if !matches!(written, Ok(Ok(()))) {
                // The next write has it too. If none succeeds, the last one says why.
                self.changed.notify_one();
            }
        }
    }
}
