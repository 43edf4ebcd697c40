//! The driver: how it is started, what it is told, what it wants done, and how it is killed.

use tiphys_run::{
    Action, Clock, Driver, Event, Illegal, Input, Machine, Output, Stamp, Time, Verdict,
};

use crate::controller::stamp;

use super::{Crash, Happening, LEASE, Recorded, Simulation};

impl Simulation {
    pub(super) fn start_driver(&mut self) {
        self.epoch += 1;
        self.began = self.now;
        self.tick_at = None;
        let machine = Machine::new(self.plan.clone(), self.action, self.epoch);
        self.driver = Some(Driver::new(machine));
        let delay = self.network.request();
        self.schedule(self.now + delay, Happening::Listed(self.epoch));
    }

    /// The driver is shown every Application as it is now; with a fault, as it was a moment ago.
    pub(super) fn list(&mut self) -> Result<(), Illegal> {
        let held = self.action == Action::Deploy;
        if held {
            self.take_hold();
        }
        let mut seen = Vec::with_capacity(self.plan.apps.len());
        for app in self.plan.graph.apps() {
            let look = self.listed(app);
            self.told[app.position()] = (look.version, look.truth);
            seen.push(look.seen);
        }
        // Nobody changes Argo CD's settings here, and the driver begins after the hold.
        let clock = Clock { settled: Some(Stamp(0)), begun: Some(stamp(self.now)) };
        self.tell(Input::Listed { seen, held, clock })
    }

    pub(super) fn tell(&mut self, input: Input) -> Result<(), Illegal> {
        let Some(driver) = &mut self.driver else { return Ok(()) };
        let now = Time::START + (self.now - self.began);
        let ticked = input == Input::Tick;
        let output = driver.step(now, input)?;
        let due = driver.machine().wake_at().is_some_and(|wake| wake <= now);
        self.spinning = ticked && due && output == Output::default();
        let succeeded = driver.machine().verdict() == Some(Verdict::Succeeded);
        self.take(output);
        if succeeded && !self.cleaned {
            self.clean_up_soon();
        }
        if let Some(wake) = self.driver.as_ref().and_then(|driver| driver.machine().wake_at()) {
            let at = self.began + (wake - Time::START);
            if self.tick_at.is_none_or(|tick| at < tick) {
                self.tick_at = Some(at);
                self.schedule(at, Happening::Tick(self.epoch));
            }
        }
        Ok(())
    }

    fn take(&mut self, output: Output) {
        let elapsed = Time::START + (self.now - self.began);
        for event in output.events {
            self.witness(&event);
            self.thaw_what_is_frozen(&event);
            self.records.push(Recorded { at: self.now, elapsed, epoch: self.epoch, event });
        }
        for effect in output.effects {
            let number = self.effects;
            self.effects += 1;
            if self.crash == Some(Crash::BeforeEffect(number)) {
                self.kill();
                return;
            }
            let delay = self.network.request();
            self.schedule(self.now + delay, Happening::Request(effect, self.epoch));
            if self.crash == Some(Crash::AfterEffect(number)) {
                self.kill();
                return;
            }
        }
    }

    /// Compares a start with the truth behind what the driver had been told.
    fn witness(&mut self, event: &Event) {
        let Event::Syncing { app, .. } = event else { return };
        // What has started is never un-started, so only the first sync of a run is a start.
        let started = &mut self.started_in[app.position()];
        if std::mem::replace(started, self.epoch) == self.epoch {
            return;
        }
        for dependency in self.plan.graph.dependencies(*app) {
            let (_, truth) = self.told[dependency.position()];
            if !(truth.healthy && truth.current) {
                self.unready.push((*app, *dependency));
            }
        }
    }

    pub(super) fn kill(&mut self) {
        self.crash = None;
        self.driver = None;
        self.epoch += 1;
        self.schedule(self.now + LEASE, Happening::Restart(self.run));
    }
}
