//! Starting the next step.

use tiphys_model::AppIx;

use super::decide::Seen;
use super::observe::failed;
use super::remove::start_removal;
use super::{Action, Machine};
use crate::cause::Cause;
use crate::event::{Attempt, BlockedBy, Event, FailState, How};
use crate::gate::{self, Start};
use crate::observation::Observation;
use crate::time::Time;

impl Machine {
    /// What happens to the step whose turn it is; nothing if there is none, or no room.
    pub(crate) fn start_next(&self, now: Time, seen: &Seen) -> Vec<Event> {
        if self.run.finished.is_some() || self.run.interrupted.is_some() || self.run.unverified > 0
        {
            return Vec::new();
        }
        let Some(app) = self.queue.first() else { return Vec::new() };
        let seen = seen[app.position()].as_deref();
        match self.action {
            Action::Teardown => start_removal(seen, app),
            Action::Deploy => match seen {
                Some(seen) => self.start_deployment(now, seen, app),
                None => vec![failed(app, FailState::Failed, Cause::NoApplication, None)],
            },
        }
    }

    fn start_deployment(&self, now: Time, seen: &Observation, app: AppIx) -> Vec<Event> {
        let planned = &self.plan.app(app).app;
        let sync = |revisions| {
            let operation = self.operation_id(app, 1);
            vec![Event::Syncing {
                app,
                attempt: Attempt {
                    operation,
                    revisions,
                    pinned: seen.pinned,
                    before: seen.last.clone(),
                    adopted: None,
                },
            }]
        };
        match gate::start(seen, self.tag, &planned.name, &planned.tolerate_drift) {
            Start::AlreadyCurrent => vec![Event::Done { app, how: How::AlreadyCurrent }],
            Start::Sync { revisions } => sync(revisions),
            Start::Adopt { operation, revisions, ended } => {
                let adopted = Some(seen.version);
                let (pinned, before) = (seen.pinned, seen.last.clone());
                let attempt = Attempt { operation, revisions, pinned, before, adopted };
                let mut events = vec![Event::Syncing { app, attempt }];
                events.extend(ended.then_some(Event::Converging { app }));
                events
            }
            Start::Foreign { by } => {
                vec![
                    Event::Blocked { app, why: BlockedBy::Operation { by } },
                    Event::RefreshWanted { app },
                ]
            }
            Start::NotYet => {
                vec![
                    Event::Blocked { app, why: BlockedBy::NotCompared },
                    Event::RefreshWanted { app },
                ]
            }
            Start::Suspect(suspicion) => {
                let mut events = self.trouble(now, app, Some(&suspicion), seen);
                if !events.iter().any(|event| matches!(event, Event::Failed { .. })) {
                    events.push(Event::RefreshWanted { app });
                }
                events
            }
            Start::Failed(cause) => vec![failed(app, FailState::Failed, cause, Some(seen))],
        }
    }
}
