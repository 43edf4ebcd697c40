//! What is in the simulated cluster beside Applications: namespaces, kinds, and objects of the
//! platform and of others.
//!
//! Each object is known to be of one side from the moment it is made. A teardown does not see that:
//! it judges by marks and owners, with the function that a real one uses.

mod draw;

use std::collections::{BTreeMap, BTreeSet};

use tiphys_assess::ownership::{self, Container, Judged, Object, Ownership, needed};
use tiphys_model::{AppIx, Plan};

use crate::chance::Chance;
use draw::{Drawn, Owner};

/// Whose an object really is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// It comes with the platform and has to go with it.
    Platform,
    /// Somebody keeps it, or it is somebody else's: it must not go.
    Others,
    /// Every namespace has one.
    Cluster,
}

struct Placed {
    object: Object,
    side: Side,
    /// The app that applies it.
    applied_by: Option<AppIx>,
    /// It came with the platform, which has noted that.
    came: bool,
}

/// All objects of the cluster.
pub(crate) struct Objects {
    placed: BTreeMap<u64, Placed>,
    next_uid: u64,
    /// What each app brings, and what others make once its namespace is there.
    drawn: Vec<Vec<Drawn>>,
    /// What others make while the platform is removed.
    late: Vec<Drawn>,
    platform: ownership::Platform,
    /// What of others has gone, until it is told.
    lost: Vec<String>,
}

impl Objects {
    pub(crate) fn draw(plan: &Plan, seed: u64) -> Self {
        let names: Vec<&str> =
            plan.graph.apps().map(|app| plan.app(app).app.name.as_str()).collect();
        let chance = |purpose: u64| Chance::stream(seed, 100_000 + purpose);
        let drawn = (0_u64..).zip(&names);
        let drawn: Vec<Vec<Drawn>> =
            drawn.map(|(at, name)| draw::for_app(name, names.len(), &mut chance(at))).collect();
        let mut objects = Objects {
            placed: BTreeMap::new(),
            next_uid: 0,
            late: draw::late(&drawn, &mut chance(names.len() as u64)),
            drawn,
            platform: ownership::Platform {
                name: plan.platform.to_string(),
                apps: names.iter().map(|name| (*name).to_owned()).collect(),
                installation: None,
                others: [draw::OTHER_APP.to_owned()].into(),
                namespaces: BTreeSet::new(),
                keeping: BTreeSet::new(),
                including: Vec::new(),
                disposable: Vec::new(),
            },
            lost: Vec::new(),
        };
        objects.make_namespace(draw::BEFORE, false);
        objects
    }

    /// The app has been applied: what it brings is there, and so is what others make beside it.
    pub(crate) fn apply(&mut self, app: AppIx) {
        for drawn in self.drawn[app.position()].clone() {
            self.make(&drawn, app);
        }
    }

    /// Somebody makes what they make during a teardown, if there is still a place for it.
    pub(crate) fn make_late(&mut self) {
        let app = AppIx::new(0);
        for drawn in std::mem::take(&mut self.late) {
            if self.has(&Container::Namespace(drawn.object.namespace.clone())) {
                self.make(&drawn, app);
            }
        }
    }

    /// Argo CD removes what the app has applied; what it owned goes after it.
    pub(crate) fn cascade(&mut self, app: AppIx) {
        // Argo CD's own rules, in its own words: they are not ours to decide.
        let spared = |object: &Object| {
            object.kind == "CustomResourceDefinition"
                || object.annotations.values().any(|value| value == "Delete=false")
                || object.annotations.values().any(|value| value == "keep")
        };
        self.remove(|placed| placed.applied_by == Some(app) && !spared(&placed.object));
    }

    /// Removes some of what a teardown removes after the last app, as it judges it now. False: there
    /// was nothing left to remove.
    pub(crate) fn clean_up(&mut self, at_most: usize) -> bool {
        let mut going = self.going();
        going.truncate(at_most);
        for uid in &going {
            let Some(placed) = self.placed.get(uid) else { continue };
            match Container::of(&placed.object) {
                Some(Container::Namespace(name)) => self.remove(|placed| {
                    placed.object.namespace == name || is_namespace(&placed.object, &name)
                }),
                Some(Container::Crd(name)) => self
                    .remove(|placed| crd_of(&placed.object) == name || placed.object.name == name),
                None => {
                    let uid = placed.object.uid.clone();
                    self.remove(|placed| placed.object.uid == uid);
                }
            }
        }
        !going.is_empty()
    }

    /// What goes after the last app: namespaces and CRDs that nobody else needs, then what goes by
    /// itself because what it is in stays.
    fn going(&self) -> Vec<u64> {
        let came: BTreeSet<Container> = self
            .placed
            .values()
            .filter(|placed| placed.came)
            .filter_map(|placed| Container::of(&placed.object))
            .collect();
        let listed = |object: &Object| {
            Container::of(object).is_some_and(|container| came.contains(&container))
                || came.contains(&Container::Namespace(object.namespace.clone()))
                || came.contains(&Container::Crd(crd_of(object)))
        };
        let (uids, objects): (Vec<u64>, Vec<Object>) = self
            .placed
            .iter()
            .filter(|(_, placed)| listed(&placed.object))
            .map(|(uid, placed)| (*uid, placed.object.clone()))
            .unzip();
        let judged = ownership::judge(&objects, &self.platform);
        let crds: Vec<String> = objects.iter().map(crd_of).collect();
        let stays =
            needed(objects.iter().zip(&judged).zip(&crds).map(|((object, whose), crd)| Judged {
                object,
                whose,
                crd,
            }));
        let (mut containers, mut alone) = (Vec::new(), Vec::new());
        for ((uid, object), whose) in uids.iter().zip(&objects).zip(&judged) {
            match Container::of(object) {
                Some(container) if came.contains(&container) && !stays.contains_key(&container) => {
                    containers.push(*uid);
                }
                None if matches!(whose, Ownership::Ours | Ownership::Derived)
                    && object.owners.is_empty() =>
                {
                    alone.push(*uid);
                }
                Some(_) | None => {}
            }
        }
        containers.extend(alone);
        containers
    }

    /// What of others has gone since this was asked last.
    pub(crate) fn take_lost(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lost)
    }

    /// What a complete teardown should not have left: objects of the platform, and namespaces and
    /// CRDs that came with it and that nothing of others needs.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let others = || self.placed.values().filter(|placed| placed.side == Side::Others);
        let is_needed = |container: &Container| {
            others().any(|placed| match container {
                Container::Namespace(name) => {
                    placed.object.namespace == *name || is_namespace(&placed.object, name)
                }
                Container::Crd(name) => crd_of(&placed.object) == *name,
            })
        };
        let left = self.placed.values().filter(|placed| match Container::of(&placed.object) {
            Some(container) => placed.came && !is_needed(&container),
            None => placed.side == Side::Platform,
        });
        left.map(|placed| placed.object.to_string()).collect()
    }

    fn has(&self, container: &Container) -> bool {
        self.placed.values().any(|placed| Container::of(&placed.object).as_ref() == Some(container))
    }

    fn make_namespace(&mut self, name: &str, came: bool) {
        if self.has(&Container::Namespace(name.to_owned())) {
            return;
        }
        if came {
            self.platform.namespaces.insert(name.to_owned());
        }
        let namespace =
            Object { kind: "Namespace".to_owned(), name: name.to_owned(), ..Object::default() };
        self.place(Placed { object: namespace, side: Side::Cluster, applied_by: None, came });
        for (kind, ambient) in [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")] {
            let object = Object {
                kind: kind.to_owned(),
                namespace: name.to_owned(),
                name: ambient.to_owned(),
                ..Object::default()
            };
            self.place(Placed { object, side: Side::Cluster, applied_by: None, came: false });
        }
    }

    /// Makes an object and its namespace, unless they are there.
    fn make(&mut self, drawn: &Drawn, app: AppIx) {
        let Drawn { object, side, applied, owner, marks_namespace } = drawn;
        if !object.namespace.is_empty() {
            self.make_namespace(&object.namespace, true);
        }
        if *marks_namespace {
            self.keep_namespace(&object.namespace);
        }
        let same = |other: &Object| {
            (&other.group, &other.kind, &other.namespace, &other.name)
                == (&object.group, &object.kind, &object.namespace, &object.name)
        };
        if self.placed.values().any(|placed| same(&placed.object)) {
            return;
        }
        let mut object = object.clone();
        if let Some(Owner { kind, name }) = owner {
            let mut placed = self.placed.values();
            let owner =
                placed.find(|placed| placed.object.kind == *kind && placed.object.name == *name);
            // What would own it has not come, or is gone: nobody makes it.
            let Some(owner) = owner else { return };
            object.owners = vec![owner.object.uid.clone()];
        }
        let applied_by = applied.then_some(app);
        let came = Container::of(&object).is_some();
        self.place(Placed { object, side: *side, applied_by, came });
    }

    /// Somebody wants to keep a namespace, whatever is in it.
    fn keep_namespace(&mut self, name: &str) {
        let found = self.placed.values_mut().find(|placed| is_namespace(&placed.object, name));
        if let Some(placed) = found {
            placed.side = Side::Others;
            draw::keep_by_helm(&mut placed.object);
        }
    }

    fn place(&mut self, mut placed: Placed) {
        self.next_uid += 1;
        placed.object.uid = self.next_uid.to_string();
        self.placed.insert(self.next_uid, placed);
    }

    /// Removes objects, and what belongs to nothing any more.
    fn remove(&mut self, goes: impl Fn(&Placed) -> bool) {
        let mut going: Vec<u64> = self.uids(&goes);
        while !going.is_empty() {
            for uid in going {
                let gone = self.placed.remove(&uid);
                let others = gone.filter(|placed| placed.side == Side::Others);
                self.lost.extend(others.map(|placed| placed.object.to_string()));
            }
            going = self.uids(|placed| {
                let owners = &placed.object.owners;
                !owners.is_empty() && !owners.iter().any(|owner| self.is_live(owner))
            });
        }
    }

    fn uids(&self, which: impl Fn(&Placed) -> bool) -> Vec<u64> {
        self.placed.iter().filter(|(_, placed)| which(placed)).map(|(uid, _)| *uid).collect()
    }

    fn is_live(&self, uid: &str) -> bool {
        uid.parse().is_ok_and(|uid: u64| self.placed.contains_key(&uid))
    }
}

fn is_namespace(object: &Object, name: &str) -> bool {
    Container::of(object) == Some(Container::Namespace(name.to_owned()))
}

/// What the CRD of an object's kind is called, or would be.
fn crd_of(object: &Object) -> String {
    format!("{}s.{}", object.kind.to_lowercase(), object.group)
}
