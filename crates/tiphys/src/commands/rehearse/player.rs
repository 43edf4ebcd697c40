//! Plays a simulation: lets virtual time pass, at a pace, and shows what happens.

use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tiphys_engine::Signals;
use tiphys_model::{AppName, Exit};
use tiphys_report::Ending;
use tiphys_run::{Action, EngineName, EventLine, Recorder, RunFinished, RunView, Signal, Time};
use tiphys_sim::{FaultTarget, Simulation, Stop};

use crate::args::Speed;
use crate::failure::Failure;
use crate::stage::Stage;
use crate::{output, runtime};

/// How often the screen is drawn.
const FRAME: Duration = Duration::from_millis(50);
/// The reference platform takes ten seconds.
const DEFAULT_SPEED: NonZeroU32 = NonZeroU32::new(240).expect("240 is not 0");

pub(super) struct Player {
    simulation: Simulation,
    seed: u64,
    speed: Speed,
    stage: Stage,
    /// How many of the simulation's records have been shown.
    shown: usize,
    /// Which driver the log is of.
    epoch: u64,
    recorder: Option<Recorder>,
    view: RunView,
    signals: Receiver<Signal>,
}

impl Player {
    pub(super) const DEFAULT_SPEED: Speed = Speed::Times(DEFAULT_SPEED);

    pub(super) fn new(simulation: Simulation, seed: u64, speed: Speed, stage: Stage) -> Self {
        let view = RunView::default();
        let signals = signals();
        Player { simulation, seed, speed, stage, shown: 0, epoch: 0, recorder: None, view, signals }
    }

    /// One run, from its first line to its summary.
    pub(super) fn play(&mut self, action: Action) -> Result<Exit, Failure> {
        self.simulation.begin(action);
        // Screens are drawn at fixed moments of virtual time; the pace only decides how long
        // the wait between them is. So what is written does not depend on the machine.
        let step = match self.speed {
            Speed::Times(speed) => FRAME * speed.get(),
            Speed::Max => FRAME * DEFAULT_SPEED.get(),
        };
        let mut until = self.simulation.now() + step;
        let stop = loop {
            if let Ok(signal) = self.signals.try_recv() {
                self.simulation.interrupt(signal);
            }
            match self.simulation.next_at() {
                Some(at) if at > until => {
                    self.draw(until);
                    if self.speed != Speed::Max {
                        thread::sleep(FRAME);
                    }
                    until = until + step;
                }
                _ => {
                    let stop = self.simulation.advance();
                    self.show_new(action);
                    if let Some(stop) = stop {
                        break stop;
                    }
                }
            }
        };
        match stop {
            Stop::Finished(_) => {
                self.stage.close(&self.view, Ending::Rehearsal);
                let finished = self.view.finished.as_ref().map(RunFinished::exit);
                finished.ok_or_else(|| Failure::Bug("the log has no last line".to_owned()))
            }
            Stop::Illegal(illegal) => Err(Failure::Bug(illegal.to_string())),
            Stop::Endless => Err(Failure::Bug("the rehearsal would never end".to_owned())),
        }
    }

    /// Tells which faults did not strike and what could not be shown, and how the program ends.
    pub(super) fn end(&self, exit: Exit) -> Exit {
        for fault in self.simulation.unstruck() {
            let why = match (&fault.target, fault.at) {
                (FaultTarget::App(app), _) if !self.plans(app) => "the app is outside the scope",
                (_, Some(_)) => "the run ended before its time",
                (FaultTarget::App(_), None) => "the app was never synced",
                (FaultTarget::Run, None) => "no app was synced",
            };
            output::warning(&format!("the fault {fault} did not strike: {why}"));
        }
        self.stage.end(exit)
    }

    fn plans(&self, app: &AppName) -> bool {
        self.simulation.plan().apps.iter().any(|planned| planned.app.name == *app)
    }

    fn draw(&mut self, at: Time) {
        if self.view.started.is_some() {
            let now = Time::START + (at - self.simulation.began());
            self.stage.draw(&self.view, now);
        }
    }

    fn show_new(&mut self, action: Action) {
        while let Some(record) = self.simulation.records().get(self.shown).cloned() {
            self.shown += 1;
            if record.epoch != self.epoch {
                if self.view.finished.is_none() && self.recorder.is_some() {
                    self.stage.say("killed: the next run takes over when the Lease expires");
                }
                self.epoch = record.epoch;
                self.start_log(action);
            }
            let line = self.recorder.as_mut().and_then(|r| r.record(record.elapsed, &record.event));
            if let Some(line) = line {
                self.show(&line);
            }
        }
    }

    /// A driver begins: the first one, or another after a crash.
    fn start_log(&mut self, action: Action) {
        let plan = self.simulation.plan().clone();
        let run = run_id(plan.digest.as_str(), self.seed, self.epoch);
        let mut recorder = Recorder::new(plan, action, origin(self.simulation.began()));
        let line = recorder.start(run, EngineName::Simulated, Some(self.seed));
        self.recorder = Some(recorder);
        self.show(&line);
    }

    fn show(&mut self, line: &EventLine) {
        self.view.fold(line);
        self.stage.show(line);
    }
}

/// The signals that come meanwhile. If none can be heard, they end the program as usual.
fn signals() -> Receiver<Signal> {
    let (sender, receiver) = channel();
    let (ready, listening) = channel();
    thread::spawn(move || {
        runtime::block_on(async {
            let mut signals = Signals::listen()?;
            ready.send(()).unwrap_or_default();
            while sender.send(signals.next().await).is_ok() {}
            Ok(())
        })
    });
    // An error here is a thread that hears nothing.
    listening.recv().unwrap_or_default();
    receiver
}

/// Simulated time begins with the year 2000.
fn origin(began: Time) -> Timestamp {
    const YEAR_2000_MS: i64 = 946_684_800_000;
    let millis = i64::try_from(began.as_millis()).unwrap_or_default();
    Timestamp::from_millisecond(YEAR_2000_MS + millis).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The same for the same plan and seed, another for each driver of a rehearsal.
fn run_id(digest: &str, seed: u64, epoch: u64) -> String {
    let hash = Sha256::digest(format!("{digest}/{seed}/{epoch}"));
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
