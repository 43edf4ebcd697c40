//! The contents of a platform's Git repository, as plain data.
//!
//! ```text
//! platform.yaml                       the platform file: what depends on what
//! root/                               the root app: a Helm chart that creates all others
//! apps/NAME/*.yaml                    what each app consists of
//! ```
//!
//! A test says what its apps shall do ([`Behaviour`]), gets the files, and commits them. Nothing
//! here reads or writes anything.

mod argocd;
mod behaviour;
mod chart;
mod platform_file;
mod reference;
mod scalar;

use std::collections::BTreeMap;
use std::time::Duration;

use tiphys_model::platform::{AppType, Hold, Retry, Timeouts, WorkflowMode};
use tiphys_model::{CommitStatus, Criterion, DeployMode, Trigger};

pub use behaviour::Behaviour;

/// Texts by path, with `/` between folders.
pub type Files = BTreeMap<String, String>;

/// A platform, and what its apps do.
#[derive(Debug, Clone)]
pub struct PlatformRepository {
    pub name: String,
    pub repo_url: String,
    pub target_revision: String,
    /// The AppProject of the apps.
    pub project: String,
    /// The AppProject of the root app.
    pub root_project: String,
    /// Stands before an app's name in the name of its namespace.
    pub namespace_prefix: String,
    pub hold: Option<Hold>,
    pub concurrency: Option<u32>,
    /// The run's own deadline.
    pub timeout: Option<Duration>,
    /// The root app renders the platform file, too.
    pub carries_its_file: bool,
    pub workflows: WorkflowMode,
    pub deploy: DeployMode,
    /// Only provider, API and link are written: the rest follows from `repo_url` and `name`.
    pub commit_status: Option<CommitStatus>,
    pub triggers: Vec<Trigger>,
    pub apps: Vec<AppSource>,
}

/// One app.
#[derive(Debug, Clone)]
pub struct AppSource {
    /// Of the app and of its Application: unique in an Argo CD, not only in a platform.
    pub name: String,
    pub stack: String,
    pub app_type: AppType,
    pub typical: Option<Duration>,
    pub depends_on: Vec<String>,
    pub timeouts: Option<Timeouts>,
    pub retry: Option<Retry>,
    pub tolerate_drift: Vec<String>,
    pub health: Vec<Criterion>,
    /// The address of its cluster, if that is not Argo CD's own.
    pub cluster: Option<String>,
    pub behaviour: Behaviour,
    /// Stands in the app's manifests: another number makes another app, which has to roll out
    /// again, and leaves the others as they are.
    pub generation: u32,
}

impl PlatformRepository {
    /// A platform without apps, in projects of its own.
    #[must_use]
    pub fn new(name: &str, repo_url: &str) -> Self {
        PlatformRepository {
            name: name.to_owned(),
            repo_url: repo_url.to_owned(),
            target_revision: "main".to_owned(),
            project: name.to_owned(),
            root_project: format!("{name}-root"),
            namespace_prefix: String::new(),
            hold: None,
            concurrency: None,
            timeout: None,
            carries_its_file: false,
            workflows: WorkflowMode::default(),
            deploy: DeployMode::default(),
            commit_status: None,
            triggers: Vec::new(),
            apps: Vec::new(),
        }
    }

    #[must_use]
    pub fn with(mut self, app: AppSource) -> Self {
        self.apps.push(app);
        self
    }

    /// The app of a name, to change it.
    pub fn app_mut(&mut self, name: &str) -> Option<&mut AppSource> {
        self.apps.iter_mut().find(|app| app.name == name)
    }

    /// The namespace that an app's resources go to.
    #[must_use]
    pub fn namespace(&self, app: &str) -> String {
        format!("{}{app}", self.namespace_prefix)
    }

    /// Everything that the repository contains.
    #[must_use]
    pub fn files(&self) -> Files {
        let mut files = chart::files(self);
        let platform = platform_file::write(self);
        if self.carries_its_file {
            files.extend(chart::with_platform_file(&self.name, &platform));
        }
        files.insert("platform.yaml".to_owned(), platform);
        for app in &self.apps {
            let text = app.behaviour.manifests(&app.name, app.generation);
            files.insert(format!("apps/{}/app.yaml", app.name), text);
        }
        files
    }
}

impl AppSource {
    /// An app in the stack `apps` that depends on nothing.
    #[must_use]
    pub fn new(name: &str, behaviour: Behaviour) -> Self {
        AppSource {
            name: name.to_owned(),
            stack: "apps".to_owned(),
            app_type: AppType::Simple,
            typical: None,
            depends_on: Vec::new(),
            timeouts: None,
            retry: None,
            tolerate_drift: Vec::new(),
            health: Vec::new(),
            cluster: None,
            behaviour,
            generation: 1,
        }
    }

    #[must_use]
    pub fn depends_on(mut self, apps: &[&str]) -> Self {
        self.depends_on.extend(apps.iter().map(|app| (*app).to_owned()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> PlatformRepository {
        PlatformRepository::new("two", "ssh://root@10.0.0.1:12222/git/two.git")
            .with(AppSource::new("one", Behaviour::ConfigOnly))
            .with(AppSource::new("other", Behaviour::ConfigOnly).depends_on(&["one"]))
    }

    #[test]
    fn the_files_are_a_platform_file_a_chart_and_a_folder_per_app() {
        let files = two().files();
        let paths: Vec<&String> = files.keys().collect();
        assert_eq!(
            paths,
            [
                "apps/one/app.yaml",
                "apps/other/app.yaml",
                "platform.yaml",
                "root/Chart.yaml",
                "root/templates/applications.yaml",
                "root/values.yaml",
            ]
        );
    }

    #[test]
    fn a_generation_changes_its_app_and_nothing_else() {
        let before = two().files();
        let mut platform = two();
        platform.app_mut("other").unwrap().generation = 2;
        let after = platform.files();
        let changed: Vec<&String> =
            after.iter().filter(|(path, text)| before[*path] != **text).map(|(p, _)| p).collect();
        assert_eq!(changed, ["apps/other/app.yaml"]);
    }
}
