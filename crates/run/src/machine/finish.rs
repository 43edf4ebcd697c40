//! When a run is over, and how it ended.

use tiphys_model::{AppIx, Health};

use super::decide::Seen;
use super::observe::failed;
use super::step::Converging;
use super::{Machine, Phase};
use crate::cause::{Cause, Pending};
use crate::event::{Because, BlockedBy, Event, Evidence, FailState, Unhealthy, Verdict};
use crate::gate::{Applied, Missing};
use crate::observation::Observation;
use crate::planted::planted;

impl Machine {
    /// The end of the run, once nothing is left to do.
    pub(crate) fn finish(&self, seen: &Seen) -> Option<Event> {
        if !self.run.begun || self.run.finished.is_some() {
            return None;
        }
        if let Some(signal) = self.run.interrupted
            && self.run.syncing == 0
        {
            return Some(self.finished(seen, Verdict::Interrupted(signal)));
        }
        if self.run.unfinished > 0 || self.run.errands > 0 {
            return None;
        }
        let failed = self.run.lost > 0 || self.run.ailing > 0;
        planted!(SucceedDespiteFailures => let failed = self.run.ailing > 0);
        planted!(SucceedDespiteUnhealthyApps => let failed = self.run.lost > 0);
        let verdict = if failed { Verdict::Failed } else { Verdict::Succeeded };
        Some(self.finished(seen, verdict))
    }

    pub(super) fn finished(&self, seen: &Seen, verdict: Verdict) -> Event {
        let ailing = self.plan.graph.apps().filter(|app| self.step(*app).ailing_since().is_some());
        let unhealthy = ailing.map(|app| self.unhealthy(app, seen[app.position()].as_deref()));
        Event::Finished { verdict, unhealthy: unhealthy.collect() }
    }

    fn unhealthy(&self, app: AppIx, seen: Option<&Observation>) -> Unhealthy {
        let cause = match (&self.step(app).phase, seen) {
            (Phase::Removed { .. }, _) => Cause::CreatedAgain,
            (_, Some(seen)) => Cause::TurnedUnhealthy {
                health: seen.health_in_full(),
                message: seen.health_message.clone().or_else(|| seen.unmet.first().cloned()),
            },
            (_, None) => Cause::TurnedUnhealthy { health: Health::Missing, message: None },
        };
        let evidence = seen.map_or_else(Evidence::default, Evidence::from_observation);
        Unhealthy { app, cause, evidence }
    }

    /// The run's own deadline has passed.
    pub(super) fn run_out_of_time(&self, seen: &Seen) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        for app in self.plan.graph.apps() {
            if self.step(app).is_in_progress() {
                let seen = seen[app.position()].as_deref();
                let cause = Cause::Deadline { before: self.pending(app, seen) };
                events.push(failed(app, FailState::TimedOut, cause, seen));
            } else if self.waits(app) {
                events.push(Event::Skipped { app, because: Because::Deadline });
            }
        }
        events.push(self.finished(seen, Verdict::Deadline));
        events
    }

    /// What a step that is not over waits for.
    #[must_use]
    pub fn pending(&self, app: AppIx, seen: Option<&Observation>) -> Pending {
        let step = self.step(app);
        match &step.phase {
            Phase::Syncing(syncing) => match &syncing.unanswered {
                Some(unanswered) => Pending::Answer { message: unanswered.message.clone() },
                None => Pending::Sync,
            },
            Phase::Waiting | Phase::Retrying { .. } => match &step.held_up {
                Some((_, BlockedBy::Operation { by })) => {
                    Pending::ForeignOperation { by: by.clone().into() }
                }
                Some((_, BlockedBy::NotCompared)) | None => Pending::Attempt,
            },
            Phase::Removing { .. } => {
                let deleting = seen.and_then(|seen| seen.deleting.as_ref());
                let finalizers = deleting.map_or_else(Vec::new, |d| d.finalizers.clone());
                Pending::Removal { finalizers }
            }
            Phase::Converging(converging) => {
                let missing = seen.and_then(|seen| self.missing(app, seen, converging));
                Pending::Gate { missing }
            }
            Phase::Done { .. } | Phase::Failed(_) | Phase::Skipped(_) | Phase::Removed { .. } => {
                Pending::Gate { missing: None }
            }
        }
    }

    fn missing(&self, app: AppIx, seen: &Observation, converging: &Converging) -> Option<Missing> {
        match self.gate(app, seen, converging) {
            Applied::NotYet(missing) | Applied::Suspect(_, missing) => Some(missing),
            Applied::Done
            | Applied::Failed(_)
            | Applied::Replaced { .. }
            | Applied::Moved { .. } => None,
        }
    }
}
