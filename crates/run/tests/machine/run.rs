//! A driver, and the Applications that it is shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{AppIx, Health, OperationId, Plan, SyncStatus};
use tiphys_run::{
    Action, Answer, Clock, Driver, Effect, Event, Input, LastOperation, Machine, Observation,
    Operation, OperationPhase, Phase, RequestNumber, Revisions, Signal, Stamp, SyncAnswer, Time,
    Verdict,
};

use crate::messages::words;

pub(crate) use tiphys_run::testkit::{current, fresh, revisions};

/// The run under test: an engine in which a test plays the cluster.
pub(crate) struct Run {
    driver: Driver,
    now: Time,
    /// The newest version of any Application.
    version: u64,
    /// The newest look at each.
    apps: Vec<Option<Observation>>,
    log: Vec<(Time, Event)>,
    effects: Vec<Effect>,
    /// The newest request of each kind for each app.
    requests: BTreeMap<(AppIx, Kind), RequestNumber>,
    answers_refreshes: bool,
}

/// Requests whose answers have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Sync,
    Refresh,
    Read,
}

impl Run {
    /// A deployment of Applications that nobody has synced, each refreshed once.
    pub(crate) fn deploy(plan: &Arc<Plan>) -> Self {
        let mut run = Run::listed(plan, Action::Deploy, |_| Some(fresh()));
        for app in &plan.apps {
            run.refreshed(app.app.name.as_str());
        }
        run
    }

    /// A run that has seen its Applications, and nothing else yet.
    pub(crate) fn listed(
        plan: &Arc<Plan>,
        action: Action,
        look: impl Fn(&str) -> Option<Observation>,
    ) -> Self {
        Run::with_clock(plan, action, Clock::default(), look)
    }

    /// Likewise, with what is known of Argo CD's clock.
    pub(crate) fn with_clock(
        plan: &Arc<Plan>,
        action: Action,
        clock: Clock,
        look: impl Fn(&str) -> Option<Observation>,
    ) -> Self {
        Run::of(Machine::new(plan.clone(), action, 1), clock, look)
    }

    /// A deployment in which somebody else has a say, of Applications as in `deploy`.
    pub(crate) fn admitted(plan: &Arc<Plan>) -> Self {
        let machine = Machine::new(plan.clone(), Action::Deploy, 1).with_admission();
        let mut run = Run::of(machine, Clock::default(), |_| Some(fresh()));
        for app in &plan.apps {
            run.refreshed(app.app.name.as_str());
        }
        run
    }

    pub(crate) fn admit(&mut self, name: &str) {
        let app = self.app(name);
        self.tell(Input::Admitted { app });
    }

    fn of(machine: Machine, clock: Clock, look: impl Fn(&str) -> Option<Observation>) -> Self {
        let plan = machine.plan().clone();
        let apps: Vec<_> = plan.apps.iter().map(|app| look(app.app.name.as_str())).collect();
        let mut run = Run {
            driver: Driver::new(machine),
            now: Time::START,
            version: 1,
            apps: apps.clone(),
            log: Vec::new(),
            effects: Vec::new(),
            requests: BTreeMap::new(),
            answers_refreshes: false,
        };
        let seen = apps.into_iter().map(|seen| seen.map(Arc::new)).collect();
        run.tell(Input::Listed { seen, held: false, clock });
        run
    }

    /// From now on every refresh is answered at once.
    pub(crate) fn answering_refreshes(mut self) -> Self {
        self.answers_refreshes = true;
        self
    }

    pub(crate) fn app(&self, name: &str) -> AppIx {
        let plan = self.driver.machine().plan();
        plan.graph.apps().find(|app| plan.app(*app).app.name.as_str() == name).unwrap()
    }

    pub(crate) fn tell(&mut self, input: Input) {
        let output = self.driver.step(self.now, input).unwrap();
        self.log.extend(output.events.into_iter().map(|event| (self.now, event)));
        let mut refreshed = Vec::new();
        for effect in output.effects {
            let app = effect.app();
            match &effect {
                Effect::Sync { number, .. } => {
                    self.requests.insert((app, Kind::Sync), *number);
                }
                Effect::Refresh { number, .. } => {
                    self.requests.insert((app, Kind::Refresh), *number);
                    refreshed.push((app, Answer::Refreshed { number: *number }));
                }
                Effect::Read { number, .. } => {
                    self.requests.insert((app, Kind::Read), *number);
                }
                Effect::Terminate { .. } | Effect::HandOff { .. } | Effect::Delete { .. } => {}
            }
            self.effects.push(effect);
        }
        if !self.answers_refreshes {
            return;
        }
        for (app, answer) in refreshed {
            self.tell(Input::Answered { app, answer });
        }
    }

    pub(crate) fn answer(&mut self, app: &str, answer: Answer) {
        let app = self.app(app);
        self.tell(Input::Answered { app, answer });
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.tell(Input::Interrupted(signal));
    }

    /// Lets time pass, and wakes the driver whenever it wants to be woken. That must never be in
    /// vain: an engine would be woken for the same reason again, without end.
    pub(crate) fn wait(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while let Some(wake) = self.wake_at().filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            let happened = self.log.len();
            self.tell(Input::Tick);
            let again = self.wake_at().is_some_and(|wake| wake <= self.now);
            assert!(!again || self.log.len() > happened, "woken in vain at {wake:?}");
        }
        self.now = until;
    }

    /// When the driver wants to be woken, whatever happens until then.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.driver.machine().wake_at()
    }

    /// What the driver goes by.
    pub(crate) fn seen(&self, app: &str) -> Option<&Observation> {
        self.driver.seen(self.app(app))
    }

    /// Shows a new look at an app.
    pub(crate) fn show(&mut self, app: &str, change: impl FnOnce(&mut Observation)) {
        let at = self.app(app);
        self.version += 1;
        let seen = self.apps[at.position()].as_mut().unwrap();
        seen.version = self.version;
        change(seen);
        let (version, seen) = (self.version, Some(Arc::new(seen.clone())));
        self.tell(Input::Observed { app: at, version, seen });
    }

    pub(crate) fn show_gone(&mut self, app: &str) {
        let app = self.app(app);
        self.version += 1;
        self.apps[app.position()] = None;
        self.tell(Input::Observed { app, version: self.version, seen: None });
    }

    pub(crate) fn show_again(&mut self, app: &str) {
        let at = self.app(app);
        self.apps[at.position()] = Some(current());
        self.show(app, |_| {});
    }

    /// The operation that the run follows now.
    pub(crate) fn operation(&self, app: &str) -> OperationId {
        match &self.driver.machine().step(self.app(app)).phase {
            Phase::Syncing(syncing) => syncing.operation.clone(),
            Phase::Converging(converging) => converging.operation.clone(),
            phase => panic!("{app} has no operation: {phase:?}"),
        }
    }

    /// The newest request of a kind.
    pub(crate) fn number(&self, app: &str, kind: Kind) -> RequestNumber {
        self.requests[&(self.app(app), kind)]
    }

    /// The newest refresh has completed.
    pub(crate) fn refreshed(&mut self, app: &str) {
        let number = self.number(app, Kind::Refresh);
        self.answer(app, Answer::Refreshed { number });
    }

    /// The newest look that was asked for has come back.
    pub(crate) fn looked(&mut self, app: &str) {
        let number = self.number(app, Kind::Read);
        self.answer(app, Answer::Looked { number });
    }

    pub(crate) fn answer_sync(&mut self, app: &str, answer: SyncAnswer) {
        let number = self.number(app, Kind::Sync);
        self.answer(app, Answer::Sync { number, answer });
    }

    /// The sync request is taken, and its operation runs.
    pub(crate) fn accept(&mut self, app: &str) {
        let operation = Operation { id: Some(self.operation(app)), by: "tiphys".into() };
        self.answer_sync(app, SyncAnswer::Accepted { version: self.version });
        self.show(app, |seen| seen.operation = Some(operation));
    }

    /// Argo CD has begun with the operation.
    pub(crate) fn begin(&mut self, app: &str) {
        let operation = Operation { id: Some(self.operation(app)), by: "tiphys".into() };
        self.show(app, |seen| {
            seen.last = Some(LastOperation {
                operation,
                phase: OperationPhase::Running,
                finished_at: None,
                revisions: Revisions::default(),
                message: "".into(),
            });
        });
    }

    /// The operation ends; health is not known yet.
    fn end(&mut self, app: &str, phase: OperationPhase, message: &str) {
        let operation = Operation { id: Some(self.operation(app)), by: "tiphys".into() };
        let finished_at = Some(Stamp(i64::try_from(self.now.as_millis() / 1000).unwrap()));
        self.show(app, |seen| {
            seen.operation = None;
            let (revisions, message) = (seen.revisions.clone(), message.into());
            seen.last = Some(LastOperation { operation, phase, finished_at, revisions, message });
        });
    }

    /// The sync request is taken and fails.
    pub(crate) fn refuse(&mut self, app: &str) {
        self.accept(app);
        self.end(app, OperationPhase::Failed, "denied");
    }

    /// The sync request is taken and succeeds; health is still to be assessed.
    pub(crate) fn sync(&mut self, app: &str) {
        self.accept(app);
        self.succeed(app);
    }

    /// The operation that runs succeeds.
    pub(crate) fn succeed(&mut self, app: &str) {
        self.end(app, OperationPhase::Succeeded, "synced");
    }

    /// Argo CD compares the app and assesses its health, after the operation.
    pub(crate) fn assess(&mut self, app: &str, health: Health) {
        self.assess_but(app, health, |_| {});
    }

    /// Likewise, with a change.
    pub(crate) fn assess_but(
        &mut self,
        app: &str,
        health: Health,
        change: impl FnOnce(&mut Observation),
    ) {
        self.show(app, |seen| {
            change(seen);
            let finished = seen.last.as_ref().and_then(|last| last.finished_at);
            seen.reconciled_at = finished.map(|Stamp(stamp)| Stamp(stamp + 1));
            seen.sync = SyncStatus::Synced;
            seen.health = health;
        });
    }

    /// The whole way to Done.
    pub(crate) fn complete(&mut self, app: &str) {
        self.sync(app);
        self.assess(app, Health::Healthy);
    }

    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.driver.machine().verdict()
    }

    pub(crate) fn machine(&self) -> &Machine {
        self.driver.machine()
    }

    /// Everything that happened since the last time this was asked.
    pub(crate) fn log(&mut self) -> Vec<String> {
        let plan = self.driver.machine().plan().clone();
        self.log.drain(..).map(|(at, event)| words(&plan, at, &event)).collect()
    }

    /// The same as the events themselves.
    pub(crate) fn events(&mut self) -> Vec<(Time, Event)> {
        std::mem::take(&mut self.log)
    }

    /// The same without what goes on behind the steps: refreshes, looks, acceptances.
    pub(crate) fn steps(&mut self) -> Vec<String> {
        self.log.retain(|(_, event)| {
            !matches!(
                event,
                Event::Begun
                    | Event::RefreshAsked { .. }
                    | Event::RefreshSpared { .. }
                    | Event::Vouched { .. }
                    | Event::RefreshWanted { .. }
                    | Event::Refreshed { .. }
                    | Event::Accepted { .. }
                    | Event::ReadAsked { .. }
                    | Event::ReadReturned { .. }
            )
        });
        self.log()
    }

    /// What was asked for since the last time this was asked.
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}
