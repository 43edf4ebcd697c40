//! What a teardown removes after the last app: namespaces, CRDs, and what goes by itself.
//!
//! A few deletions at a time, each judged anew, so that others may make something in between and a
//! driver may be killed between any two.

use super::{Crash, Happening, Simulation};

/// How many deletions belong together.
const BATCH: usize = 3;

impl Simulation {
    pub(super) fn clean_up_soon(&mut self) {
        let delay = self.network.request();
        self.schedule(self.now + delay, Happening::CleanUp(self.epoch));
    }

    pub(super) fn clean_up(&mut self) {
        let more = self.controller.with_objects(self.now, |objects| objects.clean_up(BATCH));
        if self.crash == Some(Crash::InCleanUp) {
            self.kill();
        } else if more {
            self.clean_up_soon();
        } else {
            self.cleaned = true;
        }
    }
}
