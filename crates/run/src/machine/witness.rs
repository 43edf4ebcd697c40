//! Refreshes that a run need not ask for.
//!
//! A refresh shows that Argo CD has looked at an app since the run began. For an app at a pinned
//! revision it finds nothing new: the manifests are those of the last comparison, and the live
//! objects are those that Argo CD's controller watches anyway. All that is in doubt is whether the
//! controller keeps up. One refreshed app, the witness, shows that for every app on the same
//! cluster, because one controller looks after all of them and takes them in turn.
//!
//! An app is spared its refresh if the gate would find it current, and if its last comparison is
//! recent and later than the last change of Argo CD's settings. An app whose spec is new is spared
//! it too: Argo CD compares it by itself, and that comparison is as good as one that we ask for.
//! Anything else is refreshed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tiphys_model::AppIx;

use super::decide::Seen;
use super::step::Spared;
use super::{ANSWER_TIMEOUT, Machine, Phase};
use crate::effect::Clock;
use crate::event::{Event, SparedBy};
use crate::gate::{self, Start};
use crate::observation::Observation;
use crate::planted::planted;
use crate::time::{Stamp, Time};

/// How much older than the witness's comparison that of a spared app may be. Argo CD can miss a
/// change; by itself it compares every app again within three minutes, unless it was told not to.
const LONGEST_AGE: Duration = Duration::from_secs(30 * 60);

impl Machine {
    /// The refreshes that a run begins with. All at once: a step that becomes ready later need not
    /// wait for its refresh then.
    pub(super) fn first_refreshes(&self, seen: &Seen, clock: Clock) -> Vec<Event> {
        let mut witnesses: BTreeMap<Option<&Arc<str>>, AppIx> = BTreeMap::new();
        let mut first_refresh = |app: AppIx| {
            let (look, settled) = (seen[app.position()].as_deref()?, clock.settled?);
            let later = |than: Stamp| look.reconciled_at.is_some_and(|compared| compared > than);
            // Another cluster may have a controller of its own, with a clock of its own.
            let in_this_run = clock.begun.is_some_and(later) && look.cluster.is_none();
            let compared = !look.compared_to_spec || (in_this_run && look.pinned);
            if compared && !is_troubled(look) {
                return Some(SparedBy::Comparison);
            }
            if !later(settled) || !self.is_current(app, look) {
                return None;
            }
            let witness = *witnesses.entry(look.cluster.as_ref()).or_insert(app);
            (witness != app).then_some(SparedBy::Witness(witness))
        };
        let refresh = |app| match first_refresh(app) {
            Some(by) => Event::RefreshSpared { app, by },
            None => Event::RefreshAsked { app },
        };
        self.plan.graph.apps().map(refresh).collect()
    }

    /// What a look, or the passing of time, means for an app that was spared its refresh.
    pub(super) fn observe_spared(
        &self,
        now: Time,
        seen: Option<&Observation>,
        app: AppIx,
        Spared { by, since }: Spared,
    ) -> Option<Event> {
        if let (SparedBy::Comparison, Some(look)) = (by, seen) {
            if look.compared_to_spec && look.pinned {
                return Some(Event::Vouched { app });
            }
            // A source that moves may have moved since, and trouble is not to be waited for.
            if look.compared_to_spec || is_troubled(look) {
                return Some(Event::RefreshWanted { app });
            }
        }
        if now.since(since) < ANSWER_TIMEOUT {
            return None;
        }
        // While Argo CD goes on comparing others, this one's turn is still to come.
        let busy = by == SparedBy::Comparison && now.since(self.run.vouched) < ANSWER_TIMEOUT;
        Some(if busy { Event::RefreshSpared { app, by } } else { Event::RefreshAsked { app } })
    }

    /// A witness has been refreshed: what that shows about those that were spared.
    pub(super) fn testify(&self, seen: &Seen, witness: AppIx) -> Vec<Event> {
        if !self.step(witness).refresh.witness {
            return Vec::new();
        }
        let now = seen[witness.position()].as_deref().and_then(|look| look.reconciled_at);
        let recent = |look: &Observation| {
            let age = now.zip(look.reconciled_at).map(|(now, at)| now.0.saturating_sub(at.0));
            age.is_some_and(|age| age <= LONGEST_AGE.as_secs().cast_signed())
        };
        let spared = self.plan.graph.apps().filter(|app| {
            let step = self.step(*app);
            let by = step.refresh.spared.map(|spared| spared.by);
            by == Some(SparedBy::Witness(witness)) && step.phase == Phase::Waiting
        });
        let judged = spared.map(|app| match seen[app.position()].as_deref() {
            Some(look) if self.is_current(app, look) && recent(look) => Event::Vouched { app },
            _ => Event::RefreshWanted { app },
        });
        judged.collect()
    }

    /// Whether a refresh could show nothing but that the app is still as it was.
    fn is_current(&self, app: AppIx, look: &Observation) -> bool {
        let planned = &self.plan.app(app).app;
        let start = gate::start(look, self.tag, &planned.name, &planned.tolerate_drift);
        let pinned = look.pinned;
        planted!(SpareMovingApps => let pinned = true);
        pinned && start == Start::AlreadyCurrent
    }
}

/// Whether Argo CD has said that it cannot compare the app.
fn is_troubled(look: &Observation) -> bool {
    gate::hopeless(look).is_some() || gate::comparison_trouble(look).is_some()
}
