//! Seeds: each one a platform, a schedule of faults and a story, with all laws checked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tiphys_model::{Plan, Scope};
use tiphys_run::{Action, Signal, Time, Verdict};

use crate::chance::Chance;
use crate::controller::Fact;
use crate::engine::{Crash, Simulation, Stop};
use crate::fault::{Fault, FaultKind, FaultTarget};
use crate::generate::{self, Shape};
use crate::laws::{Broken, Law, Part, check};

/// What a seed stands for.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub apps: usize,
    pub faults: Vec<Fault>,
    pub crash: Option<Crash>,
    pub interrupt: Option<(Time, Signal)>,
}

/// A seed that breaks a law, made as small as it still does.
#[derive(Debug, Clone)]
pub struct Finding {
    pub scenario: Scenario,
    pub broken: Vec<Broken>,
}

impl Scenario {
    /// Draws a scenario from a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut chance = Chance::stream(seed, 10);
        let apps = usize::try_from(chance.between(1, 25)).unwrap_or(1);
        let mut faults = Vec::new();
        for _ in 0..chance.between(0, 4) {
            let Some(kind) = chance.pick(&FaultKind::ALL).copied() else { continue };
            let target = if kind.is_of_the_run() {
                FaultTarget::Run
            } else {
                let app = chance.between(0, apps as u64 - 1);
                FaultTarget::App(generate::name(usize::try_from(app).unwrap_or_default()))
            };
            let at = chance.once_in(2).then(|| Duration::from_secs(chance.between(1, 1200)));
            faults.push(Fault { target, kind, at });
        }
        // Lost answers show the rarest mistakes, so they are drawn more often than the rest.
        if chance.once_in(6) {
            let kind = FaultKind::SlowApi;
            faults.push(Fault { target: FaultTarget::Run, kind, at: None });
        }
        let effect = usize::try_from(chance.between(0, 6 * apps as u64)).unwrap_or_default();
        let crash = chance.once_in(6).then(|| match chance.between(0, 4) {
            0 | 1 => Crash::BeforeEffect(effect),
            2 | 3 => Crash::AfterEffect(effect),
            _ => Crash::InCleanUp,
        });
        let interrupt = chance.once_in(12).then(|| {
            let signal = if chance.once_in(3) { Signal::Terminate } else { Signal::Interrupt };
            (Time::from_millis(chance.between(1, 900_000)), signal)
        });
        Scenario { seed, apps, faults, crash, interrupt }
    }

    #[must_use]
    pub fn plan(&self) -> Arc<Plan> {
        let shape = Shape { apps: self.apps, unlimited: false };
        let platform = generate::platform(shape, &mut Chance::stream(self.seed, 11));
        let plan = tiphys_plan::plan(&platform, &Scope::Platform);
        Arc::new(plan.expect("a platform with apps has a plan"))
    }

    #[must_use]
    pub fn simulation(&self, plan: &Arc<Plan>) -> Simulation {
        let mut simulation = Simulation::new(plan.clone(), self.seed, self.faults.clone());
        if Chance::stream(self.seed, 13).once_in(2) {
            simulation = simulation.with_objects(self.seed);
        }
        if let Some(crash) = self.crash {
            simulation = simulation.with_crash(crash);
        }
        if let Some((at, signal)) = self.interrupt {
            simulation = simulation.with_interrupt(at, signal);
        }
        simulation
    }

    /// Deploys with all faults; again without; once more; sometimes after a push, too; then takes it
    /// all down, twice.
    #[must_use]
    pub fn check(&self) -> Vec<Broken> {
        let plan = self.plan();
        let mut simulation = self.simulation(&plan);
        let mut story = Story { broken: Vec::new(), part: Part::nothing() };

        let first = story.run(&mut simulation, Action::Deploy);
        let mut twin = self.simulation(&plan);
        twin.begin(Action::Deploy);
        twin.run();
        if twin.records() != simulation.records() {
            story.blame(Law::Determinism, "the same seed produced a different log");
        }
        if !story.broken.is_empty() {
            return story.broken;
        }
        let done: Vec<_> = match first {
            Stop::Finished(_) => plan.graph.apps().filter(|app| simulation.is_done(*app)).collect(),
            Stop::Illegal(_) | Stop::Endless => Vec::new(),
        };
        simulation.repair();
        let resumed = story.run(&mut simulation, Action::Deploy);
        if resumed != Stop::Finished(Verdict::Succeeded) {
            story.blame(Law::Ending, &format!("without faults the run ends as {resumed:?}"));
        }
        // What the run before had sent may arrive after its end.
        let epoch = simulation.records().last().map(|record| record.epoch);
        for (_, fact) in &simulation.facts()[story.part.facts.clone()] {
            if let Fact::OperationSet { app, id: Some(id) } = fact
                && Some(id.epoch) == epoch
                && done.contains(app)
            {
                story.blame(Law::Idempotence, &format!("app {app} was healthy, but synced again"));
            }
        }
        let again = story.run(&mut simulation, Action::Deploy);
        let synced = story.count(&simulation, |fact| matches!(fact, Fact::OperationSet { .. }));
        if again != Stop::Finished(Verdict::Succeeded) || synced > 0 {
            story
                .blame(Law::Idempotence, &format!("a repeated run made {synced} syncs: {again:?}"));
        }
        if Chance::stream(self.seed, 14).once_in(2) {
            simulation.push();
            let pushed = story.run(&mut simulation, Action::Deploy);
            if pushed != Stop::Finished(Verdict::Succeeded) {
                story.blame(Law::Ending, &format!("after a push the run ends as {pushed:?}"));
            }
        }
        self.tear_down(&mut simulation, &mut story);
        story.broken
    }

    fn tear_down(&self, simulation: &mut Simulation, story: &mut Story) {
        let plan = simulation.plan().clone();
        let mut chance = Chance::stream(self.seed, 12);
        if chance.once_in(3) {
            let target = FaultTarget::App(plan.apps[0].app.name.clone());
            let kind = FaultKind::StuckFinalizer;
            simulation.add_fault(Fault { target, kind, at: Some(Duration::ZERO) });
        }
        if chance.once_in(3) {
            let kinds = [
                FaultKind::SlowApi,
                FaultKind::LostWatch,
                FaultKind::DuplicateAnswer,
                FaultKind::StaleReads,
                FaultKind::Crash,
            ];
            let at = Some(Duration::from_secs(chance.between(0, 200)));
            let kind = chance.pick(&kinds).copied().unwrap_or(FaultKind::Crash);
            simulation.add_fault(Fault { target: FaultTarget::Run, kind, at });
        }
        story.run(simulation, Action::Teardown);
        simulation.repair();
        let cleared = story.run(simulation, Action::Teardown);
        if cleared != Stop::Finished(Verdict::Succeeded) {
            story.blame(Law::Ending, &format!("without faults the teardown ends as {cleared:?}"));
        }
        let again = story.run(simulation, Action::Teardown);
        let deleted = story.count(simulation, |fact| matches!(fact, Fact::Deleted { .. }));
        if again != Stop::Finished(Verdict::Succeeded) || deleted > 0 {
            let what = format!("a repeated teardown made {deleted} removals: {again:?}");
            story.blame(Law::Idempotence, &what);
        }
    }
}

/// The runs of one simulation, one after the other.
struct Story {
    broken: Vec<Broken>,
    part: Part,
}

impl Story {
    fn run(&mut self, simulation: &mut Simulation, action: Action) -> Stop {
        simulation.begin(action);
        let stop = simulation.run();
        self.part = Part::since(&self.part, simulation);
        self.broken.extend(check(simulation, action, &self.part, &stop));
        stop
    }

    fn count(&self, simulation: &Simulation, which: impl Fn(&Fact) -> bool) -> usize {
        simulation.facts()[self.part.facts.clone()].iter().filter(|(_, fact)| which(fact)).count()
    }

    fn blame(&mut self, law: Law, what: &str) {
        self.broken.push(Broken { law, what: what.to_owned() });
    }
}

/// Checks one seed.
pub fn run_seed(seed: u64) -> Result<(), Finding> {
    let scenario = Scenario::draw(seed);
    let broken = scenario.check();
    if broken.is_empty() { Ok(()) } else { Err(Finding { scenario, broken }) }
}

/// Leaves out whatever can be left out of a finding without losing it.
#[must_use]
pub fn shrink(mut finding: Finding) -> Finding {
    loop {
        let smaller = candidates(&finding.scenario).find_map(|scenario| {
            let broken = scenario.check();
            (!broken.is_empty()).then_some(Finding { scenario, broken })
        });
        match smaller {
            Some(smaller) => finding = smaller,
            None => return finding,
        }
    }
}

/// Scenarios that are one step smaller.
fn candidates(scenario: &Scenario) -> impl Iterator<Item = Scenario> {
    let base = scenario.clone();
    let mut smaller = Vec::new();
    for apps in [base.apps / 2, base.apps - 1] {
        if apps > 0 && apps < base.apps {
            smaller.push(Scenario { apps, ..base.clone() });
        }
    }
    for at in 0..base.faults.len() {
        let mut fewer = base.clone();
        fewer.faults.remove(at);
        smaller.push(fewer);
    }
    if base.crash.is_some() {
        smaller.push(Scenario { crash: None, ..base.clone() });
    }
    if base.interrupt.is_some() {
        smaller.push(Scenario { interrupt: None, ..base.clone() });
    }
    smaller.into_iter()
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { seed, apps, faults, crash, interrupt } = &self.scenario;
        write!(f, "seed {seed}, {apps} apps")?;
        for fault in faults {
            write!(f, ", {fault}")?;
        }
        if let Some(crash) = crash {
            write!(f, ", {crash:?}")?;
        }
        if let Some((at, signal)) = interrupt {
            write!(f, ", {signal:?} at {} ms", at.as_millis())?;
        }
        self.broken.iter().try_for_each(|broken| write!(f, "\n  {broken}"))
    }
}
