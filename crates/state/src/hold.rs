//! The hold: automated sync is denied to apps that are not Done yet.
//!
//! [`decide`] says what to do to get it, [`wanted`] what to do when others change it; this file asks
//! the API server, and tells the time.

mod batch;
mod decide;
mod error;
mod others;
#[cfg(test)]
mod tests;
mod wanted;
mod watch;
pub mod windows;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use batch::Batch;
pub use decide::Why;
use decide::{Change, Holding, Next, Seen};
pub use error::HoldError;
use tiphys_argocd::app_project;
use tiphys_argocd::application::{self, Application};
use tiphys_argocd::rest::CallError;
use tiphys_cluster::RequestError;
use tiphys_cluster::names::FIELD_MANAGER;
use tiphys_run::Time;
use tokio::time::Instant;
use wanted::{Project, Wanted};

/// The window in the platform's AppProject.
pub struct Hold {
    projects: Api<DynamicObject>,
    project: String,
    run: String,
    /// Apps to be released.
    pending: Batch,
    wanted: tokio::sync::Mutex<Wanted>,
    /// Warnings that have not been shown yet.
    warnings: Mutex<Vec<String>>,
}

impl Hold {
    #[must_use]
    pub fn new(client: &Client, namespace: &str, project: &str, run: &str) -> Self {
        Hold {
            projects: app_project::api(client, namespace),
            project: project.to_owned(),
            run: run.to_owned(),
            pending: Batch::default(),
            wanted: tokio::sync::Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    /// The AppProject whose window it is.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// The apps that are held now, by this run or an earlier one.
    pub async fn held(&self) -> Result<BTreeSet<String>, HoldError> {
        Ok(windows::held(&self.read().await?.windows))
    }

    /// Holds apps, beside those that are held already, once none of them has an automated
    /// operation under way. `terminate` stops one that takes too long.
    pub async fn hold_when_idle(
        &self,
        apps: &BTreeSet<String>,
        applications: &Api<Application>,
        terminate: impl AsyncFn(&str) -> Result<(), CallError>,
    ) -> Result<(), HoldError> {
        let began = Instant::now();
        let now = || Time::START + began.elapsed();
        let (mut holding, mut next) = Holding::begin(now());
        loop {
            let seen = match next {
                Next::Look { after } => look(applications, apps, after).await?,
                Next::Terminate { app, look_after } => {
                    let stopped = terminate(&app).await;
                    stopped.map_err(|source| HoldError::NotStopped { app, source })?;
                    look(applications, apps, look_after).await?
                }
                Next::Hold => Seen::Held { added: self.write(&Change::Hold(apps.clone())).await? },
                Next::Release(added) => {
                    self.write(&Change::Release(added)).await?;
                    Seen::Released
                }
                Next::Done => {
                    self.wanted.lock().await.begin();
                    return Ok(());
                }
                Next::GiveUp(why) => {
                    return Err(HoldError::NeverIdle { project: self.project.clone(), why });
                }
            };
            next = holding.decide(now(), seen);
        }
    }

    /// Holds one more app, whatever is under way.
    pub async fn hold_now(&self, app: &str) -> Result<(), HoldError> {
        self.write(&Change::Hold([app.to_owned()].into())).await.map(|_| ())
    }

    /// Lets automated sync resume for an app. Concurrent calls share one write.
    pub async fn release_batched(&self, app: &str) -> Result<(), HoldError> {
        let written = self.pending.together(app, async |ready| {
            self.write(&Change::Release(ready.clone())).await.map(|_| ())
        });
        written.await
    }

    /// Releases apps that no longer exist.
    pub async fn release_all(&self, apps: &BTreeSet<String>) -> Result<(), HoldError> {
        self.write(&Change::Release(apps.clone())).await.map(|_| ())
    }

    async fn read(&self) -> Result<Project, HoldError> {
        let what = format!("the AppProject `{}` cannot be read", self.project);
        let project =
            self.projects.get(&self.project).await.map_err(RequestError::because(what))?;
        let windows = project.data.pointer("/spec/syncWindows").and_then(Value::as_array);
        Ok(Project {
            windows: windows.cloned().unwrap_or_default(),
            version: project.metadata.resource_version,
            managers: project.metadata.managed_fields.unwrap_or_default(),
        })
    }

    async fn write(&self, change: &Change) -> Result<BTreeSet<String>, HoldError> {
        let mut wanted = self.wanted.lock().await;
        self.write_as(&mut wanted, change).await
    }

    /// Changes who is held; the apps that were not yet so. Somebody else's change in between
    /// starts it over. The hold of a run that came after this one is left alone.
    async fn write_as(
        &self,
        wanted: &mut Wanted,
        change: &Change,
    ) -> Result<BTreeSet<String>, HoldError> {
        let what = format!("the hold in the AppProject `{}` cannot be changed", self.project);
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
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
                            "the hold in the AppProject `{project}` belongs to run {run} now, which \
                             came after this one: it is left alone"
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
                Err(error) => return Err(RequestError::because(what)(error).into()),
            }
        }
        unreachable!("the loop ends by returning")
    }
}

/// Waits, and looks for an app that Argo CD is syncing by itself.
async fn look(
    applications: &Api<Application>,
    apps: &BTreeSet<String>,
    after: Duration,
) -> Result<Seen, HoldError> {
    tokio::time::sleep(after).await;
    let busy = application::list(applications, |application| {
        let operation = application.operation.as_ref();
        apps.contains(application.name()) && operation.is_some_and(|o| o.initiated_by.automated)
    });
    Ok(Seen::Automated(busy.await?.first().map(|application| application.name().to_owned())))
}
