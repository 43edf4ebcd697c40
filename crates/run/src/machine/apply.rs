//! The only mutator: one event, one change, or a refusal.

use tiphys_model::{AppIx, Role};

use super::step::{Converging, Phase, Syncing, Trouble, Unanswered};
use super::{Action, Machine};
use crate::effect::RequestNumber;
use crate::event::{Attempt, Because, Event, FailState, How};
use crate::planted::planted;
use crate::time::Time;

/// An event that must not happen in the state it was proposed for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} is not possible now: {why}")]
pub struct Illegal {
    pub event: Box<Event>,
    pub why: &'static str,
}

/// Why not, otherwise.
pub(super) type Applied = Result<(), &'static str>;

impl Machine {
    /// Changes the state by one event.
    pub fn apply(&mut self, at: Time, event: &Event) -> Result<(), Illegal> {
        let illegal = |why| Illegal { event: Box::new(event.clone()), why };
        let over = self.run.finished.is_some();
        planted!(AcceptEventsAfterTheEnd => let over = false);
        if over {
            return Err(illegal("the run is over"));
        }
        self.change(at, event).map_err(illegal)?;
        match event {
            // What retries or waits now does so for good.
            Event::Interrupted { .. } => self.plan.graph.apps().for_each(|app| self.set_timer(app)),
            Event::Skipped { app, .. } | Event::Failed { app, .. } => self.set_timers_around(*app),
            _ => {}
        }
        if let Some(app) = event.app() {
            self.requeue(app);
            self.set_timer(app);
        }
        Ok(())
    }

    fn change(&mut self, at: Time, event: &Event) -> Applied {
        let number = self.count_request(event);
        match event {
            Event::Begun => self.begin(),
            Event::Held => Ok(()),
            Event::Waiting { app, .. } => {
                planted!(UnstartWhenDependencyAils => return Ok(()));
                require(self.waits(*app), "it is not waiting")
            }
            Event::RefreshAsked { app } => self.refresh_asked(at, *app, number),
            Event::RefreshSpared { app, by } => self.spare(at, *app, *by),
            Event::Vouched { app } => self.vouch(at, *app),
            Event::RefreshWanted { app } => {
                self.want_refresh(*app);
                Ok(())
            }
            Event::Refreshed { app } => self.refreshed(*app),
            Event::Admitted { app } => {
                let step = &mut self.steps[app.position()];
                require(!step.admitted, "it has been admitted")?;
                step.admitted = true;
                Ok(())
            }
            Event::Blocked { app, why } => {
                self.steps[app.position()].held_up.get_or_insert((at, why.clone()));
                Ok(())
            }
            Event::Unblocked { app } => {
                self.steps[app.position()].held_up = None;
                Ok(())
            }
            Event::Syncing { app, attempt } => self.sync(at, *app, attempt, number),
            Event::Accepted { app, version } => {
                let syncing = self.syncing_mut(*app)?;
                syncing.accepted = Some(*version);
                syncing.unanswered = None;
                Ok(())
            }
            Event::Unanswered { app, message } => {
                let syncing = self.syncing_mut(*app)?;
                require(syncing.accepted.is_none(), "it has been accepted")?;
                let (message, resend_at) = (message.clone(), at + super::RESEND);
                syncing.unanswered =
                    Some(Unanswered { message, resend_at, look: number, looked: false });
                self.steps[app.position()].looked = at;
                Ok(())
            }
            Event::ReadReturned { app } => {
                let unanswered = self.syncing_mut(*app)?.unanswered.as_mut();
                unanswered.ok_or("nothing is unanswered")?.looked = true;
                Ok(())
            }
            Event::Resent { app } => {
                let syncing = self.syncing_mut(*app)?;
                require(syncing.accepted.is_none(), "it has been accepted")?;
                syncing.unanswered = None;
                syncing.request = number;
                Ok(())
            }
            Event::Postponed { app, until } => self.postpone(*app, *until),
            Event::Converging { app } => self.converge(at, *app),
            Event::RevisionMoved { app, .. } => {
                self.steps[app.position()].moves += 1;
                require(self.step(*app).is_in_progress(), "it is not in progress")
            }
            Event::Retrying { app, until, .. } => self.retry(*app, *until),
            Event::Suspected { app, suspicion } => {
                let trouble = Trouble { suspicion: suspicion.clone(), since: at, refreshes: 0 };
                self.steps[app.position()].trouble = Some(trouble);
                Ok(())
            }
            Event::Cleared { app } => {
                self.steps[app.position()].trouble = None;
                Ok(())
            }
            Event::Done { app, how } => self.done(*app, *how),
            Event::Ailing { app, .. } => self.set_ailing(*app, Some(at)),
            Event::Recovered { app } => self.set_ailing(*app, None),
            Event::Failed { app, state, .. } => self.fail(*app, *state),
            Event::Skipped { app, because } => self.skip(*app, *because),
            Event::Removing { app } => self.remove(at, *app),
            Event::Removed { app } => self.removed(*app),
            Event::HandOffAsked { app } | Event::TerminateAsked { app } => {
                self.errand(*app, Some(at))
            }
            Event::HandedOff { app } | Event::Terminated { app } => self.errand(*app, None),
            Event::ReadAsked { app } => {
                self.steps[app.position()].looked = at;
                Ok(())
            }
            Event::Interrupted { signal } => {
                self.run.interrupted = Some(*signal);
                Ok(())
            }
            Event::Finished { verdict, .. } => {
                self.run.finished = Some(*verdict);
                Ok(())
            }
        }
    }

    /// The number of the request that an event asks for.
    fn count_request(&mut self, event: &Event) -> RequestNumber {
        match event {
            Event::RefreshAsked { app }
            | Event::Syncing { app, .. }
            | Event::Resent { app }
            | Event::Unanswered { app, .. }
            | Event::Postponed { app, .. }
            | Event::ReadAsked { app } => {
                let requests = &mut self.steps[app.position()].requests;
                *requests += 1;
                *requests
            }
            _ => 0,
        }
    }

    fn begin(&mut self) -> Applied {
        require(!self.run.begun, "it has begun")?;
        self.run.begun = true;
        for app in self.plan.graph.apps() {
            self.requeue(app);
        }
        Ok(())
    }

    fn sync(&mut self, at: Time, app: AppIx, attempt: &Attempt, number: RequestNumber) -> Applied {
        require(self.action == Action::Deploy, "this run removes")?;
        let count = match &self.step(app).phase {
            Phase::Waiting => {
                self.may_start(app)?;
                1
            }
            Phase::Retrying { failed_attempts, until } => {
                require(*until <= at, "its time has not come")?;
                failed_attempts + 1
            }
            _ => return Err("it neither waits nor retries"),
        };
        planted!(ForgetAttempts => let count = 1);
        let syncing = Syncing {
            attempt: count,
            since: at,
            operation: attempt.operation.clone(),
            revisions: attempt.revisions.clone(),
            pinned: attempt.pinned,
            before: attempt.before.clone(),
            request: number,
            accepted: attempt.adopted,
            unanswered: None,
        };
        self.enter(app, Phase::Syncing(syncing));
        let step = &mut self.steps[app.position()];
        step.started.get_or_insert(at);
        step.held_up = None;
        step.looked = at;
        Ok(())
    }

    fn converge(&mut self, at: Time, app: AppIx) -> Applied {
        let Phase::Syncing(syncing) = &self.step(app).phase else { return Err("it does not sync") };
        planted!(NoHealthTimeout => let at = Time::from_millis(u64::MAX));
        let converging = Converging {
            attempt: syncing.attempt,
            since: at,
            operation: syncing.operation.clone(),
            revisions: syncing.revisions.clone(),
            pinned: syncing.pinned,
            refreshed: false,
        };
        self.enter(app, Phase::Converging(converging));
        // One that was asked for before the operation had ended proves nothing about it.
        self.steps[app.position()].refresh.in_flight = None;
        Ok(())
    }

    fn retry(&mut self, app: AppIx, until: Time) -> Applied {
        let failed_attempts = match &self.step(app).phase {
            Phase::Syncing(syncing) => syncing.attempt,
            Phase::Converging(converging) => converging.attempt,
            _ => return Err("there is no attempt that could have failed"),
        };
        self.enter(app, Phase::Retrying { failed_attempts, until });
        Ok(())
    }

    fn postpone(&mut self, app: AppIx, until: Time) -> Applied {
        let failed_attempts = match &self.step(app).phase {
            Phase::Syncing(syncing) => syncing.attempt - 1,
            Phase::Retrying { failed_attempts, .. } => *failed_attempts,
            _ => return Err("there is no attempt that could be postponed"),
        };
        self.enter(app, Phase::Retrying { failed_attempts, until });
        Ok(())
    }

    fn done(&mut self, app: AppIx, how: How) -> Applied {
        planted!(DoneTwice => if self.step(app).is_over() { return self.set_ailing(app, None) });
        match (&self.step(app).phase, how) {
            (Phase::Converging(_), How::Applied) => {}
            (Phase::Waiting, How::AlreadyCurrent) if self.role(app) == Role::Verify => {
                require(self.run.begun, "the run has not begun")?;
                self.run.unverified -= 1;
            }
            (Phase::Waiting, How::AlreadyCurrent) => self.may_start(app)?,
            _ => return Err("it cannot be done from where it is"),
        }
        self.enter(app, Phase::Done { how, ailing_since: None });
        Ok(())
    }

    fn set_ailing(&mut self, app: AppIx, since: Option<Time>) -> Applied {
        let before = self.step(app).ailing_since();
        require(before.is_some() != since.is_some(), "it is so already")?;
        let phase = match self.step(app).phase {
            Phase::Done { how, .. } => Phase::Done { how, ailing_since: since },
            Phase::Removed { .. } => Phase::Removed { ailing_since: since },
            _ => return Err("it was not done"),
        };
        planted!(RestartWhatTurnedUnhealthy => let phase = Phase::Waiting);
        self.enter(app, phase);
        Ok(())
    }

    fn fail(&mut self, app: AppIx, state: FailState) -> Applied {
        require(!self.step(app).is_over(), "it is over")?;
        self.enter(app, Phase::Failed(state));
        Ok(())
    }

    fn skip(&mut self, app: AppIx, because: Because) -> Applied {
        let waits = self.waits(app);
        planted!(SkipWhatHasStarted => let waits = true);
        require(waits, "it has started")?;
        self.enter(app, Phase::Skipped(because));
        Ok(())
    }

    fn remove(&mut self, at: Time, app: AppIx) -> Applied {
        require(self.action == Action::Teardown, "this run deploys")?;
        match self.step(app).phase {
            Phase::Waiting => self.may_start(app)?,
            // Sent again: whether the first request arrived is unknown.
            Phase::Removing { .. } => {
                self.steps[app.position()].looked = at;
                return Ok(());
            }
            _ => return Err("it does not wait"),
        }
        self.enter(app, Phase::Removing { since: at });
        let step = &mut self.steps[app.position()];
        step.started.get_or_insert(at);
        step.looked = at;
        Ok(())
    }

    fn removed(&mut self, app: AppIx) -> Applied {
        match self.step(app).phase {
            Phase::Waiting => self.may_start(app)?,
            Phase::Removing { .. } => {}
            _ => return Err("it was not being removed"),
        }
        self.enter(app, Phase::Removed { ailing_since: None });
        Ok(())
    }

    fn errand(&mut self, app: AppIx, since: Option<Time>) -> Applied {
        let step = &mut self.steps[app.position()];
        require(matches!(step.phase, Phase::Done { .. } | Phase::Failed(_)), "it is not over")?;
        let before = std::mem::replace(&mut step.errand_since, since);
        match (before, since) {
            (None, Some(_)) => self.run.errands += 1,
            (Some(_), None) => self.run.errands -= 1,
            // Asked again, because the first question got no answer.
            (Some(_), Some(_)) => {}
            (None, None) => return Err("nobody asked for it"),
        }
        Ok(())
    }

    /// INV-1 and INV-5: nothing starts before what it waits for is satisfied, now.
    fn may_start(&self, app: AppIx) -> Applied {
        require(self.run.begun, "the run has not begun")?;
        require(self.run.interrupted.is_none(), "the run was interrupted")?;
        require(self.run.unverified == 0, "apps outside the scope have not been verified")?;
        let satisfied = |other: &AppIx| self.step(*other).is_satisfied(self.role(*other));
        let satisfied = self.prerequisites(app).iter().all(satisfied);
        planted!(OneDoneIsEnough => let satisfied = true);
        planted!(RemoveAllAtOnce => let satisfied = true);
        require(satisfied, "what it waits for is not satisfied")?;
        require(self.step(app).admitted, "it has not been admitted")?;
        require(self.queue.first() == Some(app), "it is not its turn")
    }

    fn syncing_mut(&mut self, app: AppIx) -> Result<&mut Syncing, &'static str> {
        match &mut self.steps[app.position()].phase {
            Phase::Syncing(syncing) => Ok(syncing),
            _ => Err("it does not sync"),
        }
    }
}

pub(super) fn require(condition: bool, otherwise: &'static str) -> Applied {
    if condition { Ok(()) } else { Err(otherwise) }
}
