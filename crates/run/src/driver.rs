//! The driver: one synchronous step for each thing that happens. The simulated and the local
//! engine use it alike; they differ only in how they carry out effects.

use std::collections::VecDeque;
use std::sync::Arc;

use tiphys_model::AppIx;

use crate::effect::{Effect, Input};
use crate::event::Event;
use crate::machine::{Illegal, Machine, Trigger};
use crate::observation::Observation;
use crate::planted::planted;
use crate::time::Time;

/// A machine, and the newest look at each of its apps.
#[derive(Debug, Clone)]
pub struct Driver {
    machine: Machine,
    seen: Vec<Option<Arc<Observation>>>,
    versions: Vec<u64>,
}

/// What a step of the driver came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// In the order in which they were applied.
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
}

impl Driver {
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        let apps = machine.plan().apps.len();
        Driver { machine, seen: vec![None; apps], versions: vec![0; apps] }
    }

    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The newest look at an app.
    #[must_use]
    pub fn seen(&self, app: AppIx) -> Option<&Observation> {
        self.seen[app.position()].as_deref()
    }

    /// Takes one input. An error means that the machine proposed what it forbids: a bug, after
    /// which nothing more must be done.
    pub fn step(&mut self, now: Time, input: Input) -> Result<Output, Illegal> {
        let mut output = Output::default();
        let triggers = self.triggers(now, input);
        self.settle(now, triggers, &mut output)?;
        loop {
            let started = self.machine.start_next(now, &self.seen);
            if started.is_empty() {
                break;
            }
            let triggers = self.apply_all(now, started, &mut output)?;
            self.settle(now, triggers, &mut output)?;
        }
        if let Some(event) = self.machine.finish(&self.seen) {
            self.apply_all(now, vec![event], &mut output)?;
        }
        Ok(output)
    }

    fn triggers(&mut self, now: Time, input: Input) -> VecDeque<Trigger> {
        match input {
            Input::Listed { seen, held, clock } => {
                self.versions = seen.iter().map(|s| s.as_ref().map_or(0, |s| s.version)).collect();
                self.seen = seen;
                [Trigger::Begin { held, clock }].into()
            }
            Input::Observed { app, version, seen } => {
                // A watch and a read can overtake each other; only what is newer counts.
                if version <= self.versions[app.position()] {
                    return VecDeque::new();
                }
                self.versions[app.position()] = version;
                self.seen[app.position()] = seen;
                [Trigger::Look(app)].into()
            }
            Input::Found { app, lagging, unmet } => {
                let Some(seen) = &mut self.seen[app.position()] else { return VecDeque::new() };
                let seen = Arc::make_mut(seen);
                (seen.lagging, seen.unmet) = (lagging, unmet);
                [Trigger::Look(app)].into()
            }
            Input::Answered { app, answer } => [Trigger::Answer(app, answer)].into(),
            Input::Admitted { app } => [Trigger::Admission(app)].into(),
            Input::Tick => self.machine.due(now).collect(),
            Input::Interrupted(signal) => [Trigger::Interrupt(signal)].into(),
            Input::LeaseLost => [Trigger::LeaseLost].into(),
        }
    }

    /// Follows every consequence until there is none left.
    fn settle(
        &mut self,
        now: Time,
        mut triggers: VecDeque<Trigger>,
        output: &mut Output,
    ) -> Result<(), Illegal> {
        while let Some(trigger) = triggers.pop_front() {
            let events = self.machine.decide(now, &self.seen, &trigger);
            triggers.extend(self.apply_all(now, events, output)?);
        }
        Ok(())
    }

    fn apply_all(
        &mut self,
        now: Time,
        events: Vec<Event>,
        output: &mut Output,
    ) -> Result<VecDeque<Trigger>, Illegal> {
        let mut triggers = VecDeque::with_capacity(events.len());
        for event in events {
            self.machine.apply(now, &event)?;
            output.effects.extend(self.machine.effect_of(&event));
            output.events.push(event.clone());
            triggers.push_back(Trigger::Applied(event));
        }
        planted!(HideRefreshes => output.events.retain(|e| !matches!(e, Event::Refreshed { .. })));
        Ok(triggers)
    }
}
