//! Sync windows of others in the project. Argo CD does not look at them for a manual sync while our
//! hold is there, so we do.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::Api;

use super::{Hold, HoldError, windows};
use tiphys_argocd::application::{self, Application};
use tiphys_argocd::sync_windows::{Denied, SyncWindow, deny_manual_sync};

impl Hold {
    /// Which of these apps windows of others keep from being synced now. An app that has no
    /// Application yet is not judged.
    pub async fn denied_now(
        &self,
        apps: &BTreeSet<String>,
        applications: &Api<Application>,
    ) -> Result<BTreeMap<Denied, Vec<String>>, HoldError> {
        let windows = self.windows_of_others().await?;
        let mut all: BTreeMap<Denied, Vec<String>> = BTreeMap::new();
        if windows.is_empty() {
            return Ok(all);
        }
        let found = application::list(applications, |found| apps.contains(found.name())).await?;
        for application in found {
            if let Some(denied) = self.judge(&windows, &application)? {
                all.entry(denied).or_default().push(application.name().to_owned());
            }
        }
        Ok(all)
    }

    /// What keeps this app from being synced now, if something does.
    pub async fn denies(
        &self,
        app: &str,
        applications: &Api<Application>,
    ) -> Result<Option<Denied>, HoldError> {
        let windows = self.windows_of_others().await?;
        if windows.is_empty() {
            return Ok(None);
        }
        let what = format!("the Application `{app}` cannot be read");
        let found = applications.get_opt(app).await;
        match found.map_err(tiphys_cluster::RequestError::because(what))? {
            Some(application) => self.judge(&windows, &application),
            None => Ok(None),
        }
    }

    async fn windows_of_others(&self) -> Result<Vec<SyncWindow>, HoldError> {
        let project = self.read().await?;
        let windows = windows::foreign(&project.windows).map(SyncWindow::parse);
        windows.collect::<Result<_, _>>().map_err(|source| self.unreadable(source))
    }

    fn judge(
        &self,
        windows: &[SyncWindow],
        application: &Application,
    ) -> Result<Option<Denied>, HoldError> {
        let denied = deny_manual_sync(windows, application, Timestamp::now());
        denied.map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: tiphys_argocd::sync_windows::Unreadable) -> HoldError {
        HoldError::Window { project: self.project.clone(), source }
    }
}
