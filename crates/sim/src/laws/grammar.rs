//! Laws that can be read off the log of one driver: what may follow what, and limits.

use tiphys_model::{AppIx, Plan, Role};
use tiphys_run::{Action, Event, How};

use super::{Broken, Law};
use crate::engine::Recorded;

/// A source that moves on is followed five times; the next time is the end of the step.
const MOVES: u32 = 6;

/// What the log has said of a step so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    InProgress,
    Done { well: bool },
    Over,
}

struct Reader<'a> {
    plan: &'a Plan,
    action: Action,
    said: Vec<Said>,
    in_progress: usize,
    retries: Vec<u32>,
    moves: Vec<u32>,
    by_group: Vec<usize>,
    broken: Vec<Broken>,
}

pub(super) fn check(plan: &Plan, action: Action, records: &[Recorded]) -> Vec<Broken> {
    let mut reader = Reader {
        plan,
        action,
        said: vec![Said::Nothing; plan.apps.len()],
        in_progress: 0,
        retries: vec![0; plan.apps.len()],
        moves: vec![0; plan.apps.len()],
        by_group: vec![0; plan.policies.groups.len()],
        broken: Vec::new(),
    };
    for record in records {
        reader.read(&record.event);
    }
    reader.broken
}

impl Reader<'_> {
    fn read(&mut self, event: &Event) {
        match event {
            Event::Syncing { app, attempt } => match self.said[app.position()] {
                Said::Nothing => self.starts(*app),
                Said::InProgress => {
                    // One that was found under way carries the number of another run.
                    let limit = self.plan.app(*app).app.retry.limit + self.moves[app.position()];
                    let within =
                        attempt.operation.attempt <= limit + 1 || attempt.adopted.is_some();
                    self.require(within, Law::Limits, *app, "exceeds its attempts");
                }
                Said::Done { .. } | Said::Over => {
                    self.blame(Law::NeverUnstarted, *app, "syncs again after it ended");
                }
            },
            Event::Removing { app } if self.said[app.position()] == Said::Nothing => {
                self.starts(*app);
            }
            Event::Converging { app } | Event::Retrying { app, .. } => {
                let started = matches!(self.said[app.position()], Said::InProgress);
                self.require(started, Law::NeverUnstarted, *app, "continues without a start");
                if let Event::Retrying { .. } = event {
                    self.retries(*app);
                }
            }
            Event::Done { app, how } => {
                let started = matches!(self.said[app.position()], Said::InProgress);
                let expected = *how == How::Applied;
                self.require(
                    started == expected,
                    Law::EventsAreTheState,
                    *app,
                    "is done out of order",
                );
                self.ends(*app, Said::Done { well: true });
            }
            Event::Removed { app } => self.ends(*app, Said::Done { well: true }),
            Event::Ailing { app, .. } => self.said[app.position()] = Said::Done { well: false },
            Event::Recovered { app } => self.said[app.position()] = Said::Done { well: true },
            Event::Failed { app, .. } => self.ends(*app, Said::Over),
            Event::Skipped { app, .. } => {
                let untouched = self.said[app.position()] == Said::Nothing;
                self.require(untouched, Law::NeverUnstarted, *app, "is skipped after it started");
                self.ends(*app, Said::Over);
            }
            Event::RevisionMoved { app, .. } => {
                let moves = &mut self.moves[app.position()];
                *moves += 1;
                let within = *moves <= MOVES;
                self.require(within, Law::Limits, *app, "follows its source without end");
            }
            Event::Waiting { app, .. } => {
                let untouched = self.said[app.position()] == Said::Nothing;
                self.require(untouched, Law::NeverUnstarted, *app, "waits after it started");
            }
            _ => {}
        }
    }

    fn retries(&mut self, app: AppIx) {
        let retries = &mut self.retries[app.position()];
        *retries += 1;
        let limit = self.plan.app(app).app.retry.limit + self.moves[app.position()];
        let within = *retries <= limit;
        self.require(within, Law::Limits, app, "is retried more often than its limit");
    }

    fn starts(&mut self, app: AppIx) {
        let (prerequisites, law) = match self.action {
            Action::Deploy => (self.plan.graph.dependencies(app), Law::StartCondition),
            Action::Teardown => (self.plan.graph.dependants(app), Law::ReverseTeardown),
        };
        for other in prerequisites {
            if self.said[other.position()] != (Said::Done { well: true }) {
                let name = &self.plan.app(*other).app.name;
                let what = format!("{} starts before {name} is done and healthy", self.name(app));
                self.broken.push(Broken { law, what });
            }
        }
        self.said[app.position()] = Said::InProgress;
        self.in_progress += 1;
        let limit = self.plan.policies.concurrency.get() as usize;
        self.require(self.in_progress <= limit, Law::Limits, app, "exceeds the concurrency");
        if let Some(group) = self.plan.app(app).app.group {
            self.by_group[group] += 1;
            let limit = self.plan.policies.groups[group].concurrency.get() as usize;
            let within = self.by_group[group] <= limit;
            self.require(within, Law::Limits, app, "exceeds the concurrency of its group");
        }
    }

    fn ends(&mut self, app: AppIx, said: Said) {
        let before = std::mem::replace(&mut self.said[app.position()], said);
        match before {
            Said::InProgress => {
                self.in_progress -= 1;
                if let Some(group) = self.plan.app(app).app.group {
                    self.by_group[group] -= 1;
                }
            }
            Said::Nothing => {}
            Said::Done { .. } | Said::Over => {
                self.blame(Law::EventsAreTheState, app, "ends twice");
            }
        }
        let verified = self.plan.app(app).role == Role::Verify;
        let touched = matches!(before, Said::InProgress);
        self.require(!(verified && touched), Law::StartCondition, app, "is outside the scope");
    }

    fn require(&mut self, condition: bool, law: Law, app: AppIx, otherwise: &str) {
        if !condition {
            self.blame(law, app, otherwise);
        }
    }

    fn blame(&mut self, law: Law, app: AppIx, what: &str) {
        let what = format!("{} {what}", self.name(app));
        self.broken.push(Broken { law, what });
    }

    fn name(&self, app: AppIx) -> &str {
        self.plan.app(app).app.name.as_str()
    }
}
