//! Who starts next: by rank, then by name, within the limits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tiphys_model::AppIx;
use tiphys_model::platform::Policies;

/// The smallest priority first.
type Entry = Reverse<(u32, AppIx)>;

/// Apps that may start as soon as there is room. Room is counted for the whole run and for each
/// group; the estimate and the run machine ask the same queue, so they cannot disagree.
#[derive(Debug, Clone)]
pub struct StartQueue {
    room: u32,
    groups: Vec<GroupRoom>,
    ready: BinaryHeap<Entry>,
}

#[derive(Debug, Clone)]
struct GroupRoom {
    room: u32,
    /// Ready, but the group is full.
    parked: BinaryHeap<Entry>,
}

impl StartQueue {
    #[must_use]
    pub fn new(policies: &Policies) -> Self {
        let group = |concurrency| GroupRoom { room: concurrency, parked: BinaryHeap::new() };
        StartQueue {
            room: policies.concurrency.get(),
            groups: policies.groups.iter().map(|g| group(g.concurrency.get())).collect(),
            ready: BinaryHeap::new(),
        }
    }

    /// The app waits for nothing but room.
    pub fn push(&mut self, app: AppIx, priority: u32) {
        self.ready.push(Reverse((priority, app)));
    }

    /// The next app to start, which takes room until it is [released](Self::release).
    pub fn pop(&mut self, group_of: impl Fn(AppIx) -> Option<usize>) -> Option<AppIx> {
        if self.room == 0 {
            return None;
        }
        while let Some(entry) = self.ready.pop() {
            let Reverse((_, app)) = entry;
            if let Some(group) = group_of(app).and_then(|group| self.groups.get_mut(group)) {
                if group.room == 0 {
                    group.parked.push(entry);
                    continue;
                }
                group.room -= 1;
            }
            self.room -= 1;
            return Some(app);
        }
        None
    }

    /// An app that was popped is no longer in progress.
    pub fn release(&mut self, group: Option<usize>) {
        self.room += 1;
        if let Some(group) = group.and_then(|group| self.groups.get_mut(group)) {
            group.room += 1;
            self.ready.extend(group.parked.pop());
        }
    }
}
