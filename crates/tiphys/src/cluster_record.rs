//! The record of a run in the cluster, written beside the run by a thread of its own.

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tiphys_cluster::Access;
use tiphys_model::Platform;
use tiphys_run::EventLine;
use tiphys_state::records::{self, RecordStore, Unkept};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::failure::Failure;
use crate::runtime;

/// How long the program waits for the last of it.
const LAST: Duration = Duration::from_secs(5);

/// Takes the lines of one run.
pub(crate) struct ClusterRecord {
    lines: UnboundedSender<(EventLine, String)>,
    ended: Receiver<Option<String>>,
}

impl ClusterRecord {
    /// `by` is whoever holds the Lease.
    pub(crate) fn new(access: Access, platform: &Platform, by: String) -> Self {
        let (lines, taken) = unbounded_channel();
        let (tell, ended) = channel();
        let argocd = platform.argocd.namespace.clone();
        thread::spawn(move || {
            let kept = runtime::block_on(async {
                let store = RecordStore::new(&access.client().await?);
                Ok(records::keep(store, &argocd, &by, taken).await)
            });
            // Whoever has waited long enough is gone.
            tell.send(unkept(kept)).unwrap_or_default();
        });
        ClusterRecord { lines, ended }
    }

    /// Queues a line. Whether it was written is reported at the end.
    pub(crate) fn take(&self, line: &EventLine, text: &str) {
        self.lines.send((line.clone(), text.to_owned())).unwrap_or_default();
    }

    /// What was not kept, if anything.
    pub(crate) fn end(self) -> Option<String> {
        drop(self.lines);
        let late = || Some(told(&format!("no answer within {} s", LAST.as_secs())));
        self.ended.recv_timeout(LAST).unwrap_or_else(|_| late())
    }
}

fn unkept(kept: Result<Result<(), Unkept>, Failure>) -> Option<String> {
    match kept {
        // Without a client, the run tells that itself.
        Ok(Ok(())) | Err(_) => None,
        // A cluster that was never configured for it, or a platform that has been removed.
        Ok(Err(Unkept::Nowhere)) => {
            tracing::debug!("the run is not recorded: the namespace for it does not exist");
            None
        }
        Ok(Err(Unkept::Failed(error))) => Some(told(&error.to_string())),
    }
}

fn told(why: &str) -> String {
    format!("the record of this run in the cluster is incomplete: {why}")
}
