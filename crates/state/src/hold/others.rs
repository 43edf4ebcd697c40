//! Sync windows of others in the project. Argo CD does not look at them for a manual sync while our
//! hold is there, so we do.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::project::ProjectHold;
use super::{Hold, HoldError, windows};
use tiphys_argocd::Applications;
use tiphys_argocd::application::Application;
use tiphys_argocd::sync_windows::{Denied, SyncWindow, Unreadable, deny_manual_sync};

/// The windows of others, by project.
type Windows<'a> = BTreeMap<&'a str, Vec<SyncWindow>>;

impl Hold {
    /// Which of these apps windows of others keep from being synced now. An app that has no
    /// Application yet is not judged.
    pub async fn denied_now(
        &self,
        apps: &BTreeSet<String>,
        applications: &Applications,
    ) -> Result<BTreeMap<Denied, Vec<String>>, HoldError> {
        let windows = self.windows_of_others().await?;
        let mut all: BTreeMap<Denied, Vec<String>> = BTreeMap::new();
        if windows.is_empty() {
            return Ok(all);
        }
        let found = applications.list(|found| apps.contains(found.name())).await?;
        for application in found {
            if let Some(denied) = judge(&windows, &application)? {
                all.entry(denied).or_default().push(application.name().to_owned());
            }
        }
        Ok(all)
    }

    /// What keeps this app from being synced now, if something does.
    pub async fn denies(
        &self,
        app: &str,
        applications: &Applications,
    ) -> Result<Option<Denied>, HoldError> {
        let windows = self.windows_of_others().await?;
        if windows.is_empty() {
            return Ok(None);
        }
        let what = format!("cannot read the Application `{app}`");
        let found = applications.get_opt(app).await;
        match found.map_err(tiphys_cluster::RequestError::because(what))? {
            Some(application) => judge(&windows, &application),
            None => Ok(None),
        }
    }

    /// What keeps a generator from being synced now, if something does.
    pub async fn denies_generator(
        &self,
        generator: &Application,
    ) -> Result<Option<Denied>, HoldError> {
        let own = self.all().filter(|hold| hold.project == generator.spec.project);
        judge(&foreign(own).await?, generator)
    }

    async fn windows_of_others(&self) -> Result<Windows<'_>, HoldError> {
        foreign(self.projects.iter()).await
    }
}

/// Of the projects that have any.
async fn foreign<'a>(
    projects: impl Iterator<Item = &'a ProjectHold>,
) -> Result<Windows<'a>, HoldError> {
    let mut all = Windows::new();
    for hold in projects {
        let project = hold.read().await?;
        let windows = windows::foreign(&project.windows).map(SyncWindow::parse);
        let windows: Vec<SyncWindow> = windows
            .collect::<Result<_, _>>()
            .map_err(|source| unreadable(&hold.project, source))?;
        if !windows.is_empty() {
            all.insert(&hold.project, windows);
        }
    }
    Ok(all)
}

fn judge(windows: &Windows<'_>, application: &Application) -> Result<Option<Denied>, HoldError> {
    let project = &*application.spec.project;
    let Some(windows) = windows.get(project) else { return Ok(None) };
    let denied = deny_manual_sync(windows, application, Timestamp::now());
    denied.map_err(|source| unreadable(project, source))
}

fn unreadable(project: &str, source: Unreadable) -> HoldError {
    HoldError::Window { project: project.to_owned(), source }
}
