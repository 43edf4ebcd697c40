//! Sync windows of others: a sync waits until they let it through.

use std::time::Duration;

use tiphys_model::{AppIx, AppName, Explain};
use tiphys_run::{Answer, Effect, SyncAnswer};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::drive::{Incoming, Local};
use super::effects::Effects;
use crate::run_update::RunUpdate;
use tiphys_argocd::rest::REQUEST_TIMEOUT;
use tiphys_argocd::sync_windows::Denied;

const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How long a window is waited for before the machine hears of it, which a person may have
/// interrupted meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Local<'_> {
    /// Tells what an app waits for, unless it was told.
    pub(super) fn on_denied(&mut self, app: AppIx, denied: Denied) {
        let warning = format!("`{}` waits to be synced: {denied}", self.name(app));
        if self.denied.insert(app, denied.clone()) != Some(denied) {
            (self.updates)(RunUpdate::Warning(warning));
        }
    }
}

impl Effects {
    /// Whether a sync may be sent now. While another sync window denies it, the machine gets a
    /// conflict before the sync timeout, so that it tries again.
    pub(super) async fn windows_allow(
        &self,
        effect: &Effect,
        name: &AppName,
        sync_timeout: Duration,
        incoming: &UnboundedSender<Incoming>,
    ) -> bool {
        let Effect::Sync { app, number, .. } = effect else { return true };
        let tell = |told: Incoming| incoming.send(told).unwrap_or_default();
        let answer = |answer| Some(Answer::Sync { number: *number, answer });
        let (app, doing) = (*app, "sync");
        let began = Instant::now();
        while self.fence.allows(REQUEST_TIMEOUT) {
            match self.hold.denies(name.as_str(), &self.applications).await {
                Ok(None) => return true,
                Ok(Some(denied)) => tell(Incoming::Denied(app, denied)),
                Err(error) => {
                    let message = error.explain().why.into();
                    let answer = answer(SyncAnswer::Unanswered { message });
                    let (cause, error) = (error.cause(), error.into());
                    tell(Incoming::Odd { app, doing, cause, error, answer });
                    return false;
                }
            }
            if began.elapsed() >= LONGEST_WAIT.min(sync_timeout / 2) {
                let answer = answer(SyncAnswer::Conflict);
                tell(Incoming::Answered { app, doing, answer });
                return false;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        // Not sent, and told why, by whoever sends requests.
        true
    }
}
