//! What follows from what: triggers in, proposed events out. Nothing here changes anything.

use std::sync::Arc;

use tiphys_model::platform::Hold;
use tiphys_model::{AppIx, Role};

use super::step::Syncing;
use super::{Action, Machine, Phase};
use crate::cause::Cause;
use crate::effect::{Answer, Clock, SyncAnswer};
use crate::event::{Because, Event, Evidence, FailState, Signal, SparedBy, Verdict, WaitingOn};
use crate::observation::Observation;
use crate::planted::planted;
use crate::time::Time;

/// The newest look at each app; `None`: it does not exist.
pub(crate) type Seen = [Option<Arc<Observation>>];

/// What makes a decision necessary.
#[derive(Debug)]
pub(crate) enum Trigger {
    Begin {
        held: bool,
        clock: Clock,
    },
    /// Something about the app is new, or its timer is due.
    Look(AppIx),
    Answer(AppIx, Answer),
    /// Others let the app start.
    Admission(AppIx),
    /// An event was applied; it may have consequences for others.
    Applied(Event),
    /// The run's own deadline has passed.
    Deadline,
    Interrupt(Signal),
    LeaseLost,
}

impl Machine {
    /// Proposes what follows from a trigger.
    pub(crate) fn decide(&self, now: Time, seen: &Seen, trigger: &Trigger) -> Vec<Event> {
        if self.run.finished.is_some() {
            return Vec::new();
        }
        match trigger {
            Trigger::Begin { held, clock } => self.begin_run(seen, *held, *clock),
            Trigger::Look(app) => self.look(now, seen[app.position()].as_deref(), *app),
            Trigger::Answer(app, answer) => self.answer(now, *app, answer),
            Trigger::Admission(app) => {
                let waits = !self.step(*app).admitted && !self.step(*app).is_over();
                waits.then_some(Event::Admitted { app: *app }).into_iter().collect()
            }
            Trigger::Applied(event) => self.follow_up(now, seen, event),
            Trigger::Deadline => self.run_out_of_time(seen),
            Trigger::Interrupt(signal) => self.interrupt(seen, *signal),
            Trigger::LeaseLost => vec![self.finished(seen, Verdict::LeaseLost)],
        }
    }

    fn begin_run(&self, seen: &Seen, held: bool, clock: Clock) -> Vec<Event> {
        if self.run.begun {
            return Vec::new();
        }
        let mut events = vec![Event::Begun];
        events.extend(held.then_some(Event::Held));
        for app in self.plan.graph.apps() {
            if !self.prerequisites(app).is_empty() {
                events.push(Event::Waiting { app, on: WaitingOn::Prerequisites });
            }
        }
        if self.action == Action::Deploy {
            events.extend(self.first_refreshes(seen, clock));
        }
        events
    }

    fn look(&self, now: Time, seen: Option<&Observation>, app: AppIx) -> Vec<Event> {
        match self.action {
            Action::Deploy => self.observe_deployment(now, seen, app),
            Action::Teardown => self.observe_removal(now, seen, app),
        }
    }

    fn answer(&self, now: Time, app: AppIx, answer: &Answer) -> Vec<Event> {
        let step = self.step(app);
        let syncing = match &step.phase {
            Phase::Syncing(syncing) => Some(syncing),
            _ => None,
        };
        let failed =
            |state, cause| vec![Event::Failed { app, state, cause, evidence: Evidence::default() }];
        match answer {
            Answer::Sync { number, answer } => {
                let asked = |s: &&Syncing| s.accepted.is_none() && s.request == *number;
                if !syncing.as_ref().is_some_and(asked) {
                    return Vec::new();
                }
                match answer {
                    SyncAnswer::Accepted { version } => {
                        vec![Event::Accepted { app, version: *version }]
                    }
                    SyncAnswer::Conflict => {
                        vec![Event::Postponed { app, until: now + super::RESEND }]
                    }
                    SyncAnswer::Unanswered { message } => {
                        vec![Event::Unanswered { app, message: message.clone() }]
                    }
                    SyncAnswer::Refused { message } => {
                        failed(FailState::Errored, Cause::Refused { message: message.clone() })
                    }
                }
            }
            Answer::Looked { number } => {
                let unanswered = syncing.and_then(|syncing| syncing.unanswered.as_ref());
                let asked = unanswered.is_some_and(|u| u.look <= *number && !u.looked);
                asked.then_some(Event::ReadReturned { app }).into_iter().collect()
            }
            Answer::Refreshed { number } if step.refresh.awaits(*number) => {
                vec![Event::Refreshed { app }]
            }
            Answer::RefreshFailed { number } if step.refresh.awaits(*number) => {
                vec![Event::RefreshWanted { app }]
            }
            Answer::HandedOff if step.errand_since.is_some() => vec![Event::HandedOff { app }],
            Answer::Terminated if step.errand_since.is_some() => vec![Event::Terminated { app }],
            Answer::DeleteRefused { message } if matches!(step.phase, Phase::Removing { .. }) => {
                failed(FailState::Errored, Cause::Refused { message: message.clone() })
            }
            // Late or repeated, or what the watch or the end of the patience will tell.
            _ => Vec::new(),
        }
    }

    fn follow_up(&self, now: Time, seen: &Seen, event: &Event) -> Vec<Event> {
        match event {
            Event::Refreshed { app } => {
                let mut events = self.look(now, seen[app.position()].as_deref(), *app);
                events.extend(self.testify(seen, *app));
                events
            }
            Event::RefreshSpared { app, by: SparedBy::Comparison }
            | Event::Vouched { app }
            | Event::Converging { app }
            | Event::Accepted { app, .. }
            | Event::ReadReturned { app }
            | Event::Unblocked { app }
            | Event::RefreshWanted { app } => self.look(now, seen[app.position()].as_deref(), *app),
            Event::Begun if self.action == Action::Teardown => {
                let outside = self.plan.graph.apps().filter(|app| self.role(*app) == Role::Verify);
                outside
                    .map(|app| self.judge_outside(seen[app.position()].as_deref(), app))
                    .collect()
            }
            Event::Done { app, .. } if self.hands_off(*app) => {
                vec![Event::HandOffAsked { app: *app }]
            }
            Event::Failed { app, .. } if self.role(*app) == Role::Verify => {
                let waiting = self.plan.graph.apps().filter(|app| self.waits(*app));
                let because = Because::Outside(*app);
                waiting.map(|app| Event::Skipped { app, because }).collect()
            }
            Event::Failed { app, cause, .. } => {
                planted!(FailedCountsAsDone => return Vec::new());
                let mut events = self.skip_followers(*app, Because::App(*app));
                if *cause == Cause::SyncTimeout {
                    events.push(Event::TerminateAsked { app: *app });
                }
                events
            }
            Event::Skipped { app, .. } => {
                planted!(SkipOnlyDirectDependants => return Vec::new());
                self.skip_followers(*app, Because::App(*app))
            }
            Event::Ailing { app, .. } => {
                let waits = |follower: &&AppIx| {
                    planted!(UnstartWhenDependencyAils => return !self.step(**follower).is_over());
                    self.waits(**follower)
                };
                let waiting = self.followers(*app).iter().filter(waits);
                let on = WaitingOn::Unhealthy(*app);
                waiting.map(|app| Event::Waiting { app: *app, on }).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn skip_followers(&self, app: AppIx, because: Because) -> Vec<Event> {
        let skipped = |follower: &&AppIx| {
            planted!(SkipWhatHasStarted => return !self.step(**follower).is_over());
            self.waits(**follower)
        };
        let followers = self.followers_inside(app);
        let followers = followers.iter().filter(skipped);
        let events = followers.map(|app| Event::Skipped { app: *app, because }).collect();
        planted!(FollowersInHashOrder => let events = crate::planted::hash_order(events));
        events
    }

    pub(super) fn waits(&self, app: AppIx) -> bool {
        self.step(app).phase == Phase::Waiting
    }

    /// Whether a step that is Done goes back to Argo CD's own care.
    fn hands_off(&self, app: AppIx) -> bool {
        self.action == Action::Deploy
            && self.role(app) == Role::Act
            && self.plan.policies.hold == Hold::DuringRun
    }

    fn interrupt(&self, seen: &Seen, signal: Signal) -> Vec<Event> {
        let event = Event::Interrupted { signal };
        match (self.run.interrupted, signal) {
            (None, Signal::Interrupt) => vec![event],
            (Some(_), _) | (_, Signal::Terminate) => {
                vec![event, self.finished(seen, Verdict::Interrupted(signal))]
            }
        }
    }
}
