//! Looking after the hold during a run.
//!
//! The project is read every two seconds instead of being watched: reading and patching this one
//! object are all the rights that a run has on it, and a look that waits for our own write and then
//! reads what there is cannot take that write for somebody else's.

use std::time::Duration;

use futures::FutureExt;
use futures::future::select_all;
use tiphys_cluster::Cause;
use tiphys_run::Time;
use tokio::time::Instant;

use super::decide::Change;
use super::project::ProjectHold;
use super::wanted::{ForeignChange, LIMIT};
use super::{Hold, HoldError};
use crate::tolerance::{Decision, Tolerance};

const POLL: Duration = Duration::from_secs(2);
/// Looks that fail are repeated before this, however long each takes.
const LONGEST_GAP: Duration = Duration::from_secs(60);

impl Hold {
    /// Sets the hold again whenever others have removed or changed it, and warns of it. Returns when
    /// that is of no use.
    pub async fn watch(&self, warn: &dyn Fn(String)) -> HoldError {
        let projects = self.projects.iter().map(|project| project.watch(warn).boxed_local());
        let root = self.root.iter().map(|root| root.watch_once_held(warn).boxed_local());
        select_all(projects.chain(root)).await.0
    }

    /// What has not been told yet.
    pub fn warnings(&self) -> Vec<String> {
        self.all().flat_map(ProjectHold::warnings).collect()
    }
}

impl ProjectHold {
    /// Hardly ever is a generator held there.
    async fn watch_once_held(&self, warn: &dyn Fn(String)) -> HoldError {
        while !self.wanted.lock().await.has_begun() {
            tokio::time::sleep(POLL).await;
        }
        self.watch(warn).await
    }

    async fn watch(&self, warn: &dyn Fn(String)) -> HoldError {
        let began = Instant::now();
        let mut tolerance = Tolerance::new(LONGEST_GAP);
        loop {
            let looked = self.look_after().await;
            self.warnings().into_iter().for_each(warn);
            let outcome = looked.as_ref().copied().map_err(HoldError::cause);
            let decision = tolerance.decide(Time::START + began.elapsed(), outcome);
            match looked {
                Err(error @ HoldError::Overruled { .. }) => return error,
                Err(error) if decision == Decision::GiveUp => return error,
                Ok(()) | Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    async fn look_after(&self) -> Result<(), HoldError> {
        let mut wanted = self.wanted.lock().await;
        if wanted.has_begun() {
            return self.write_as(&mut wanted, &Change::nothing()).await.map(|_| ());
        }
        match self.read().await {
            Ok(project) => wanted.adopt(&project, &self.run),
            // Without a project, a teardown has nothing to hold.
            Err(error) if error.cause() == Cause::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default()
    }

    pub(super) fn warn(&self, warning: String) {
        if let Ok(mut all) = self.warnings.lock() {
            all.push(warning);
        }
    }

    pub(super) fn set_again(&self, change: &ForeignChange, times: u32) -> String {
        let project = &self.project;
        format!(
            "the hold in the AppProject `{project}` was {change}; Tiphys has set it again, {times} \
             of {LIMIT} times; meanwhile Argo CD may have synced an app out of order"
        )
    }
}
