//! The simulated engine: happenings in order of time, and a clock that jumps to the next.

mod clean_up;
mod driving;
mod hold;
mod network;
mod strike;
mod traffic;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{AppIx, Plan, Role};
use tiphys_run::{
    Action, Answer, Driver, Effect, Event, Illegal, Input, Observation, Signal, Time, Verdict,
};

use crate::application::{Lifecycle, Truth};
use crate::chance::Chance;
use crate::controller::{Controller, Job};
use crate::fault::Fault;
use crate::objects::Objects;
use network::Network;

/// How long the platform's Lease is held after its holder has died.
const LEASE: Duration = Duration::from_secs(30);
/// How long a lost watch stays silent.
const SILENCE: Duration = Duration::from_secs(45);
/// When, in a teardown, others make something in the platform's namespaces.
const LATE: Duration = Duration::from_secs(90);
/// A run that goes on for longer than this after its own deadline will never end.
const GRACE: Duration = Duration::from_secs(600);

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Virtual time since the simulation began.
    pub at: Time,
    /// The driver's own time.
    pub elapsed: Time,
    /// Which driver it happened to: each restart counts one more.
    pub epoch: u64,
    pub event: Event,
}

/// Kills the driver around one of its effects, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    BeforeEffect(usize),
    AfterEffect(usize),
    /// While a teardown removes what goes after the last app.
    InCleanUp,
}

/// Why a simulation came to a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    Finished(Verdict),
    /// The machine proposed what it forbids.
    Illegal(Illegal),
    /// Nothing will ever end it.
    Endless,
}

/// A platform, a driver, and everything between them.
pub struct Simulation {
    plan: Arc<Plan>,
    action: Action,
    controller: Controller,
    network: Network,
    /// When holds take effect, and for how long they are lifted.
    hold_chance: Chance,
    faults: Vec<Fault>,
    /// Which of them have struck.
    struck: Vec<bool>,
    /// What will happen, by time; of the same time, what was scheduled first comes first. With
    /// 100,000 apps this is quicker than a binary heap, whose far ends leave the caches.
    agenda: BTreeMap<(Time, u64), Happening>,
    sequence: u64,
    now: Time,
    driver: Option<Driver>,
    /// Counts runs; a driver that was killed and started again goes on with the same one.
    run: u32,
    epoch: u64,
    /// When the current driver began.
    began: Time,
    tick_at: Option<Time>,
    /// The driver wants to be woken again at once, and did nothing when it was.
    spinning: bool,
    crash: Option<Crash>,
    effects: usize,
    first_sync_seen: bool,
    /// The truth behind the newest look that the driver has been given.
    told: Vec<(u64, Truth)>,
    records: Vec<Recorded>,
    /// The last driver that has started each app.
    started_in: Vec<u64>,
    /// A teardown has removed all that goes after the last app.
    cleaned: bool,
    /// Apps that started although the truth behind what the driver knew forbade it.
    unready: Vec<(AppIx, AppIx)>,
}

enum Happening {
    Job(AppIx, Job),
    Request(Effect, u64),
    Told {
        app: AppIx,
        version: u64,
        seen: Option<Arc<Observation>>,
        truth: Truth,
        epoch: u64,
    },
    Answer(AppIx, Answer, u64),
    Listed(u64),
    Tick(u64),
    /// Of the run with this number; those of an earlier one are void.
    Fault(usize, u32),
    Interrupt(Signal, u32),
    Restart(u32),
    /// The run's hold takes effect.
    Hold(u32),
    /// A frozen operation may end.
    Thaw(AppIx, u64),
    /// The next deletion after the last app.
    CleanUp(u64),
    /// Others make something while a teardown runs.
    OthersMake,
}

impl Simulation {
    /// A platform whose Applications exist, with nothing applied.
    #[must_use]
    pub fn new(plan: Arc<Plan>, seed: u64, faults: Vec<Fault>) -> Self {
        let lifecycles = plan.graph.apps().map(|app| {
            let mut chance = Chance::stream(seed, 1000 + app.position() as u64);
            Lifecycle::draw(plan.app(app).app.typical, &mut chance)
        });
        let mut controller = Controller::new(lifecycles, Chance::stream(seed, 1));
        for app in plan.graph.apps().filter(|app| plan.app(*app).role == Role::Verify) {
            // What lies outside the scope has been deployed before.
            let sim = controller.app_mut(app);
            sim.live = Some(sim.source.clone());
            sim.health = tiphys_model::Health::Healthy;
        }
        let apps = plan.apps.len();
        Simulation {
            plan,
            action: Action::Deploy,
            controller,
            network: Network::new(Chance::stream(seed, 2)),
            hold_chance: Chance::stream(seed, 3),
            struck: vec![false; faults.len()],
            faults,
            agenda: BTreeMap::new(),
            sequence: 0,
            now: Time::START,
            driver: None,
            run: 0,
            epoch: 0,
            began: Time::START,
            tick_at: None,
            spinning: false,
            crash: None,
            effects: 0,
            first_sync_seen: false,
            told: vec![(0, Truth { healthy: false, current: false }); apps],
            records: Vec::new(),
            started_in: vec![0; apps],
            cleaned: true,
            unready: Vec::new(),
        }
    }

    /// Gives the cluster objects: of the apps, and of others in their namespaces.
    #[must_use]
    pub fn with_objects(mut self, seed: u64) -> Self {
        self.controller.give_objects(Objects::draw(&self.plan, seed));
        self
    }

    /// Kills the driver at a point.
    #[must_use]
    pub fn with_crash(mut self, crash: Crash) -> Self {
        self.crash = Some(crash);
        self
    }

    /// Sends a signal to the driver at a time.
    #[must_use]
    pub fn with_interrupt(mut self, at: Time, signal: Signal) -> Self {
        // The next run is the first.
        self.schedule(at, Happening::Interrupt(signal, 1));
        self
    }

    /// A person or a supervisor stops the run now.
    pub fn interrupt(&mut self, signal: Signal) {
        self.schedule(self.now, Happening::Interrupt(signal, self.run));
    }

    /// Starts a run; another one may have ended before.
    pub fn begin(&mut self, action: Action) {
        self.action = action;
        self.run += 1;
        self.cleaned = action == Action::Deploy || self.controller.objects().is_none();
        if !self.cleaned {
            self.schedule(self.now + LATE, Happening::OthersMake);
        }
        for position in 0..self.faults.len() {
            if let (Some(at), false) = (self.faults[position].at, self.struck[position]) {
                self.schedule(self.now + at, Happening::Fault(position, self.run));
            }
        }
        if self.run == 1 {
            self.start_driver();
        } else {
            // What the run before had in flight has arrived when its Lease is free.
            self.driver = None;
            self.epoch += 1;
            self.schedule(self.now + LEASE, Happening::Restart(self.run));
        }
    }

    /// Whatever was wrong is repaired, and what it has broken mends.
    pub fn repair(&mut self) {
        self.faults.clear();
        self.struck.clear();
        self.network.repair();
        for app in self.plan.graph.apps() {
            self.controller.mend(self.now, app);
        }
        self.spread_news();
    }

    /// Somebody pushes: what follows a branch is behind its source, and Argo CD has not looked yet.
    pub fn push(&mut self) {
        for app in self.plan.graph.apps() {
            if !self.controller.app(app).object.pinned {
                self.controller.move_source(app);
            }
        }
    }

    /// Something will go wrong in the next run, too.
    pub fn add_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
        self.struck.push(false);
    }

    /// Lets time go on until the run has ended.
    pub fn run(&mut self) -> Stop {
        loop {
            if let Some(stop) = self.advance() {
                return stop;
            }
        }
    }

    /// One happening.
    pub fn advance(&mut self) -> Option<Stop> {
        let Some(((at, _), happening)) = self.agenda.pop_first() else {
            return Some(Stop::Endless);
        };
        self.now = self.now.max(at);
        let bound = self.began + self.plan.policies.timeout + GRACE;
        if self.now > bound || self.spinning {
            return Some(Stop::Endless);
        }
        if let Err(illegal) = self.happen(happening) {
            return Some(Stop::Illegal(illegal));
        }
        self.spread_news();
        let verdict = self.driver.as_ref().and_then(|driver| driver.machine().verdict())?;
        let open = verdict == Verdict::Succeeded && !self.cleaned;
        (!open).then_some(Stop::Finished(verdict))
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Illegal> {
        match happening {
            Happening::Job(app, job) => self.controller.work(self.now, app, job),
            Happening::Request(effect, epoch) => self.arrive(effect, epoch),
            Happening::Told { app, version, seen, truth, epoch } if epoch == self.epoch => {
                if version > self.told[app.position()].0 {
                    self.told[app.position()] = (version, truth);
                }
                self.tell(Input::Observed { app, version, seen })?;
            }
            Happening::Answer(app, answer, epoch) if epoch == self.epoch => {
                self.tell(Input::Answered { app, answer })?;
            }
            Happening::Listed(epoch) if epoch == self.epoch => self.list()?,
            Happening::Tick(epoch) if epoch == self.epoch => {
                self.tick_at = None;
                self.tell(Input::Tick)?;
            }
            Happening::Fault(position, run) if run == self.run => self.strike(position)?,
            Happening::Interrupt(signal, run) if run == self.run => {
                self.tell(Input::Interrupted(signal))?;
            }
            Happening::Restart(run) if run == self.run => self.start_driver(),
            Happening::Hold(run) if run == self.run => self.hold(),
            Happening::Thaw(app, epoch) if epoch == self.epoch => self.thaw(app),
            Happening::CleanUp(epoch) if epoch == self.epoch => self.clean_up(),
            Happening::OthersMake => self.controller.with_objects(self.now, Objects::make_late),
            // For a driver or a run that is no more.
            Happening::Told { .. }
            | Happening::Answer(..)
            | Happening::Listed(_)
            | Happening::Tick(_)
            | Happening::Fault(..)
            | Happening::Interrupt(..)
            | Happening::Restart(_)
            | Happening::Hold(_)
            | Happening::Thaw(..)
            | Happening::CleanUp(_) => {}
        }
        Ok(())
    }

    fn schedule(&mut self, at: Time, happening: Happening) {
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), happening);
    }
}
