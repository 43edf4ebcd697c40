//! The window in one AppProject. [`wanted`] says what to do when others change it; this file asks
//! the API server.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::batch::Batch;
use super::decide::{self, Change};
use super::wanted::{self, Project, Wanted};
use super::{HoldError, windows};
use tiphys_argocd::app_project;
use tiphys_cluster::names::FIELD_MANAGER;
use tiphys_cluster::{Cause, RequestError};

/// How long to wait before a write is sent again that nobody knows the outcome of.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct ProjectHold {
    projects: Api<DynamicObject>,
    pub(super) project: String,
    pub(super) run: String,
    /// Apps to be released.
    pending: Batch,
    pub(super) wanted: tokio::sync::Mutex<Wanted>,
    /// Warnings that have not been shown yet.
    pub(super) warnings: Mutex<Vec<String>>,
}

impl ProjectHold {
    pub(super) fn new(client: &Client, namespace: &str, project: &str, run: &str) -> Self {
        ProjectHold {
            projects: app_project::api(client, namespace),
            project: project.to_owned(),
            run: run.to_owned(),
            pending: Batch::default(),
            wanted: tokio::sync::Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    pub(super) async fn is_there(&self) -> Result<bool, HoldError> {
        match self.read().await {
            Ok(_) => Ok(true),
            Err(error) if error.cause() == Cause::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Who is held now, by this run or an earlier one.
    pub(super) async fn held(&self) -> Result<BTreeSet<String>, HoldError> {
        match self.read().await {
            Ok(project) => Ok(windows::held(&project.windows)),
            Err(error) if error.cause() == Cause::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }

    /// From now on the window says what this run wants, and nothing else.
    pub(super) async fn begin(&self) {
        self.wanted.lock().await.begin();
    }

    /// Concurrent calls share one write.
    pub(super) async fn release_batched(&self, app: &str) -> Result<(), HoldError> {
        let written = self.pending.together(app, async |ready| {
            self.write(&Change::Release(ready.clone())).await.map(|_| ())
        });
        written.await
    }

    pub(super) async fn read(&self) -> Result<Project, HoldError> {
        let what = format!("cannot read the AppProject `{}`", self.project);
        let project =
            self.projects.get(&self.project).await.map_err(RequestError::because(what))?;
        let windows = project.data.pointer("/spec/syncWindows").and_then(Value::as_array);
        Ok(Project {
            windows: windows.cloned().unwrap_or_default(),
            version: project.metadata.resource_version,
            managers: project.metadata.managed_fields.unwrap_or_default(),
        })
    }

    /// Changes who is held; the apps that were not yet so.
    pub(super) async fn write(&self, change: &Change) -> Result<BTreeSet<String>, HoldError> {
        let mut wanted = self.wanted.lock().await;
        self.write_as(&mut wanted, change).await
    }

    /// Somebody else's change in between starts it over, and so does an answer that says nothing of
    /// what came of a write: the version in it keeps it from being made twice. The hold of a run that
    /// came after this one is left alone.
    pub(super) async fn write_as(
        &self,
        wanted: &mut Wanted,
        change: &Change,
    ) -> Result<BTreeSet<String>, HoldError> {
        let what = format!("cannot change the hold in the AppProject `{}`", self.project);
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let mut unclear = 0;
        for attempt in 1.. {
            let project = self.read().await?;
            let missing = change.missing(&windows::held(&project.windows));
            let (apps, changed) = match wanted.decide(&project, &self.run, change) {
                wanted::Next::Nothing => {
                    wanted.confirm(&project, change);
                    return Ok(missing);
                }
                wanted::Next::LeaveAlone { run } => {
                    if wanted.learns_of(&run) {
                        let project = &self.project;
                        self.warn(format!(
                            "the hold in the AppProject `{project}` now belongs to the newer run \
                             {run}: this run leaves it alone"
                        ));
                    }
                    return Ok(BTreeSet::new());
                }
                wanted::Next::GiveUp(change) => {
                    return Err(HoldError::Overruled { project: self.project.clone(), change });
                }
                wanted::Next::Write { apps, changed } => (apps, changed),
            };
            let patch = json!({
                "metadata": { "resourceVersion": project.version },
                "spec": { "syncWindows": windows::holding(&project.windows, &apps, &self.run) },
            });
            let before = wanted.clone();
            wanted.write(&apps);
            match self.projects.patch(&self.project, &params, &Patch::Merge(&patch)).await {
                Ok(_) => {
                    wanted.written(changed.is_some());
                    if let Some(changed) = changed {
                        self.warn(self.set_again(&changed, wanted.set_again));
                    }
                    return Ok(missing);
                }
                Err(kube::Error::Api(status))
                    if status.code == 409 && decide::writes_again(attempt) =>
                {
                    *wanted = before;
                }
                Err(error) if is_unclear(&error) && decide::asks_again(unclear) => {
                    unclear += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(RequestError::because(what)(error).into()),
            }
        }
        unreachable!("the loop ends by returning")
    }
}

/// Whether nobody knows what came of a request.
fn is_unclear(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code >= 500,
        kube::Error::Auth(_) => false,
        _ => true,
    }
}
