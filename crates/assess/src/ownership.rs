//! Whose an object is that a teardown, a prune or a cleanup meets.
//!
//! What is ours, was made for ours, or is part of every namespace may go. What somebody wants to
//! keep, and what is somebody else's, never goes, and neither does the namespace or the custom
//! resource definition (CRD) that it needs.

mod containers;
mod marks;
mod others;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tiphys_model::platform::GroupKind;
use tiphys_run::planted;

pub use containers::{Container, Judged, needed};
pub use marks::{keep, says_itself, tracking_app};
pub use others::Others;

/// What is to be known of an object: its metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    pub group: String,
    pub kind: String,
    /// What the API calls objects of this kind.
    pub plural: String,
    /// Empty for what is cluster-wide.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The uids of its owners.
    pub owners: Vec<String>,
    /// Who wrote its fields first, as the API server has noted it.
    pub creator: Option<String>,
}

/// What is to be known of the platform and of those beside it.
#[derive(Debug, Clone, Default)]
pub struct Platform {
    pub name: String,
    /// Its apps, those that are gone included.
    pub apps: BTreeSet<String>,
    /// Those of them whose objects are to be kept.
    pub keeping: BTreeSet<String>,
    /// The name that its Argo CD gives itself, if it has one.
    pub installation: Option<String>,
    /// All other Applications that are there.
    pub others: BTreeSet<String>,
    /// Namespaces that came with it.
    pub namespaces: BTreeSet<String>,
    /// What of others may go with it this time.
    pub including: Vec<Others>,
    /// Kinds of which others' objects may always go with it.
    pub disposable: Vec<GroupKind>,
}

/// Whose an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// An app of the platform has applied it.
    Ours,
    /// Made for what is ours.
    Derived,
    /// Kubernetes or a reporter makes it for every namespace.
    Ambient,
    Kept(Keep),
    Foreign(Whose),
    /// Somebody else's, and named to go with the platform.
    Taken(Whose),
}

/// Why an object is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    DeleteFalse,
    /// Its app has the option.
    AppDeleteFalse,
    HelmPolicy,
    /// Nobody could read the sealed secrets in Git without it.
    SealingKey,
}

/// Whose an object is that is not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Another Application has applied it.
    App(String),
    /// An app of that name has, in another Argo CD.
    Installation(String),
    /// Another platform of Tiphys has made it.
    Platform(String),
    HelmRelease(String),
    /// A person or another tool has made it.
    Creator(String),
    /// It belongs to an object that is to be kept, or somebody else's.
    Owner(String),
    /// Nothing on it says that it was made for the platform.
    Unmarked,
}

impl Ownership {
    /// Whether it may go with the platform.
    #[must_use]
    pub fn goes(&self) -> bool {
        match self {
            Ownership::Ours | Ownership::Derived | Ownership::Ambient | Ownership::Taken(_) => true,
            Ownership::Kept(_) | Ownership::Foreign(_) => false,
        }
    }
}

impl fmt::Display for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ownership::Ours => f.write_str("an app of the platform has applied it"),
            Ownership::Derived => f.write_str("it was created for the platform"),
            Ownership::Ambient => f.write_str("it exists in every namespace"),
            Ownership::Kept(keep) => keep.fmt(f),
            Ownership::Foreign(whose) | Ownership::Taken(whose) => whose.fmt(f),
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keep::DeleteFalse => "it has the sync option `Delete=false`",
            Keep::AppDeleteFalse => "its app has the sync option `Delete=false`",
            Keep::HelmPolicy => "it has the annotation `helm.sh/resource-policy: keep`",
            Keep::SealingKey => "it is a sealing key: sealed secrets cannot be read without it",
        })
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whose::App(app) => write!(f, "the Application `{app}` has applied it"),
            Whose::Installation(id) => write!(f, "another Argo CD, `{id}`, has applied it"),
            Whose::Platform(name) => write!(f, "the platform `{name}` has created it"),
            Whose::HelmRelease(name) => write!(f, "the Helm release `{name}` has installed it"),
            Whose::Creator(creator) => write!(f, "`{creator}` has created it"),
            Whose::Owner(owner) => write!(f, "it belongs to {owner}, which stays"),
            Whose::Unmarked => f.write_str("nothing shows that it belongs to the platform"),
        }
    }
}

/// Judges objects together: what belongs to one of them shares its fate.
#[must_use]
pub fn judge(objects: &[Object], platform: &Platform) -> Vec<Ownership> {
    let by_uid: BTreeMap<&str, usize> =
        objects.iter().enumerate().map(|(at, object)| (object.uid.as_str(), at)).collect();
    let by_name: BTreeMap<_, usize> =
        objects.iter().enumerate().map(|(at, object)| (object.key(), at)).collect();
    let owners = |object: &Object| -> Vec<usize> {
        let owners = object.owners.iter().filter_map(|uid| by_uid.get(uid.as_str()));
        let maker = marks::made_for(object).and_then(|key| by_name.get(&key).copied());
        owners.copied().chain(maker).collect()
    };
    let owners: Vec<Vec<usize>> = objects.iter().map(owners).collect();
    let mut judged: Vec<Option<Ownership>> = objects
        .iter()
        .zip(&owners)
        .map(|(object, owners)| {
            let mark = marks::own_mark(object, platform);
            let fate = mark.or_else(|| owners.is_empty().then(|| unowned(object, platform)))?;
            Some(platform.taking(object, fate))
        })
        .collect();
    let named = |object: &Object| platform.names(object);
    follow_owners(objects, &owners, named, &mut judged);
    // What is left hangs on owners that go round in a circle. There, those that are somebody
    // else's by themselves come first.
    for (fate, object) in judged.iter_mut().zip(objects).filter(|(fate, _)| fate.is_none()) {
        let alone = platform.taking(object, unowned(object, platform));
        *fate = Some(alone).filter(|fate| !fate.goes());
    }
    follow_owners(objects, &owners, named, &mut judged);
    // What is named and has an owner that stays may have another one of which nobody knows.
    follow_owners(objects, &owners, |_| false, &mut judged);
    let settled = judged.into_iter().zip(objects);
    settled
        .map(|(fate, object)| {
            fate.unwrap_or_else(|| platform.taking(object, unowned(object, platform)))
        })
        .collect()
}

/// Judges what belongs to something that is judged: it stays if one of its owners does, and goes if
/// all do. What is named to go stays only with an owner that must not go.
fn follow_owners(
    objects: &[Object],
    owners: &[Vec<usize>],
    named: impl Fn(&Object) -> bool,
    judged: &mut [Option<Ownership>],
) {
    loop {
        let mut changed = false;
        for at in 0..objects.len() {
            if judged[at].is_some() {
                continue;
            }
            let fates: Vec<(usize, &Ownership)> = owners[at]
                .iter()
                .filter_map(|owner| Some((*owner, judged[*owner].as_ref()?)))
                .collect();
            let all_known = fates.len() == owners[at].len();
            let stays = fates.iter().find(|(_, fate)| !fate.goes());
            let bound = fates.iter().any(|(_, fate)| {
                matches!(fate, Ownership::Kept(_) | Ownership::Foreign(Whose::Owner(_)))
            });
            planted!(WhatHasAnOwnerGoes => let stays = None);
            let fate = match stays {
                Some((owner, _)) => {
                    let whose = Whose::Owner(objects[*owner].to_string());
                    if bound || !named(&objects[at]) {
                        Some(Ownership::Foreign(whose))
                    } else {
                        all_known.then_some(Ownership::Taken(whose))
                    }
                }
                None => all_known.then_some(Ownership::Derived),
            };
            changed |= fate.is_some();
            judged[at] = fate;
        }
        if !changed {
            return;
        }
    }
}

impl Platform {
    fn names(&self, object: &Object) -> bool {
        let of_kind =
            |GroupKind { group, kind }: &GroupKind| *group == object.group && *kind == object.kind;
        self.including.iter().any(|others| others.include(object))
            || self.disposable.iter().any(of_kind)
    }

    /// What is somebody else's, and named, goes.
    fn taking(&self, object: &Object, fate: Ownership) -> Ownership {
        match fate {
            Ownership::Foreign(whose) if self.names(object) => Ownership::Taken(whose),
            fate => fate,
        }
    }
}

/// An object without a mark of its own, and without an owner that is known.
fn unowned(object: &Object, platform: &Platform) -> Ownership {
    if let Some(creator) = marks::somebody(object) {
        return Ownership::Foreign(Whose::Creator(creator.to_owned()));
    }
    if platform.namespaces.contains(&object.namespace) {
        Ownership::Derived
    } else {
        Ownership::Foreign(Whose::Unmarked)
    }
}

impl Object {
    fn key(&self) -> (&str, &str, &str, &str) {
        (&self.group, &self.kind, &self.namespace, &self.name)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{}/{}", self.kind, self.name),
            namespace => write!(f, "{}/{namespace}/{}", self.kind, self.name),
        }
    }
}
