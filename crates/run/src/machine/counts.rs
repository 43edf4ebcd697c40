//! What follows from a step's phase: counts, room, the start queue, and what waits for it.

use tiphys_model::{AppIx, Role};

use super::step::{Phase, Step};
use super::{Action, Machine};
use crate::planted::planted;

impl Machine {
    /// Moves a step to a phase and keeps every count true.
    pub(super) fn enter(&mut self, app: AppIx, phase: Phase) {
        let (group, role) = (self.group(app), self.role(app));
        let step = &mut self.steps[app.position()];
        let before = Summary::of(step, role);
        step.phase = phase;
        step.trouble = None;
        let after = Summary::of(step, role);
        match (before.in_progress, after.in_progress) {
            (false, true) => {
                planted!(IgnoreConcurrency => self.queue.release(group));
                self.queue.occupy(group);
            }
            (true, false) => self.queue.release(group),
            _ => {}
        }
        let count = |counter: &mut usize, before: bool, after: bool| match (before, after) {
            (false, true) => *counter += 1,
            (true, false) => *counter -= 1,
            _ => {}
        };
        count(&mut self.run.unfinished, !before.over, !after.over);
        count(&mut self.run.lost, before.lost, after.lost);
        count(&mut self.run.ailing, before.ailing, after.ailing);
        count(&mut self.run.syncing, before.syncing, after.syncing);
        if before.satisfied != after.satisfied {
            self.tell_followers(app, after.satisfied);
        }
    }

    fn tell_followers(&mut self, app: AppIx, satisfied: bool) {
        for position in 0..self.followers(app).len() {
            let follower = self.followers(app)[position];
            let role = self.role(follower);
            let step = &mut self.steps[follower.position()];
            let before = Summary::of(step, role).satisfied;
            if satisfied {
                step.unmet -= 1;
            } else {
                step.unmet += 1;
            }
            let after = Summary::of(step, role).satisfied;
            if before != after {
                self.tell_followers(follower, after);
            }
            self.requeue(follower);
        }
    }

    /// Whether the step waits for nothing but room, and so stands in the queue.
    pub(super) fn requeue(&mut self, app: AppIx) {
        let step = self.step(app);
        let met = step.unmet == 0;
        planted!(OneDoneIsEnough => let met = met || step.unmet < self.prerequisites(app).len());
        planted!(RemoveAllAtOnce => let met = true);
        let decided = self.action == Action::Teardown || step.refresh.fresh;
        let ready = self.run.begun
            && step.phase == Phase::Waiting
            && met
            && step.admitted
            && decided
            && self.role(app) == Role::Act;
        if ready == step.queued {
            return;
        }
        let (priority, group) = (self.priority(app), self.group(app));
        self.steps[app.position()].queued = ready;
        if ready {
            self.queue.insert(app, priority, group);
        } else {
            self.queue.remove(app, priority, group);
        }
    }
}

/// What the counts depend on.
#[expect(clippy::struct_excessive_bools, reason = "each is one independent count")]
struct Summary {
    over: bool,
    in_progress: bool,
    lost: bool,
    ailing: bool,
    syncing: bool,
    satisfied: bool,
}

impl Summary {
    fn of(step: &Step, role: Role) -> Self {
        Summary {
            over: step.is_over(),
            in_progress: step.is_in_progress(),
            lost: matches!(step.phase, Phase::Failed(_) | Phase::Skipped(_)),
            ailing: step.ailing_since().is_some(),
            syncing: matches!(step.phase, Phase::Syncing(_)),
            satisfied: step.is_satisfied(role),
        }
    }
}
