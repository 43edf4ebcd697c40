//! When a run is over, and how it ended.

use super::Machine;
use crate::event::{Event, Verdict};
use crate::planted::planted;

impl Machine {
    /// The end of the run, once nothing is left to do.
    pub(crate) fn finish(&self) -> Option<Event> {
        if !self.run.begun || self.run.finished.is_some() {
            return None;
        }
        if let Some(signal) = self.run.interrupted
            && self.run.syncing == 0
        {
            return Some(Event::Finished { verdict: Verdict::Interrupted(signal) });
        }
        if self.run.unfinished > 0 || self.run.errands > 0 {
            return None;
        }
        let failed = self.run.lost > 0 || self.run.ailing > 0;
        planted!(SucceedDespiteFailures => let failed = self.run.ailing > 0);
        planted!(SucceedDespiteUnhealthyApps => let failed = self.run.lost > 0);
        let verdict = if failed { Verdict::Failed } else { Verdict::Succeeded };
        Some(Event::Finished { verdict })
    }
}
