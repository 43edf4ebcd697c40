//! Automated operations that a hold has frozen.
//!
//! Argo CD may have decided to sync an app by itself before it saw the window, and write the
//! operation after we looked for one. The window then freezes it: it neither goes on nor can it be
//! stopped, and nobody else can sync the app. When the app's turn comes, everything it depends on
//! is there, so Argo CD may finish what it began: the window lets the app go until it has.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use tiphys_model::AppIx;

use super::effects::Effects;
use crate::hold::HoldError;
use tiphys_argocd::rest::REQUEST_TIMEOUT;
use tiphys_cluster::RequestError;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Who is being thawed, and who must not be held again.
#[derive(Default)]
pub(super) struct FrozenOperations(Mutex<Apps>);

#[derive(Default)]
struct Apps {
    under_way: BTreeSet<AppIx>,
    let_go: BTreeSet<AppIx>,
}

impl FrozenOperations {
    /// Notes that an app is handed off: whoever holds it again afterwards has to undo that.
    pub(super) fn let_go(&self, app: AppIx) {
        self.change(|apps| apps.let_go.insert(app));
    }

    fn begins(&self, app: AppIx) -> bool {
        self.change(|apps| apps.under_way.insert(app))
    }

    fn ends(&self, app: AppIx) {
        self.change(|apps| apps.under_way.remove(&app));
    }

    fn is_let_go(&self, app: AppIx) -> bool {
        self.change(|apps| apps.let_go.contains(&app))
    }

    fn change(&self, change: impl FnOnce(&mut Apps) -> bool) -> bool {
        self.0.lock().is_ok_and(|mut apps| change(&mut apps))
    }
}

impl Effects {
    /// Lets Argo CD finish an automated operation on an app whose turn has come. If that fails,
    /// the step runs into its timeout, as it would have without.
    pub(super) async fn thaw(&self, app: AppIx, name: &str) {
        if self.frozen.begins(app) {
            self.release_for_a_while(app, name).await.ok();
            self.frozen.ends(app);
        }
    }

    async fn release_for_a_while(&self, app: AppIx, name: &str) -> Result<(), HoldError> {
        self.hold.release_batched(name).await?;
        let mut busy = true;
        while busy {
            tokio::time::sleep(POLL_INTERVAL).await;
            if !self.fence.allows(REQUEST_TIMEOUT) {
                return Ok(());
            }
            let what = "the Application cannot be read";
            let seen =
                self.applications.get_opt(name).await.map_err(RequestError::because(what))?;
            let operation = seen.and_then(|application| application.operation);
            busy = operation.is_some_and(|operation| operation.initiated_by.automated);
        }
        if !self.frozen.is_let_go(app) {
            self.hold.hold_now(name).await?;
        }
        // Handed off in between: what came last counts.
        if self.frozen.is_let_go(app) {
            self.hold.release_batched(name).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_thawed_once_at_a_time_and_stays_let_go() {
        let (thaw, app) = (FrozenOperations::default(), AppIx::new(3));
        assert!(thaw.begins(app) && !thaw.begins(app));
        thaw.ends(app);
        assert!(thaw.begins(app) && !thaw.is_let_go(app));
        thaw.let_go(app);
        assert!(thaw.is_let_go(app));
    }
}
