//! Refreshes that a run need not ask for.
//!
//! A refresh shows that Argo CD has looked at an app since the run began. For an app at a pinned
//! revision it finds nothing new: the manifests are those of the last comparison, and the live
//! objects are those that Argo CD's controller watches anyway. All that is in doubt is whether the
//! controller keeps up. One refreshed app, the witness, shows that for every app on the same
//! cluster, because one controller looks after all of them and takes them in turn.
//!
//! An app is spared its refresh if the gate would find it current, and if its last comparison is
//! recent and later than the last change of Argo CD's settings. Anything else is refreshed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tiphys_model::AppIx;

use super::decide::Seen;
use super::{Machine, Phase};
use crate::event::Event;
use crate::gate::{self, Start};
use crate::observation::Observation;
use crate::planted::planted;
use crate::time::Stamp;

/// How much older than the witness's comparison that of a spared app may be. Argo CD can miss a
/// change; by itself it compares every app again within three minutes, unless it was told not to.
const LONGEST_AGE: Duration = Duration::from_secs(30 * 60);

impl Machine {
    /// The refreshes that a run begins with. All at once: a step that becomes ready later need not
    /// wait for its refresh then.
    pub(super) fn first_refreshes(&self, seen: &Seen, settled: Option<Stamp>) -> Vec<Event> {
        let mut witnesses: BTreeMap<Option<&Arc<str>>, AppIx> = BTreeMap::new();
        let mut events = Vec::with_capacity(self.plan.apps.len());
        for app in self.plan.graph.apps() {
            let look = seen[app.position()].as_deref().filter(|look| {
                settled.is_some_and(|settled| look.reconciled_at.is_some_and(|at| at > settled))
                    && self.is_current(app, look)
            });
            let witness = look.and_then(|look| match witnesses.entry(look.cluster.as_ref()) {
                std::collections::btree_map::Entry::Occupied(entry) => Some(*entry.get()),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(app);
                    None
                }
            });
            events.push(match witness {
                Some(witness) => Event::RefreshSpared { app, witness },
                None => Event::RefreshAsked { app },
            });
        }
        events
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
            let spared = step.refresh.spared.is_some_and(|spared| spared.witness == witness);
            spared && step.phase == Phase::Waiting
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
