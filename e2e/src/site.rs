//! A test's own part of the cluster: a repository, two projects, a root app, namespaces.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tiphys_argocd::rest::{CallError, SyncRequest};
use tiphys_argocd::{AppAddress, Application};
use tiphys_lab::git::{Repository, Revision};
use tiphys_lab::repository::PlatformRepository;
use tiphys_model::OperationId;
use tiphys_run::{OperationPhase, Revisions};

use crate::world::ARGOCD;
use crate::{World, objects};

/// How long anything may take that should happen.
const WAIT_LIMIT: Duration = Duration::from_secs(90);

/// The name of a site is the name of its repository, and stands before the names of everything
/// else in it.
pub struct Site {
    pub world: Arc<World>,
    name: String,
    pub platform: PlatformRepository,
    pub repository: Repository,
}

/// A platform file for the program under test; it goes away with this value.
pub struct PlatformFile {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl PlatformFile {
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.to_str().expect("temporary folders have plain names")
    }
}

/// An id as runs give them, for tests that play a run.
#[must_use]
pub fn operation(app: &str, attempt: u32) -> OperationId {
    format!("0123456789ab/{app}/1/{attempt}").parse().expect("an operation id")
}

/// What belongs to a site is known by the beginning of its name, so no name may begin another: one
/// test would clear away what is another's.
fn claim(name: &str) {
    static NAMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let begins = |one: &str, other: &str| other.starts_with(&format!("{one}-"));
    let clash = {
        let mut names = NAMES.lock().expect("nobody panics with it");
        let clash = names.iter().find(|other| begins(other, name) || begins(name, other)).cloned();
        names.insert(name.to_owned());
        clash
    };
    assert_eq!(clash, None, "the site `{name}` would be mixed up with another one");
}

impl Site {
    /// An empty site; what an earlier one of this name has left is removed.
    pub async fn new(world: &Arc<World>, name: &str) -> Site {
        claim(name);
        let repository = Repository::create(&world.git, name).expect("a repository");
        let platform = PlatformRepository::new(name, &repository.url());
        let site = Site { world: world.clone(), name: name.to_owned(), platform, repository };
        site.clear().await;
        site.until_namespaces_are_gone().await;
        let secret = site.repository.credentials().expect("credentials").secret(ARGOCD, name);
        site.apply(secret).await;
        site
    }

    /// The reference platform; each app is Healthy after the same time.
    pub async fn reference(world: &Arc<World>, name: &str, after: Duration) -> Site {
        let mut site = Site::new(world, name).await;
        let url = site.repository.url();
        let platform = PlatformRepository::reference(&url, &format!("{name}-"), |_| after);
        site.platform = platform.expect("the reference platform");
        site
    }

    /// The platform file as a file of its own.
    #[must_use]
    pub fn platform_file(&self) -> PlatformFile {
        self.platform_file_with(|text| text)
    }

    /// Likewise, with a change.
    #[must_use]
    pub fn platform_file_with(&self, change: impl FnOnce(String) -> String) -> PlatformFile {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("platform.yaml");
        let text = self.platform.files().remove("platform.yaml").expect("a platform file");
        std::fs::write(&path, change(text)).expect("the platform file");
        PlatformFile { path, _folder: folder }
    }

    /// Commits the platform as it is now.
    #[expect(clippy::must_use_candidate, reason = "the commit is what counts")]
    pub fn commit(&self, message: &str) -> Revision {
        self.repository.commit(&self.platform.files(), message).expect("a commit")
    }

    /// Projects and root app, the latter not synced.
    pub async fn configure(&self) {
        for project in self.platform.app_projects() {
            self.apply(project).await;
        }
        self.apply(self.platform.root_application()).await;
    }

    /// An Application for an app without a root app.
    pub async fn create_application(&self, app: &str, target: &str, automated: bool) {
        let mut policy = json!({
            "syncOptions": ["CreateNamespace=true"],
            // Argo CD would try again for minutes before it calls it a failure.
            "retry": { "limit": 0 },
        });
        if automated {
            policy["automated"] = json!({ "prune": true, "selfHeal": true });
        }
        self.apply(json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {
                "name": app,
                "namespace": ARGOCD,
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            },
            "spec": {
                "project": self.platform.project,
                "source": {
                    "repoURL": self.platform.repo_url,
                    "targetRevision": target,
                    "path": format!("apps/{app}"),
                },
                "destination": {
                    "server": "https://kubernetes.default.svc",
                    "namespace": self.platform.namespace(app),
                },
                "syncPolicy": policy,
            },
        }))
        .await;
    }

    /// Denies automated sync to some apps of the project, or to none.
    pub async fn hold(&self, apps: &[&str]) {
        let windows = if apps.is_empty() {
            json!([])
        } else {
            json!([{
                "kind": "deny", "schedule": "* * * * *", "duration": "24h", "manualSync": true,
                "applications": apps, "description": "tiphys hold test",
            }])
        };
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": { "name": self.platform.project, "namespace": ARGOCD },
            "spec": { "syncWindows": windows },
        });
        let patch = Patch::Merge(&project);
        self.objects("argoproj.io/v1alpha1", "AppProject", Some(ARGOCD))
            .patch(&self.platform.project, &PatchParams::default(), &patch)
            .await
            .expect("the project can be changed");
        // A window counts from when the controller has seen it, which nothing shows. A machine
        // with much to do has taken longer than it takes to create an Application.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    #[must_use]
    pub fn applications(&self) -> Api<Application> {
        Api::namespaced(self.world.client.clone(), ARGOCD)
    }

    pub async fn application(&self, app: &str) -> Application {
        self.applications().get(app).await.expect("the Application is there")
    }

    /// Waits until an Application is as it should be.
    pub async fn until(
        &self,
        app: &str,
        what: &str,
        holds: impl Fn(&Application) -> bool,
    ) -> Application {
        self.until_within(WAIT_LIMIT, app, what, holds).await
    }

    /// Likewise, with a patience of its own.
    pub async fn until_within(
        &self,
        patience: Duration,
        app: &str,
        what: &str,
        holds: impl Fn(&Application) -> bool,
    ) -> Application {
        let began = Instant::now();
        let mut last = None;
        while began.elapsed() < patience {
            last = self.applications().get_opt(app).await.ok().flatten();
            if let Some(application) = last.take_if(|application| holds(application)) {
                return application;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let shown = last.map(|mut last| {
            last.metadata.managed_fields = None;
            serde_json::to_string_pretty(&last).unwrap_or_default()
        });
        unreachable!("{app} was not {what} within {patience:?}: {}", shown.unwrap_or_default())
    }

    /// Waits until an Application does not exist any more.
    pub async fn until_gone(&self, app: &str) {
        let began = Instant::now();
        while self.applications().get_opt(app).await.expect("an answer").is_some() {
            assert!(began.elapsed() < WAIT_LIMIT, "{app} is still there after {WAIT_LIMIT:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub async fn until_healthy(&self, app: &str) -> Application {
        let healthy = |application: &Application| {
            application.status.sync.status == "Synced"
                && application.status.health.status == "Healthy"
        };
        self.until(app, "Synced and Healthy", healthy).await
    }

    /// A sync as a run asks for it, in the project of the apps.
    pub async fn sync(
        &self,
        app: &str,
        revision: &str,
        attempt: u32,
    ) -> Result<Application, CallError> {
        self.sync_in(&self.platform.project, app, revision, attempt).await
    }

    pub async fn sync_in(
        &self,
        project: &str,
        app: &str,
        revision: &str,
        attempt: u32,
    ) -> Result<Application, CallError> {
        let revisions = if revision.is_empty() {
            Revisions::default()
        } else {
            Revisions([revision.into()].into())
        };
        let request = SyncRequest {
            operation: &operation(app, attempt),
            revisions: &revisions,
            prune: false,
        };
        self.world.argocd.sync(&AppAddress::own(app, project), request).await
    }

    /// Syncs the root app at the newest commit, and waits until that is done.
    pub async fn sync_root(&self, attempt: u32) {
        let (root, project) = (self.platform.root_name(), self.platform.root_project.clone());
        self.world
            .argocd
            .refresh(&AppAddress::own(&root, &project))
            .await
            .expect("the root app can be refreshed");
        self.sync_in(&project, &root, "", attempt).await.expect("the root app can be synced");
        let id = operation(&root, attempt);
        self.until(&root, "synced", |application| {
            let seen = application.observe().expect("it can be read");
            tiphys_run::gate::operation(&seen, &id).is_ours()
                && seen.operation.is_none()
                && seen.last.is_some_and(|last| last.phase == OperationPhase::Succeeded)
        })
        .await;
    }

    /// Server-side apply of any object.
    pub async fn apply(&self, object: Value) {
        objects::apply(&self.world.client, &object).await;
    }

    /// Any kind of object.
    #[must_use]
    pub fn objects(
        &self,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        objects::objects(&self.world.client, version, kind, namespace)
    }

    /// Removes everything of this site. A test that failed leaves it for whoever looks.
    pub async fn close(self) {
        self.clear().await;
    }

    async fn clear(&self) {
        let all = ListParams::default();
        // They would make their Applications again.
        let sets = self.objects("argoproj.io/v1alpha1", "ApplicationSet", Some(ARGOCD));
        for set in sets.list(&all).await.expect("a list") {
            if self.is_mine(&set.name_any()) {
                sets.delete(&set.name_any(), &DeleteParams::default()).await.ok();
            }
        }
        let applications = self.applications();
        let unfinished = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        for application in applications.list(&all).await.expect("a list") {
            let name = application.name_any();
            if self.is_mine(&name) {
                // What is deleted between two requests is as it should be.
                applications.patch(&name, &PatchParams::default(), &unfinished).await.ok();
                applications.delete(&name, &DeleteParams::default()).await.ok();
                self.until_gone(&name).await;
            }
        }
        let projects = self.objects("argoproj.io/v1alpha1", "AppProject", Some(ARGOCD));
        for project in projects.list(&all).await.expect("a list") {
            if self.is_mine(&project.name_any()) {
                projects.delete(&project.name_any(), &DeleteParams::default()).await.ok();
            }
        }
        // What a platform's runs keep: another platform of the same name must not find it.
        for (version, kind) in [("v1", "ConfigMap"), ("coordination.k8s.io/v1", "Lease")] {
            let objects = self.objects(version, kind, Some(ARGOCD));
            for object in objects.list(&all).await.expect("a list") {
                let name = object.name_any();
                if name.strip_prefix("tiphys-").is_some_and(|name| self.is_mine(name)) {
                    objects.delete(&name, &DeleteParams::default()).await.ok();
                }
            }
        }
        let namespaces: Api<Namespace> = Api::all(self.world.client.clone());
        for namespace in namespaces.list(&all).await.expect("a list") {
            if self.is_mine(&namespace.name_any()) {
                self.unhook(&namespace.name_any()).await;
                namespaces.delete(&namespace.name_any(), &DeleteParams::default()).await.ok();
            }
        }
    }

    pub async fn until_namespaces_are_gone(&self) {
        let namespaces: Api<Namespace> = Api::all(self.world.client.clone());
        let began = Instant::now();
        loop {
            let list = namespaces.list(&ListParams::default()).await.expect("a list");
            if !list.items.iter().any(|namespace| self.is_mine(&namespace.name_any())) {
                return;
            }
            assert!(began.elapsed() < WAIT_LIMIT, "namespaces of an earlier test do not go away");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    fn is_mine(&self, name: &str) -> bool {
        name == self.name || name.starts_with(&format!("{}-", self.name))
    }

    /// Finalizers that tests have put on ConfigMaps and Applications, and Argo CD on Jobs that are
    /// hooks, would hold a namespace for ever.
    async fn unhook(&self, namespace: &str) {
        let application = ("argoproj.io/v1alpha1", "Application");
        for (version, kind) in [("v1", "ConfigMap"), ("batch/v1", "Job"), application] {
            let objects = self.objects(version, kind, Some(namespace));
            for object in objects.list(&ListParams::default()).await.expect("a list") {
                if !object.finalizers().is_empty() {
                    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
                    let params = PatchParams::default();
                    objects.patch(&object.name_any(), &params, &patch).await.ok();
                }
            }
        }
    }
}
