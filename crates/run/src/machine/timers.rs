//! When a step needs a decision even if nothing happens to it.

use tiphys_model::AppIx;

use super::step::{Phase, Trouble, Unanswered};
use super::{ANSWER_TIMEOUT, Machine, REFRESH_INTERVAL, TROUBLE};
use crate::gate::Suspicion;
use crate::time::Time;

impl Machine {
    /// What ails has a timer only while something waits for it.
    pub(super) fn set_timers_around(&mut self, app: AppIx) {
        for position in 0..self.prerequisites(app).len() {
            let prerequisite = self.prerequisites(app)[position];
            if self.step(prerequisite).ailing_since().is_some() {
                self.set_timer(prerequisite);
            }
        }
    }

    pub(super) fn set_timer(&mut self, app: AppIx) {
        let next = self.next_timer(app);
        let step = &mut self.steps[app.position()];
        if step.timer == next {
            return;
        }
        if let Some(old) = std::mem::replace(&mut step.timer, next) {
            self.timers.remove(&(old, app));
        }
        self.timers.extend(next.map(|time| (time, app)));
    }

    /// When the step needs a decision even if nothing happens to it.
    fn next_timer(&self, app: AppIx) -> Option<Time> {
        let step = self.step(app);
        let refresh = match &step.refresh {
            refresh if refresh.wanted => {
                Some(refresh.last_asked.map_or(Time::START, |last| last + REFRESH_INTERVAL))
            }
            refresh => {
                let asked = refresh.in_flight.map(|asked| asked.at);
                let since = asked.or(refresh.spared.map(|spared| spared.since));
                since.map(|since| since + ANSWER_TIMEOUT)
            }
        };
        let look = self.read_due(app);
        // Trouble with comparing is judged when a refresh returns, not when time passes.
        let degraded = |trouble: &&Trouble| matches!(trouble.suspicion, Suspicion::Degraded { .. });
        let trouble = step.trouble.as_ref().filter(degraded).map(|trouble| trouble.since + TROUBLE);
        let errand = step.errand_since.map(|since| since + ANSWER_TIMEOUT);
        match &step.phase {
            Phase::Waiting => {
                let held_up =
                    step.held_up.as_ref().map(|(since, _)| *since + self.sync_timeout(app));
                earliest([refresh, held_up])
            }
            Phase::Syncing(syncing) => {
                let timeout = syncing.since + self.sync_timeout(app);
                let resend = syncing.unanswered.as_ref().and_then(Unanswered::resend_due);
                earliest([Some(timeout), resend, Some(look)])
            }
            Phase::Converging(converging) => {
                let timeout = converging.since + self.health_timeout(app);
                earliest([Some(timeout), refresh, trouble, Some(look)])
            }
            Phase::Retrying { .. } if self.run.interrupted.is_some() => None,
            Phase::Retrying { until, .. } => Some(*until),
            Phase::Removing { since } => {
                earliest([Some(*since + self.health_timeout(app)), Some(look)])
            }
            Phase::Done { ailing_since, .. } | Phase::Removed { ailing_since } => {
                let ailing = ailing_since.map(|since| since + self.health_timeout(app));
                let ailing = ailing.filter(|_| self.has_waiting_followers(app));
                earliest([errand, ailing])
            }
            Phase::Failed(_) => errand,
            Phase::Skipped(_) => None,
        }
    }

    fn has_waiting_followers(&self, app: AppIx) -> bool {
        self.followers_inside(app).iter().any(|follower| self.waits(*follower))
    }
}

fn earliest<const N: usize>(times: [Option<Time>; N]) -> Option<Time> {
    times.into_iter().flatten().min()
}
