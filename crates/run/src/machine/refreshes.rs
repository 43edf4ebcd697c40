//! How the events about refreshes change a step.

use tiphys_model::AppIx;

use super::apply::{Applied, require};
use super::step::{Asked, Phase, Spared};
use super::{ANSWER_TIMEOUT, Machine, REFRESH_INTERVAL};
use crate::effect::RequestNumber;
use crate::event::SparedBy;
use crate::time::Time;

impl Machine {
    pub(super) fn refresh_asked(&mut self, at: Time, app: AppIx, number: RequestNumber) -> Applied {
        let step = &mut self.steps[app.position()];
        let in_flight =
            step.refresh.in_flight.is_some_and(|asked| at.since(asked.at) < ANSWER_TIMEOUT);
        require(!in_flight, "a refresh is in flight")?;
        let soon = step.refresh.last_asked.is_some_and(|last| at.since(last) < REFRESH_INTERVAL);
        require(!soon, "a refresh was asked for less than five seconds ago")?;
        let first = step.refresh.in_flight.map_or(number, |asked| asked.first);
        step.refresh.in_flight = Some(Asked { at, first, number });
        step.refresh.last_asked = Some(at);
        step.refresh.wanted = false;
        step.refresh.spared = None;
        Ok(())
    }

    pub(super) fn want_refresh(&mut self, app: AppIx) {
        let refresh = &mut self.steps[app.position()].refresh;
        refresh.fresh = false;
        refresh.wanted = true;
        refresh.in_flight = None;
        refresh.spared = None;
    }

    pub(super) fn spare(&mut self, at: Time, app: AppIx, by: SparedBy) -> Applied {
        if let SparedBy::Witness(witness) = by {
            require(app != witness, "it is its own witness")?;
            self.steps[witness.position()].refresh.witness = true;
        }
        self.steps[app.position()].refresh.spared = Some(Spared { by, since: at });
        Ok(())
    }

    pub(super) fn vouch(&mut self, at: Time, app: AppIx) -> Applied {
        let refresh = &mut self.steps[app.position()].refresh;
        refresh.spared.take().ok_or("it was not spared a refresh")?;
        refresh.fresh = true;
        self.run.vouched = at;
        Ok(())
    }

    pub(super) fn refreshed(&mut self, app: AppIx) -> Applied {
        let step = &mut self.steps[app.position()];
        step.refresh.in_flight.take().ok_or("no refresh was asked for")?;
        step.refresh.fresh = true;
        if let Some(trouble) = &mut step.trouble {
            trouble.refreshes += 1;
        }
        if let Phase::Converging(converging) = &mut step.phase {
            converging.refreshed = true;
        }
        Ok(())
    }
}
