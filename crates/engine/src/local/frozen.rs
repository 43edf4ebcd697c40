//! Automated operations that a hold has frozen.
//!
//! Argo CD may have decided to sync an app by itself before it saw the window, and write the
//! operation after we looked for one. The window then freezes it: it neither goes on nor can it be
//! stopped, and nobody else can sync the app. When the app's turn comes, everything it depends on
//! is there, so Argo CD may finish what it began: the window lets the app go until it has. What is
//! to be deleted, or never has its turn, is ended instead.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use tiphys_model::{AppIx, Explain, Role};
use tiphys_run::{BlockedBy, Event, Initiator, Verdict};
use tiphys_state::hold::HoldError;
use tiphys_state::lease::Lease;

use super::drive::Local;
use super::effects::Effects;
use crate::frozen::FrozenOperations;
use crate::run_update::RunUpdate;
use crate::signals::Signals;
use tiphys_argocd::rest::REQUEST_TIMEOUT;
use tiphys_cluster::RequestError;
use tokio::time::Instant;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often a refresh is asked for, until the operation has ended.
const WAKE_INTERVAL: Duration = Duration::from_secs(10);

/// Who is being thawed, and who must not be held again.
#[derive(Default)]
pub(super) struct Thaws(Mutex<Apps>);

#[derive(Default)]
struct Apps {
    under_way: BTreeSet<AppIx>,
    let_go: BTreeSet<AppIx>,
    /// That are being deleted, and cannot go before their operation has ended.
    in_the_way: BTreeSet<AppIx>,
}

impl Thaws {
    /// Notes that an app is handed off: whoever holds it again afterwards has to undo that.
    pub(super) fn let_go(&self, app: AppIx) {
        self.change(|apps| apps.let_go.insert(app));
    }

    /// Notes that a frozen operation keeps an app from being deleted.
    pub(super) fn is_in_the_way(&self, app: AppIx) {
        self.change(|apps| apps.in_the_way.insert(app));
    }

    /// Returns when nobody thaws the app, who would hold it again.
    pub(super) async fn settled(&self, app: AppIx) {
        while self.change(|apps| apps.under_way.contains(&app)) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
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
        if self.thaws.begins(app) {
            self.release_for_a_while(app, name).await.ok();
            self.thaws.ends(app);
        }
    }

    /// Ends the operation of an app that is being deleted, if it is in the way. If that fails, the
    /// step runs into its timeout, as it would have without.
    pub(super) async fn clear_the_way(&self, app: AppIx, name: &str) {
        if self.thaws.change(|apps| apps.in_the_way.remove(&app)) && self.thaws.begins(app) {
            self.end_frozen(&[name.to_owned()].into()).await.ok();
            self.thaws.ends(app);
        }
    }

    /// Ends what is frozen of these apps, and holds them again. Returns who had something.
    async fn end_frozen(&self, apps: &BTreeSet<String>) -> Result<BTreeSet<String>, HoldError> {
        let frozen = FrozenOperations {
            hold: &self.hold,
            applications: &self.applications,
            argocd: &self.argocd,
        };
        let ended = frozen.end(apps).await?;
        for app in &ended {
            self.hold.hold_now(app).await?;
        }
        Ok(ended)
    }

    async fn release_for_a_while(&self, app: AppIx, name: &str) -> Result<(), HoldError> {
        self.hold.release_batched(name).await?;
        let mut busy = true;
        let mut wake_at = Instant::now();
        while busy {
            if Instant::now() >= wake_at {
                // An edit of the project wakes nobody. If this fails, it is asked for again.
                let address = self.known(app).address(name);
                let refresh = self.argocd.refresh(&address);
                tokio::time::timeout(WAKE_INTERVAL, refresh).await.ok();
                wake_at = Instant::now() + WAKE_INTERVAL;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            if !self.fence.allows(REQUEST_TIMEOUT) {
                return Ok(());
            }
            let what = "cannot read the Application";
            let seen =
                self.applications.get_opt(name).await.map_err(RequestError::because(what))?;
            let operation = seen.and_then(|application| application.operation);
            busy = operation.is_some_and(|operation| operation.initiated_by.automated);
        }
        if !self.thaws.is_let_go(app) {
            self.hold.hold_now(name).await?;
        }
        // Handed off in between: what came last counts.
        if self.thaws.is_let_go(app) {
            self.hold.release_batched(name).await?;
        }
        Ok(())
    }
}

impl Local<'_> {
    pub(super) fn thaw_what_is_frozen(&self, event: &Event, app: AppIx) {
        let frozen = match event {
            Event::Blocked { why: BlockedBy::Operation { by }, .. } => *by == Initiator::Automated,
            // It slipped in when the app was about to be synced.
            Event::Postponed { .. } => self.is_automated(app),
            _ => false,
        };
        if frozen {
            let (name, effects) = (self.name(app), self.effects.clone());
            tokio::spawn(async move { effects.thaw(app, name.as_str()).await });
        }
    }

    /// Whether Argo CD syncs it by itself, as far as has been seen.
    fn is_automated(&self, app: AppIx) -> bool {
        let operation = self.driver.seen(app).and_then(|seen| seen.operation.as_ref());
        operation.is_some_and(|operation| operation.by == Initiator::Automated)
    }

    /// Ends what is still frozen when the run is over. Whoever wants an end now, or has taken the
    /// platform over, is not kept waiting: the next run begins with it.
    pub(super) async fn end_what_is_frozen(
        &self,
        verdict: Verdict,
        lease: &Lease,
        signals: &mut Signals,
    ) {
        let plan = self.driver.machine().plan();
        let apps = plan.graph.apps().filter(|app| plan.app(*app).role == Role::Act);
        let frozen = apps.filter(|app| self.is_automated(*app));
        let frozen: BTreeSet<String> = frozen.map(|app| self.name(app).to_string()).collect();
        let now = matches!(verdict, Verdict::Interrupted(_) | Verdict::LeaseLost);
        if now || frozen.is_empty() {
            return;
        }
        let ended = tokio::select! {
            ended = self.effects.end_frozen(&frozen) => ended,
            _ = lease.ended() => return,
            _ = signals.next() => return,
        };
        match ended {
            Ok(ended) => {
                for app in ended {
                    let note =
                        format!("stopped the automated sync of `{app}`, which the hold had frozen");
                    (self.updates)(RunUpdate::Note(note));
                }
            }
            Err(error) => {
                let why = error.explain();
                let apps: Vec<String> = frozen.into_iter().collect();
                let warning = format!(
                    "the hold has frozen the automated sync of {}, and Tiphys cannot stop it: {}; \
                     the next deployment or teardown tries again",
                    apps.join(", "),
                    why.why
                );
                (self.updates)(RunUpdate::Warning(warning));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_thawed_once_at_a_time_and_stays_let_go() {
        let (thaw, app) = (Thaws::default(), AppIx::new(3));
        assert!(thaw.begins(app) && !thaw.begins(app));
        thaw.ends(app);
        assert!(thaw.begins(app) && !thaw.is_let_go(app));
        thaw.let_go(app);
        assert!(thaw.is_let_go(app));
    }
}
