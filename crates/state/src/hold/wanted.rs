//! What this run wants to hold, and what to do when the project shows something else. No clock, no
//! requests.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;

use super::decide::Change;
use super::windows::{self, Difference};
use tiphys_cluster::names::FIELD_MANAGER;

/// How often a run sets its hold again that others have removed or changed.
pub(super) const LIMIT: u32 = 3;

/// What a project says at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Project {
    pub(super) version: Option<String>,
    pub(super) windows: Vec<Value>,
    pub(super) managers: Vec<ManagedFieldsEntry>,
}

/// What the window of this run has to say. Whoever writes to the project or looks at it has this to
/// itself meanwhile, so a write of ours that is under way is never taken for one of others.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Who is held. Unknown until the run has its hold: what stands there before is added to.
    apps: Option<BTreeSet<String>>,
    /// Who is held since our last write.
    written: BTreeSet<String>,
    /// Nobody knows whether our last write arrived.
    unsure: bool,
    /// How often the hold was set again.
    pub(super) set_again: u32,
    /// The run that the hold belongs to by now.
    successor: Option<String>,
}

/// What to do about a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// It is as it should be.
    Nothing,
    /// The hold is that of a run that came after this one.
    LeaveAlone { run: String },
    /// Hold these, and no others. The hold may have been changed by others.
    Write { apps: BTreeSet<String>, changed: Option<ForeignChange> },
    /// The hold has been set again often enough.
    GiveUp(ForeignChange),
}

/// A change of our window that was not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignChange {
    pub(super) difference: Difference,
    /// The field manager, if there is a trace of one.
    pub(super) by: Option<String>,
}

impl std::fmt::Display for ForeignChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.difference {
            Difference::Removed => f.write_str("removed")?,
            Difference::Added => f.write_str("added")?,
            Difference::Changed(fields) => write!(f, "changed ({})", fields.join(", "))?,
        }
        match &self.by {
            Some(manager) => write!(f, " by the field manager `{manager}`"),
            None => f.write_str(" by an unknown field manager"),
        }
    }
}

impl Wanted {
    /// From now on the window says what this run wants, and nothing else.
    pub(super) fn begin(&mut self) {
        self.apps = Some(self.written.clone());
    }

    pub(super) fn has_begun(&self) -> bool {
        self.apps.is_some()
    }

    /// Goes on with the hold that this run has set before.
    pub(super) fn adopt(&mut self, project: &Project, run: &str) {
        if windows::held_by(&project.windows).as_deref() == Some(run) {
            self.apps = Some(windows::held(&project.windows));
        }
    }

    pub(super) fn decide(&self, project: &Project, run: &str, change: &Change) -> Next {
        let shown = &project.windows;
        // Whoever begins to hold has the Lease, so whose hold it was before does not matter.
        let takes_over = self.apps.is_none() && matches!(change, Change::Hold(_));
        if let Some(run) =
            windows::held_by(shown).filter(|other| !takes_over && is_newer(other, run))
        {
            return Next::LeaveAlone { run };
        }
        let before = self.apps.clone().unwrap_or_else(|| windows::held(shown));
        let apps = change.of(&before);
        let done = if self.apps.is_none() && !takes_over {
            change.missing(&before).is_empty()
        } else {
            windows::difference(shown, &apps, run).is_none()
        };
        if done {
            return Next::Nothing;
        }
        let known = self.apps.as_ref().filter(|_| !self.unsure);
        let difference = known.and_then(|apps| windows::difference(shown, apps, run));
        let changed = difference
            .map(|difference| ForeignChange { difference, by: changed_by(&project.managers) });
        match changed {
            Some(changed) if self.set_again >= LIMIT => Next::GiveUp(changed),
            changed => Next::Write { apps, changed },
        }
    }

    /// Notes whose hold it is by now; whether that is news.
    pub(super) fn learns_of(&mut self, run: &str) -> bool {
        self.successor.replace(run.to_owned()).as_deref() != Some(run)
    }

    /// This is being written.
    pub(super) fn write(&mut self, apps: &BTreeSet<String>) {
        self.unsure = true;
        self.settle(apps);
    }

    /// It has been written, over a change of others or not.
    pub(super) fn written(&mut self, over_others: bool) {
        self.unsure = false;
        self.set_again += u32::from(over_others);
    }

    /// The project says what a change wanted.
    pub(super) fn confirm(&mut self, project: &Project, change: &Change) {
        let before = self.apps.clone().unwrap_or_else(|| windows::held(&project.windows));
        self.unsure = false;
        self.settle(&change.of(&before));
    }

    fn settle(&mut self, apps: &BTreeSet<String>) {
        self.written.clone_from(apps);
        if self.apps.is_some() {
            self.apps = Some(apps.clone());
        }
    }
}

/// Names of runs end with the epoch of their Lease.
fn is_newer(other: &str, run: &str) -> bool {
    let epoch = |run: &str| run.rsplit_once('-')?.1.parse::<u64>().ok();
    matches!((epoch(other), epoch(run)), (Some(other), Some(ours)) if other > ours)
}

/// Who has changed the windows since we did. They are one field, so they have one owner; removing
/// them leaves a trace only of who has changed something else as well.
fn changed_by(managers: &[ManagedFieldsEntry]) -> Option<String> {
    let is_ours = |entry: &&ManagedFieldsEntry| entry.manager.as_deref() == Some(FIELD_MANAGER);
    let others = || managers.iter().filter(|entry| !is_ours(entry));
    let owns = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0.pointer("/f:spec/f:syncWindows").is_some())
    };
    let time = |entry: &&ManagedFieldsEntry| entry.time.as_ref().map(|time| time.0);
    let ours = managers.iter().filter(is_ours).filter_map(|entry| time(&entry)).max();
    let since_ours = |entry: &&ManagedFieldsEntry| time(entry) >= ours;
    let owner = others().filter(owns).max_by_key(time);
    owner.or_else(|| others().filter(since_ours).max_by_key(time))?.manager.clone()
}

#[cfg(test)]
mod tests;
