//! Who starts next: by priority, within the limits.

use std::collections::BTreeSet;

use tiphys_model::AppIx;
use tiphys_model::platform::Policies;

/// Apps that may start as soon as there is room. Room is counted for the whole run and for each
/// group; the estimate and the run machine ask the same queue, so they cannot disagree.
///
/// Apps wait in lanes, one for each group and one for those without. The heads of the lanes that
/// have room stand in an order of their own, so every call costs a logarithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartQueue {
    room: u32,
    lanes: Vec<Lane>,
    heads: BTreeSet<(Entry, usize)>,
}

/// Priority, app.
type Entry = (u32, AppIx);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lane {
    room: u32,
    ready: BTreeSet<Entry>,
}

/// The lane of a group; apps without one come first.
fn lane(group: Option<usize>) -> usize {
    group.map_or(0, |group| group + 1)
}

impl StartQueue {
    #[must_use]
    pub fn new(policies: &Policies) -> Self {
        let limits = policies.groups.iter().map(|group| group.concurrency.get());
        StartQueue {
            room: policies.concurrency.get(),
            lanes: std::iter::once(u32::MAX)
                .chain(limits)
                .map(|room| Lane { room, ready: BTreeSet::new() })
                .collect(),
            heads: BTreeSet::new(),
        }
    }

    /// The app waits for nothing but room.
    pub fn insert(&mut self, app: AppIx, priority: u32, group: Option<usize>) {
        self.change(lane(group), |lane| {
            lane.ready.insert((priority, app));
        });
    }

    /// The app has started, or has to wait for something again.
    pub fn remove(&mut self, app: AppIx, priority: u32, group: Option<usize>) {
        self.change(lane(group), |lane| {
            lane.ready.remove(&(priority, app));
        });
    }

    /// The app to start next.
    #[must_use]
    pub fn first(&self) -> Option<AppIx> {
        if self.room == 0 {
            return None;
        }
        self.heads.first().map(|((_, app), _)| *app)
    }

    /// An app of the group is in progress now.
    pub fn occupy(&mut self, group: Option<usize>) {
        self.room = self.room.saturating_sub(1);
        self.change(lane(group), |lane| lane.room = lane.room.saturating_sub(1));
    }

    /// An app of the group is no longer in progress.
    pub fn release(&mut self, group: Option<usize>) {
        self.room += 1;
        self.change(lane(group), |lane| lane.room = lane.room.saturating_add(1));
    }

    /// Changes a lane, and keeps its head among the heads if it has room.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Lane)) {
        let head = |lane: &Lane| lane.ready.first().copied().filter(|_| lane.room > 0);
        let before = head(&self.lanes[at]);
        change(&mut self.lanes[at]);
        let after = head(&self.lanes[at]);
        if before != after {
            if let Some(entry) = before {
                self.heads.remove(&(entry, at));
            }
            if let Some(entry) = after {
                self.heads.insert((entry, at));
            }
        }
    }
}
