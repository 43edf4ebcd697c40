//! Ending automated operations that a hold has frozen.
//!
//! A window freezes an automated operation that is under way: it neither goes on nor ends when it is
//! terminated, and nobody can sync or delete the app. A run that is killed, and an app that is
//! skipped, can leave one behind. It is terminated, so that nothing is applied before its turn; then
//! the window lets the app go, and Argo CD ends the operation. An edit of a project wakes no app, so
//! a refresh is asked for.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use tiphys_argocd::application::Application;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_argocd::{AppAddress, Applications, ArgoCdClient};
use tiphys_state::hold::{Hold, HoldError, Why};

/// How long operations may take to end.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is looked whether they have.
const POLL: Duration = Duration::from_secs(1);
/// How long a refresh is waited for before it is looked again.
const WAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// What it takes to end them.
pub(crate) struct FrozenOperations<'a> {
    pub(crate) hold: &'a Hold,
    pub(crate) applications: &'a Applications,
    pub(crate) argocd: &'a ArgoCdClient,
}

/// What to do next about one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Terminate,
    Release,
    Wake,
    /// It goes on by itself.
    Nothing,
}

/// Decides by whether its app is held, and whether it is being terminated.
fn next(application: &Application, held: bool) -> Next {
    if !is_automated(application) {
        return Next::Nothing;
    }
    let state = application.status.operation_state.as_ref();
    match (held, state.is_some_and(|state| state.phase == "Terminating")) {
        (true, false) => Next::Terminate,
        (true, true) => Next::Release,
        (false, true) => Next::Wake,
        (false, false) => Next::Nothing,
    }
}

/// Whether Argo CD syncs it by itself, as far as the window lets it.
pub(crate) fn is_automated(application: &Application) -> bool {
    application.operation.as_ref().is_some_and(|operation| operation.initiated_by.automated)
}

/// Stops an operation that Argo CD has begun by itself, and that is not frozen.
pub(crate) async fn stop(argocd: &ArgoCdClient, app: &AppAddress) -> Result<(), CallError> {
    match argocd.terminate(app).await {
        Err(error @ CallError::Unanswered { .. }) => Err(error),
        // Refused: it has ended by itself.
        Ok(()) | Err(CallError::Refused { .. }) => Ok(()),
    }
}

impl FrozenOperations<'_> {
    /// Ends those of these apps. Returns the apps that had one: they are not held any more. If it
    /// fails, they are.
    pub(crate) async fn end(&self, apps: &BTreeSet<String>) -> Result<BTreeSet<String>, HoldError> {
        let mut held = &self.hold.held().await? & apps;
        let before = held.clone();
        let ended = self.end_held(&mut held).await;
        let released = &before - &held;
        if ended.is_err() {
            for app in &released {
                self.hold.hold_now(app).await?;
            }
        }
        ended.map(|()| released)
    }

    /// Who is released leaves `held`.
    async fn end_held(&self, held: &mut BTreeSet<String>) -> Result<(), HoldError> {
        if held.is_empty() {
            return Ok(());
        }
        let apps = held.clone();
        let began = Instant::now();
        loop {
            let round = self.round(&apps, held).await;
            match round {
                Ok(None) => return Ok(()),
                Ok(Some(app)) if began.elapsed() >= TIMEOUT => {
                    let projects = self.hold.projects();
                    return Err(HoldError::NeverIdle { projects, why: Why::NeverEnds { app } });
                }
                Err(error) if began.elapsed() >= TIMEOUT => return Err(error),
                // What is odd once need not be so the next time.
                Ok(Some(_)) | Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Looks at all, and does what is next for each. One that has not ended, if there is any.
    async fn round(
        &self,
        apps: &BTreeSet<String>,
        held: &mut BTreeSet<String>,
    ) -> Result<Option<String>, HoldError> {
        let frozen = self.applications.list(|application| {
            let name = application.name();
            apps.contains(name) && next(application, held.contains(name)) != Next::Nothing
        });
        let frozen = frozen.await?;
        let mut release = BTreeSet::new();
        let mut wake = Vec::new();
        for application in &frozen {
            let app = application.name();
            match next(application, held.contains(app)) {
                Next::Terminate => self.terminate(application).await?,
                Next::Release => {
                    release.insert(app.to_owned());
                    wake.push(application);
                }
                Next::Wake => wake.push(application),
                Next::Nothing => {}
            }
        }
        if !release.is_empty() {
            self.hold.release_all(&release).await?;
            held.retain(|app| !release.contains(app));
        }
        // If one fails, the next look shows it.
        let refreshes = wake.into_iter().map(|application| async {
            let address = application.address();
            tokio::time::timeout(WAKE_TIMEOUT, self.argocd.refresh(&address)).await
        });
        futures::future::join_all(refreshes).await;
        Ok(frozen.first().map(|application| application.name().to_owned()))
    }

    async fn terminate(&self, application: &Application) -> Result<(), HoldError> {
        let app = application.name();
        match self.argocd.terminate(&application.address()).await {
            // It has ended by itself, or has not quite begun: the next look shows it.
            Ok(())
            | Err(CallError::Refused { refusal: Refusal::Other | Refusal::NotFound, .. }) => Ok(()),
            Err(source) => Err(HoldError::NotStopped { app: app.to_owned(), source }),
        }
    }
}
