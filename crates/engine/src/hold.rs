//! The hold: automated sync is denied to apps that are not Done yet.
//!
//! [`decide`] says what to do; this file asks the API server, and tells the time.

mod batch;
mod decide;
#[cfg(test)]
mod tests;
pub mod windows;

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

use batch::Batch;
pub use decide::Why;
use decide::{Change, Holding, Next, Seen};
use tiphys_argocd::application::{self, Application};
use tiphys_argocd::rest::CallError;
use tiphys_cluster::names::FIELD_MANAGER;
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation};
use tiphys_run::Time;
use tokio::time::Instant;

/// The window in the platform's AppProject.
pub struct Hold {
    projects: Api<DynamicObject>,
    project: String,
    run: String,
    /// Apps to be released.
    pending: Batch,
}

/// What the project says at one moment.
struct Read {
    version: Option<String>,
    windows: Vec<Value>,
}

impl Hold {
    #[must_use]
    pub fn new(client: Client, namespace: &str, project: &str, run: &str) -> Self {
        let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "AppProject");
        let projects = Api::namespaced_with(client, namespace, &ApiResource::from_gvk(&kind));
        Hold {
            projects,
            project: project.to_owned(),
            run: run.to_owned(),
            pending: Batch::default(),
        }
    }

    /// The AppProject whose window it is.
    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    /// The apps that are held now, by this run or an earlier one.
    pub async fn held(&self) -> Result<BTreeSet<String>, HoldError> {
        Ok(windows::held(&self.read().await?.windows))
    }

    /// Holds apps, beside those that are held already, once none of them has an automated
    /// operation under way. `terminate` stops one that takes too long.
    pub(crate) async fn hold_when_idle(
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
                Next::Done => return Ok(()),
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
    pub(crate) async fn release_all(&self, apps: &BTreeSet<String>) -> Result<(), HoldError> {
        self.write(&Change::Release(apps.clone())).await.map(|_| ())
    }

    async fn read(&self) -> Result<Read, HoldError> {
        let what = format!("the AppProject `{}` cannot be read", self.project);
        let project =
            self.projects.get(&self.project).await.map_err(RequestError::because(what))?;
        let windows = project.data.pointer("/spec/syncWindows").and_then(Value::as_array);
        let windows = windows.cloned().unwrap_or_default();
        let foreign = windows::foreign(&windows);
        if foreign.is_empty() {
            return Ok(Read { version: project.metadata.resource_version, windows });
        }
        Err(HoldError::ForeignWindows { project: self.project.clone(), windows: foreign })
    }

    /// Changes who is held; the apps that were not yet so. Somebody else's change in between
    /// starts it over.
    async fn write(&self, change: &Change) -> Result<BTreeSet<String>, HoldError> {
        let what = format!("the hold in the AppProject `{}` cannot be changed", self.project);
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        for attempt in 1.. {
            let Read { version, windows } = self.read().await?;
            let before = windows::held(&windows);
            let missing = change.missing(&before);
            if missing.is_empty() {
                return Ok(missing);
            }
            let patch = json!({
                "metadata": { "resourceVersion": version },
                "spec": { "syncWindows": windows::holding(&change.of(&before), &self.run) },
            });
            match self.projects.patch(&self.project, &params, &Patch::Merge(&patch)).await {
                Ok(_) => return Ok(missing),
                Err(kube::Error::Api(status))
                    if status.code == 409 && decide::writes_again(attempt) => {}
                Err(error) => return Err(RequestError::because(what)(error).into()),
            }
        }
        unreachable!("the loop ends by returning")
    }
}

/// Why apps cannot be held or released.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum HoldError {
    /// Together with ours, nobody could tell who may sync.
    ForeignWindows {
        project: String,
        windows: Vec<String>,
    },
    /// Argo CD keeps syncing by itself.
    NeverIdle {
        project: String,
        why: Why,
    },
    /// An automated sync that has to be stopped first.
    NotStopped {
        app: String,
        source: CallError,
    },
    Request(#[from] RequestError),
}

impl HoldError {
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            HoldError::Request(error) => error.cause(),
            HoldError::NotStopped { .. } => Cause::Unreachable,
            HoldError::ForeignWindows { .. } | HoldError::NeverIdle { .. } => Cause::Other,
        }
    }
}

impl Explain for HoldError {
    fn explain(&self) -> Explanation {
        match self {
            HoldError::ForeignWindows { project, windows } => Explanation::new(
                Exit::Configuration,
                format!("the AppProject `{project}` has sync windows of its own"),
                format!(
                    "{}; together with a hold, who may sync could not be told",
                    windows.join(", ")
                ),
            )
            .hint("move the windows to another project, or remove them"),
            HoldError::NeverIdle { project, why } => {
                let what = format!("the apps of the project `{project}` cannot be held");
                let (why, hint) = match why {
                    Why::AlwaysLate => (
                        "Argo CD starts an automated sync each time before the window is set"
                            .to_owned(),
                        "find out with `argocd app history` what keeps changing, and try again",
                    ),
                    Why::NeverEnds { app } => (
                        format!(
                            "the automated sync of `{app}` does not end, though it was terminated"
                        ),
                        "see whether Argo CD's application controller is running, and try again",
                    ),
                };
                Explanation::new(Exit::Failed, what, why).hint(hint)
            }
            HoldError::NotStopped { app, source } => Explanation::new(
                Exit::Unreachable,
                format!("the automated sync of `{app}` cannot be stopped"),
                source.to_string(),
            ),
            HoldError::Request(error) => error.explain(),
        }
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
