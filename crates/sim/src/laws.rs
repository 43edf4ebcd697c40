//! The laws, checked on what was recorded and on what really happened.
//!
//! They are written against the log and the facts of the cluster, never against the machine's
//! own idea of itself, so that a mistake in the machine cannot excuse itself.

mod bounds;
mod grammar;
mod outcome;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use tiphys_model::{AppIx, OperationId};
use tiphys_run::{Action, Event, Machine, Verdict};

use crate::controller::Fact;
use crate::engine::{Recorded, Simulation, Stop};

/// A law that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub law: Law,
    pub what: String,
}

/// The laws by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// INV-1: a dependant never starts before what it needs is Healthy.
    StartCondition = 1,
    /// INV-4: failures propagate and are not masked.
    FailurePropagation = 2,
    /// INV-5: nothing is removed while a dependant exists, and in the end nothing is left.
    ReverseTeardown = 3,
    /// INV-6: a run over its own result changes nothing.
    Idempotence = 4,
    /// The fold of the events is the state, and nothing forbidden is proposed.
    EventsAreTheState = 5,
    /// One attempt in flight for each step, limits never exceeded.
    Limits = 6,
    /// What has started is never un-started.
    NeverUnstarted = 7,
    /// Same seed, same log.
    Determinism = 8,
    /// Every run ends within its bounds.
    Ending = 9,
    /// Nothing of others ever goes, and nothing that it needs.
    OthersStay = 10,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {} ({:?}): {}", self.law as u8, self.law, self.what)
    }
}

/// The part of a simulation that one run left behind.
#[derive(Debug, Clone)]
pub struct Part {
    pub records: Range<usize>,
    pub facts: Range<usize>,
    pub unready: Range<usize>,
}

impl Part {
    /// What has come since `before`.
    #[must_use]
    pub fn since(before: &Part, simulation: &Simulation) -> Self {
        Part {
            records: before.records.end..simulation.records().len(),
            facts: before.facts.end..simulation.facts().len(),
            unready: before.unready.end..simulation.unready().len(),
        }
    }

    #[must_use]
    pub fn nothing() -> Self {
        Part { records: 0..0, facts: 0..0, unready: 0..0 }
    }
}

/// Checks one run of a simulation that has just stopped.
#[must_use]
pub fn check(simulation: &Simulation, action: Action, part: &Part, stop: &Stop) -> Vec<Broken> {
    let mut broken = Vec::new();
    let records = &simulation.records()[part.records.clone()];
    let facts = &simulation.facts()[part.facts.clone()];
    let name = |app: AppIx| simulation.plan().app(app).app.name.clone();
    match stop {
        Stop::Illegal(illegal) => {
            broken.push(Broken { law: Law::EventsAreTheState, what: illegal.to_string() });
            return broken;
        }
        Stop::Endless => {
            let what = format!("the run has not ended at {} ms", simulation.now().as_millis());
            broken.push(Broken { law: Law::Ending, what });
            return broken;
        }
        Stop::Finished(_) => {}
    }
    for (app, dependency) in &simulation.unready()[part.unready.clone()] {
        let what = format!("{} started while {} was not healthy", name(*app), name(*dependency));
        broken.push(Broken { law: Law::StartCondition, what });
    }
    let mut ids = BTreeSet::new();
    for (_, fact) in facts {
        match fact {
            Fact::OperationSet { app, id: Some(id) } if !ids.insert(id.clone()) => {
                let what = format!("{} was synced twice as {id}", name(*app));
                broken.push(Broken { law: Law::Limits, what });
            }
            // What was asked of the one before is asked of this one. And if somebody else's takes the
            // place of ours, and the answer to ours was lost, nobody can see whether it was done.
            Fact::MadeAnew { app } | Fact::OperationSet { app, id: None } => {
                ids.retain(|id: &OperationId| id.app != name(*app));
            }
            Fact::Repeated { app } => {
                let what = format!("{} was synced again although it was applied", name(*app));
                broken.push(Broken { law: Law::Limits, what });
            }
            Fact::Deleted { app, dependants } if !dependants.is_empty() => {
                let what =
                    format!("{} was removed while {} exists", name(*app), name(dependants[0]));
                broken.push(Broken { law: Law::ReverseTeardown, what });
            }
            Fact::OthersRemoved { object } => {
                let what = format!("{object} was removed but does not belong to the platform");
                broken.push(Broken { law: Law::OthersStay, what });
            }
            _ => {}
        }
    }
    if (action, stop) == (Action::Teardown, &Stop::Finished(Verdict::Succeeded)) {
        let left = simulation.left_over().into_iter();
        broken.extend(left.map(|object| Broken {
            law: Law::ReverseTeardown,
            what: format!("{object} still exists"),
        }));
    }
    for epoch in records.chunk_by(|a, b| a.epoch == b.epoch) {
        broken.extend(grammar::check(simulation.plan(), action, epoch));
        broken.extend(bounds::check(simulation.plan(), epoch));
        broken.extend(fold(simulation, action, epoch));
    }
    if let Stop::Finished(verdict) = stop {
        let last = records.chunk_by(|a, b| a.epoch == b.epoch).next_back().unwrap_or_default();
        broken.extend(outcome::check(simulation, action, last, *verdict));
    }
    broken
}

/// Law 5: a fresh machine that is told the events comes to the same state, and accepts nothing
/// once the run is over.
fn fold(simulation: &Simulation, action: Action, records: &[Recorded]) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mut report = |what: String| broken.push(Broken { law: Law::EventsAreTheState, what });
    let Some(epoch) = records.first().map(|record| record.epoch) else { return broken };
    let mut machine = Machine::new(simulation.plan().clone(), action, epoch);
    for record in records {
        if let Err(illegal) = machine.apply(record.elapsed, &record.event) {
            report(format!("on replay: {illegal}"));
        }
    }
    let live = simulation.driver().map(tiphys_run::Driver::machine);
    let is_last = simulation.records().last().is_some_and(|record| record.epoch == epoch);
    if is_last && live.is_some_and(|live| *live != machine) {
        report("the fold of the events differs from the live state".to_owned());
    }
    if machine.verdict().is_some() {
        let late = Event::Finished { verdict: Verdict::Succeeded, unhealthy: Vec::new() };
        let end = records.last().map(|record| record.elapsed).unwrap_or_default();
        if machine.apply(end, &late).is_ok() {
            report("a finished run accepted an event".to_owned());
        }
    }
    broken
}
