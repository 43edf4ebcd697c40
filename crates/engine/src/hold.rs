//! The hold: automated sync is denied to apps that are not Done yet.

mod batch;
pub mod windows;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

use batch::Batch;
use tiphys_argocd::application::{self, Application};
use tiphys_cluster::names::FIELD_MANAGER;
use tiphys_cluster::{ClusterError, Kind};

/// How often something is tried again that somebody else changed at the same time.
const ATTEMPTS: usize = 10;
/// How long an automated operation may take before it is stopped.
const AUTOMATED_PATIENCE: Duration = Duration::from_secs(120);
/// How long the controller may take to see a new window.
const NOTICE: Duration = Duration::from_millis(500);

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

    /// The apps that are held now, by this run or an earlier one.
    pub async fn held(&self) -> Result<BTreeSet<String>, ClusterError> {
        Ok(windows::held(&self.read().await?.windows))
    }

    /// Holds apps, beside those that are held already. A window freezes an automated operation
    /// that is under way, so these are awaited first; if one slips in, all is tried again.
    pub(crate) async fn acquire(
        &self,
        apps: &BTreeSet<String>,
        applications: &Api<Application>,
        stop: impl AsyncFn(&str) -> Result<(), ClusterError>,
    ) -> Result<(), ClusterError> {
        let began = Instant::now();
        for _ in 0..ATTEMPTS {
            while let Some(busy) = automated(applications, apps).await? {
                if began.elapsed() > AUTOMATED_PATIENCE {
                    stop(&busy).await?;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            let before = self.held().await?;
            if apps.is_subset(&before) {
                return Ok(());
            }
            self.write(|held| held.extend(apps.iter().cloned())).await?;
            tokio::time::sleep(NOTICE).await;
            if automated(applications, apps).await?.is_none() {
                return Ok(());
            }
            self.write(|held| held.clone_from(&before)).await?;
        }
        Err(ClusterError::new(
            Kind::Failed,
            format!("the apps of the project `{}` cannot be held", self.project),
            "Argo CD starts an automated sync each time before the window is set",
        )
        .hint("find out with `argocd app history` what keeps changing, and try again"))
    }

    /// Lets Argo CD sync an app by itself again.
    pub async fn release(&self, app: &str) -> Result<(), ClusterError> {
        let written = self.pending.together(app, async |ready| {
            self.write(|held| held.retain(|app| !ready.contains(app))).await
        });
        written.await
    }

    /// Takes apps off the list that are no more.
    pub(crate) async fn lift(&self, apps: &BTreeSet<String>) -> Result<(), ClusterError> {
        self.write(|held| held.retain(|app| !apps.contains(app))).await
    }

    /// Holds one more app, at once.
    pub async fn hold(&self, app: &str) -> Result<(), ClusterError> {
        self.write(|held| {
            held.insert(app.to_owned());
        })
        .await
    }

    async fn read(&self) -> Result<Read, ClusterError> {
        let what = format!("the AppProject `{}` cannot be read", self.project);
        let project = self.projects.get(&self.project).await.map_err(ClusterError::kube(what))?;
        let windows = project.data.pointer("/spec/syncWindows").and_then(Value::as_array);
        let windows = windows.cloned().unwrap_or_default();
        let foreign = windows::foreign(&windows);
        if foreign.is_empty() {
            return Ok(Read { version: project.metadata.resource_version, windows });
        }
        Err(ClusterError::new(
            Kind::Configuration,
            format!("the AppProject `{}` has sync windows of its own", self.project),
            format!("{}; together with a hold, who may sync could not be told", foreign.join(", ")),
        )
        .hint("move the windows to another project, or remove them"))
    }

    /// Changes who is held. Somebody else's change in between starts it over.
    async fn write(&self, change: impl Fn(&mut BTreeSet<String>)) -> Result<(), ClusterError> {
        let what = format!("the hold in the AppProject `{}` cannot be changed", self.project);
        for attempt in 1.. {
            let Read { version, windows } = self.read().await?;
            let before = windows::held(&windows);
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(());
            }
            let patch = json!({
                "metadata": { "resourceVersion": version },
                "spec": { "syncWindows": windows::holding(&after, &self.run) },
            });
            let params = PatchParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            match self.projects.patch(&self.project, &params, &Patch::Merge(&patch)).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {}
                Err(error) => return Err(ClusterError::kube(what)(error)),
            }
        }
        unreachable!("the loop ends by returning")
    }
}

/// An app that Argo CD is syncing by itself.
async fn automated(
    applications: &Api<Application>,
    apps: &BTreeSet<String>,
) -> Result<Option<String>, ClusterError> {
    let busy = application::list(applications, |application| {
        let operation = application.operation.as_ref();
        apps.contains(application.name()) && operation.is_some_and(|o| o.initiated_by.automated)
    });
    Ok(busy.await?.first().map(|application| application.name().to_owned()))
}
