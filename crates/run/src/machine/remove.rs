//! What a look at an app means for its step, in a teardown.

use tiphys_model::{AppIx, Role};

use super::observe::failed;
use super::{ANSWER_TIMEOUT, Machine, Phase};
use crate::cause::Cause;
use crate::event::{Because, Event, FailState, How};
use crate::observation::Observation;
use crate::time::Time;

impl Machine {
    /// What lies outside the scope stays, and must not depend on what goes.
    pub(super) fn judge_outside(&self, seen: Option<&Observation>, app: AppIx) -> Event {
        let removed = |other: &AppIx| self.role(*other) == Role::Act;
        let depends = self.plan.graph.dependencies(app).iter().any(removed);
        match seen {
            Some(seen) if depends => {
                failed(app, FailState::Failed, Cause::DependantOutside, Some(seen))
            }
            _ => Event::Done { app, how: How::AlreadyCurrent },
        }
    }

    pub(super) fn observe_removal(
        &self,
        now: Time,
        seen: Option<&Observation>,
        app: AppIx,
    ) -> Vec<Event> {
        match (&self.step(app).phase, seen) {
            (Phase::Removing { .. }, None) => vec![Event::Removed { app }],
            (Phase::Removing { since }, Some(seen)) => {
                if now.since(*since) >= self.health_timeout(app) {
                    let finalizers =
                        seen.deleting.as_ref().map_or_else(Vec::new, |d| d.finalizers.clone());
                    let cause = Cause::StuckDeletion { finalizers };
                    return vec![failed(app, FailState::TimedOut, cause, Some(seen))];
                }
                let silent = now.since(self.step(app).looked) >= ANSWER_TIMEOUT;
                match (silent, &seen.deleting) {
                    (false, _) => Vec::new(),
                    (true, Some(_)) => vec![Event::ReadAsked { app }],
                    // The request may have been lost: asking again does no harm.
                    (true, None) => vec![Event::Removing { app }, Event::ReadAsked { app }],
                }
            }
            (Phase::Removed { ailing_since: None }, Some(_)) => {
                vec![Event::Ailing { app, health: None }]
            }
            (Phase::Removed { ailing_since: Some(_) }, None) => vec![Event::Recovered { app }],
            (Phase::Removed { ailing_since: Some(since) }, Some(_))
                if now.since(*since) >= self.health_timeout(app) =>
            {
                self.skip_followers(app, Because::Unhealthy(app))
            }
            _ => Vec::new(),
        }
    }
}

/// What is not there need not be removed.
pub(super) fn start_removal(seen: Option<&Observation>, app: AppIx) -> Vec<Event> {
    match seen {
        Some(_) => vec![Event::Removing { app }],
        None => vec![Event::Removed { app }],
    }
}
