//! What a look at an app means for its step, in a deployment.

use std::time::Duration;

use tiphys_model::{AppIx, Health, OperationId, Role};

use super::step::{Converging, Syncing};
use super::{
    ANSWER_TIMEOUT, DRIFT, MOVES, Machine, NOTICE, Phase, REFRESH_INTERVAL, RESEND, TROUBLE,
    TROUBLE_REFRESHES,
};
use crate::cause::Cause;
use crate::event::{Attempt, BlockedBy, Event, Evidence, FailState, How};
use crate::gate::{self, Applied, Expectation, OperationProgress, Suspicion};
use crate::observation::Observation;
use crate::planted::planted;
use crate::time::Time;

impl Machine {
    pub(super) fn observe_deployment(
        &self,
        now: Time,
        seen: Option<&Observation>,
        app: AppIx,
    ) -> Vec<Event> {
        if !self.run.begun {
            return Vec::new();
        }
        let mut events = match &self.step(app).phase {
            Phase::Waiting => self.observe_waiting(now, seen, app),
            Phase::Syncing(syncing) => self.observe_syncing(now, seen, app, syncing),
            Phase::Converging(converging) => self.observe_converging(now, seen, app, converging),
            Phase::Retrying { until, .. } if *until <= now && self.run.interrupted.is_none() => {
                self.try_again(now, seen, app)
            }
            Phase::Done { ailing_since, .. } => self.observe_done(now, seen, app, *ailing_since),
            Phase::Failed(_) => self.errand_again(now, app, Event::TerminateAsked { app }),
            Phase::Retrying { .. }
            | Phase::Skipped(_)
            | Phase::Removing { .. }
            | Phase::Removed { .. } => Vec::new(),
        };
        let waited_for = matches!(self.step(app).phase, Phase::Syncing(_) | Phase::Converging(_));
        if events.is_empty() && waited_for && self.read_due(app) <= now {
            events.extend(self.nudge(now, seen, app));
            events.push(Event::ReadAsked { app });
        }
        events
    }

    /// When an app that is waited for is to be looked at, if it shows nothing new.
    pub(super) fn read_due(&self, app: AppIx) -> Time {
        let step = self.step(app);
        match &step.phase {
            Phase::Syncing(Syncing { since, accepted: Some(_), .. }) if step.looked <= *since => {
                *since + NOTICE
            }
            _ => step.looked + ANSWER_TIMEOUT,
        }
    }

    /// A refresh, if what is waited for does not come: the operation that Argo CD has taken does not
    /// begin, or the app does not become well. It may have missed that it should, or that it has.
    fn nudge(&self, now: Time, seen: Option<&Observation>, app: AppIx) -> Option<Event> {
        let missed = match &self.step(app).phase {
            Phase::Syncing(Syncing { operation, accepted: Some(_), .. }) => {
                let ours = |id: &Option<OperationId>| id.as_ref() == Some(operation);
                let asked = seen?.operation.as_ref().is_some_and(|asked| ours(&asked.id));
                let begun = seen?.last.as_ref().is_some_and(|last| ours(&last.operation.id));
                asked && !begun
            }
            Phase::Converging(_) => seen?.health_in_full() != Health::Healthy,
            _ => false,
        };
        let refresh = &self.step(app).refresh;
        let due = refresh.last_asked.is_none_or(|last| now.since(last) >= REFRESH_INTERVAL);
        let idle = refresh.in_flight.is_none_or(|asked| now.since(asked.at) >= ANSWER_TIMEOUT);
        (missed && due && idle).then_some(Event::RefreshAsked { app })
    }

    fn observe_waiting(&self, now: Time, seen: Option<&Observation>, app: AppIx) -> Vec<Event> {
        let step = self.step(app);
        if let Some(spared) = step.refresh.spared {
            return self.observe_spared(now, seen, app, spared).into_iter().collect();
        }
        if self.role(app) == Role::Verify && step.refresh.fresh {
            return match seen {
                Some(seen) if seen.health_in_full() == Health::Healthy => {
                    vec![Event::Done { app, how: How::AlreadyCurrent }]
                }
                Some(seen) => {
                    let cause = Cause::UnhealthyOutside { health: seen.health_in_full() };
                    vec![failed(app, FailState::Failed, cause, Some(seen))]
                }
                None => vec![failed(app, FailState::Failed, Cause::NoApplication, None)],
            };
        }
        if let Some((since, why)) = &step.held_up {
            let still = seen.is_some_and(|seen| match why {
                BlockedBy::Operation { .. } => seen.operation.is_some(),
                BlockedBy::NotCompared => !seen.compared_to_spec,
            });
            if !still {
                return vec![Event::Unblocked { app }];
            }
            if now.since(*since) >= self.sync_timeout(app) {
                let cause = match why {
                    BlockedBy::Operation { by } => {
                        Cause::ForeignOperation { by: by.clone().into() }
                    }
                    BlockedBy::NotCompared => {
                        Cause::Comparison { message: "not compared with its current spec".into() }
                    }
                };
                return vec![failed(app, FailState::TimedOut, cause, seen)];
            }
        }
        self.ask_for_refresh(now, app).into_iter().collect()
    }

    /// Another refresh, if one is wanted or got no answer, and one is due.
    fn ask_for_refresh(&self, now: Time, app: AppIx) -> Option<Event> {
        let refresh = &self.step(app).refresh;
        let due = refresh.last_asked.is_none_or(|last| now.since(last) >= REFRESH_INTERVAL);
        let unanswered =
            refresh.in_flight.is_some_and(|asked| now.since(asked.at) >= ANSWER_TIMEOUT);
        let wanted = refresh.wanted && refresh.in_flight.is_none();
        planted!(RefreshTooSoon => let due = true);
        planted!(NeverAskAgain => let unanswered = false);
        ((wanted && due) || unanswered).then_some(Event::RefreshAsked { app })
    }

    fn observe_syncing(
        &self,
        now: Time,
        seen: Option<&Observation>,
        app: AppIx,
        syncing: &Syncing,
    ) -> Vec<Event> {
        let Some(seen) = seen else {
            return vec![failed(app, FailState::Failed, Cause::NoApplication, None)];
        };
        let progress = gate::operation(seen, &syncing.operation);
        if progress.is_ours() && syncing.accepted.is_none() {
            return vec![Event::Accepted { app, version: seen.version }];
        }
        // Before the request was taken, an older operation is no news.
        let after_answer = syncing.accepted.is_some_and(|version| seen.version > version);
        match progress {
            OperationProgress::Succeeded(_) => return vec![Event::Converging { app }],
            OperationProgress::Failed { message } => {
                let cause = Cause::OperationFailed { message };
                return self.attempt_failed(now, app, syncing.attempt, cause, seen);
            }
            OperationProgress::Replaced { by } if after_answer => {
                let cause = Cause::Stolen { by: by.into() };
                return self.attempt_failed(now, app, syncing.attempt, cause, seen);
            }
            OperationProgress::Unseen if after_answer => {
                let cause = Cause::Stolen { by: "someone else".into() };
                return self.attempt_failed(now, app, syncing.attempt, cause, seen);
            }
            OperationProgress::Running
            | OperationProgress::Unseen
            | OperationProgress::Replaced { .. } => {}
        }
        if now.since(syncing.since) >= self.sync_timeout(app) {
            let (state, cause) = match &syncing.unanswered {
                Some(unanswered) => {
                    (FailState::Errored, Cause::Unreachable { message: unanswered.message.clone() })
                }
                None => (FailState::TimedOut, Cause::SyncTimeout),
            };
            return vec![failed(app, state, cause, Some(seen))];
        }
        match &syncing.unanswered {
            Some(unanswered) if unanswered.looked && seen.last != syncing.before => {
                let by = seen.last.as_ref().map(|last| last.operation.by.clone().into());
                let cause = Cause::Stolen { by: by.unwrap_or_else(|| "someone else".into()) };
                self.attempt_failed(now, app, syncing.attempt, cause, seen)
            }
            Some(unanswered) if unanswered.resend_due().is_some_and(|due| due <= now) => {
                vec![Event::Resent { app }]
            }
            _ => Vec::new(),
        }
    }

    fn observe_converging(
        &self,
        now: Time,
        seen: Option<&Observation>,
        app: AppIx,
        converging: &Converging,
    ) -> Vec<Event> {
        let Some(seen) = seen else {
            return vec![failed(app, FailState::Failed, Cause::NoApplication, None)];
        };
        let verdict = self.gate(app, seen, converging);
        let attempt = converging.attempt;
        let (missing, suspicion) = match verdict {
            Applied::Done => return vec![Event::Done { app, how: How::Applied }],
            Applied::Failed(cause) => {
                return vec![failed(app, FailState::Failed, cause, Some(seen))];
            }
            Applied::Replaced { by } => {
                let cause = Cause::Stolen { by: by.into() };
                return self.attempt_failed(now, app, attempt, cause, seen);
            }
            Applied::Moved { to } => {
                let from = converging.revisions.clone();
                let cause = Cause::RevisionMoved { from: from.clone(), to: to.clone() };
                let mut events = vec![Event::RevisionMoved { app, from, to }];
                events.extend(self.attempt_failed(now, app, attempt, cause, seen));
                return events;
            }
            Applied::NotYet(missing) => (missing, None),
            Applied::Suspect(suspicion, missing) => (missing, Some(suspicion)),
        };
        if now.since(converging.since) >= self.health_timeout(app) {
            let cause = Cause::HealthTimeout { missing: Some(missing) };
            return vec![failed(app, FailState::TimedOut, cause, Some(seen))];
        }
        let mut events = self.trouble(now, app, suspicion.as_ref(), seen);
        if !events.iter().any(|event| matches!(event, Event::Failed { .. })) {
            let wants =
                missing.wants_refresh() || matches!(suspicion, Some(Suspicion::Comparison { .. }));
            events.extend(self.refresh_while_converging(now, app, wants));
        }
        events
    }

    pub(super) fn gate(&self, app: AppIx, seen: &Observation, converging: &Converging) -> Applied {
        gate::applied(
            seen,
            Expectation {
                operation: &converging.operation,
                revisions: &converging.revisions,
                pinned: converging.pinned,
                refreshed: converging.refreshed,
                tolerate_drift: &self.plan.app(app).app.tolerate_drift,
            },
        )
    }

    fn refresh_while_converging(&self, now: Time, app: AppIx, wants: bool) -> Option<Event> {
        let refresh = &self.step(app).refresh;
        if !wants || refresh.wanted || refresh.in_flight.is_some() {
            return self.ask_for_refresh(now, app);
        }
        let due = refresh.last_asked.is_none_or(|last| now.since(last) >= REFRESH_INTERVAL);
        Some(if due { Event::RefreshAsked { app } } else { Event::RefreshWanted { app } })
    }

    /// Keeps an eye on trouble that may pass, and calls it a failure when it does not.
    pub(super) fn trouble(
        &self,
        now: Time,
        app: AppIx,
        suspicion: Option<&Suspicion>,
        seen: &Observation,
    ) -> Vec<Event> {
        match (&self.step(app).trouble, suspicion) {
            (None, None) => Vec::new(),
            (Some(_), None) => vec![Event::Cleared { app }],
            (Some(known), Some(suspicion)) if known.suspicion.is_same(suspicion) => {
                let (patience, refreshes) = match suspicion {
                    Suspicion::Comparison { .. } => (TROUBLE, TROUBLE_REFRESHES),
                    Suspicion::OutOfSync { .. } => (DRIFT, TROUBLE_REFRESHES),
                    Suspicion::Degraded { .. } => (TROUBLE, 0),
                };
                if now.since(known.since) >= patience && known.refreshes >= refreshes {
                    vec![failed(app, FailState::Failed, suspicion.cause(), Some(seen))]
                } else {
                    Vec::new()
                }
            }
            (_, Some(suspicion)) => {
                vec![Event::Suspected { app, suspicion: suspicion.clone() }]
            }
        }
    }

    fn observe_done(
        &self,
        now: Time,
        seen: Option<&Observation>,
        app: AppIx,
        ailing_since: Option<Time>,
    ) -> Vec<Event> {
        let health = seen.map_or(Health::Missing, Observation::health_in_full);
        match (health, ailing_since) {
            (Health::Healthy, Some(_)) => {
                planted!(DoneTwice => return vec![Event::Done { app, how: How::Applied }]);
                vec![Event::Recovered { app }]
            }
            (Health::Healthy, None) => self.errand_again(now, app, Event::HandOffAsked { app }),
            (_, None) => vec![Event::Ailing { app, health: Some(health) }],
            (_, Some(since)) if now.since(since) >= self.health_timeout(app) => {
                planted!(WaitForUnhealthyForEver => return Vec::new());
                let mut events = self.skip_followers(app, crate::event::Because::Unhealthy(app));
                events.extend(self.errand_again(now, app, Event::HandOffAsked { app }));
                events
            }
            (_, Some(_)) => self.errand_again(now, app, Event::HandOffAsked { app }),
        }
    }

    /// Asks once more for what has not been answered.
    fn errand_again(&self, now: Time, app: AppIx, errand: Event) -> Vec<Event> {
        let since = self.step(app).errand_since;
        let unanswered = since.is_some_and(|since| now.since(since) >= ANSWER_TIMEOUT);
        unanswered.then_some(errand).into_iter().collect()
    }

    /// Another attempt after a back-off, or the end of the step.
    fn attempt_failed(
        &self,
        now: Time,
        app: AppIx,
        attempt: u32,
        cause: Cause,
        seen: &Observation,
    ) -> Vec<Event> {
        let retry = self.plan.app(app).app.retry;
        let moves = self.step(app).moves;
        // Nothing was wrong with an attempt whose revision was overtaken.
        let (spent, wait) = if matches!(cause, Cause::RevisionMoved { .. }) {
            (moves >= MOVES, Duration::ZERO)
        } else {
            let failed = attempt.saturating_sub(moves);
            (failed > retry.limit, backoff(&retry.backoff, failed))
        };
        if spent {
            return vec![failed(app, FailState::Failed, cause, Some(seen))];
        }
        vec![Event::Retrying { app, cause, until: now + wait }]
    }

    /// The next attempt, once nobody else's operation is in the way.
    fn try_again(&self, now: Time, seen: Option<&Observation>, app: AppIx) -> Vec<Event> {
        let Some(seen) = seen else {
            return vec![failed(app, FailState::Failed, Cause::NoApplication, None)];
        };
        let Phase::Retrying { failed_attempts, .. } = self.step(app).phase else {
            return Vec::new();
        };
        let operation = self.operation_id(app, failed_attempts + 1);
        let attempt = |adopted| Attempt {
            operation: operation.clone(),
            revisions: seen.revisions.clone(),
            pinned: seen.pinned,
            before: seen.last.clone(),
            adopted,
        };
        // A request that was thought to be lost, or refused because of itself.
        if gate::operation(seen, &operation).is_ours() {
            return vec![Event::Syncing { app, attempt: attempt(Some(seen.version)) }];
        }
        if let Some(foreign) = &seen.operation {
            let by = foreign.by.clone();
            let too_long = self
                .step(app)
                .held_up
                .as_ref()
                .is_some_and(|(since, _)| now.since(*since) >= self.sync_timeout(app));
            if too_long {
                let cause = Cause::ForeignOperation { by: by.into() };
                return vec![failed(app, FailState::TimedOut, cause, Some(seen))];
            }
            return vec![
                Event::Blocked { app, why: BlockedBy::Operation { by } },
                Event::Postponed { app, until: now + RESEND },
            ];
        }
        vec![Event::Syncing { app, attempt: attempt(None) }]
    }
}

pub(super) fn failed(
    app: AppIx,
    state: FailState,
    cause: Cause,
    seen: Option<&Observation>,
) -> Event {
    let evidence = seen.map_or_else(Evidence::default, Evidence::from_observation);
    Event::Failed { app, state, cause, evidence }
}

/// The pause after the n-th failed attempt.
fn backoff(backoff: &tiphys_model::platform::Backoff, failed_attempts: u32) -> Duration {
    let factor = backoff.factor.saturating_pow(failed_attempts.saturating_sub(1));
    backoff.duration.saturating_mul(factor).min(backoff.max)
}
