//! What is in the namespaces, and of the kinds, that came with a platform: whose it is, and what
//! has to stay for the sake of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kube::api::{ApiResource, ObjectMeta};
use tiphys_assess::ownership::{self, Container, Judged, Object, Others, Ownership, Whose};
use tiphys_cluster::{Kinds, Listed, ObjectName, RequestError};

use tiphys_state::graph::{Names, Uids};

const MADE_ANEW: &str =
    "it was deleted and created again: it is not the one that came with the platform";
const CRDS: &str = "apiextensions.k8s.io";

/// Objects that were read, each with its judgement, and kinds that could not be.
pub(super) struct Inventory {
    found: Vec<Entry>,
    unlisted: Vec<Unlisted>,
    /// Namespaces and CRDs that have a name of those that came with the platform, and another uid.
    made_anew: BTreeSet<Container>,
    including: Vec<Others>,
}

struct Entry {
    object: Object,
    whose: Ownership,
    /// What the CRD of its kind would be called.
    crd: String,
}

struct Unlisted {
    kind: String,
    crd: String,
}

/// An object that a teardown leaves where it is, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept {
    pub object: ObjectName,
    pub why: String,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.why)
    }
}

/// What goes and what stays of that which came with a platform.
#[derive(Debug, Default)]
pub(super) struct Division {
    /// Namespaces and CRDs that go, with all that is in them.
    pub(super) going: Names,
    /// Those of them that are there.
    pub(super) uids: Uids,
    /// Objects that go by themselves, because what they are in stays.
    pub(super) alone: Vec<(ObjectName, Option<String>)>,
    pub(super) kept: Vec<Kept>,
    /// What is somebody else's and goes, because it was named, and whose it is.
    pub(super) taken: Vec<(ObjectName, String)>,
    /// Which of those that were named to go have nothing that goes.
    pub(super) unmatched: Vec<Others>,
    /// What could be named: kinds and namespaces of what is somebody else's.
    pub(super) candidates: BTreeSet<String>,
    /// How many objects each CRD defines.
    pub(super) defined: BTreeMap<String, usize>,
}

impl Inventory {
    /// Reads these namespaces and CRDs, all that is in them, and all that they define. `noted` are
    /// the uids of those that came with the platform.
    pub(super) async fn read(
        kinds: &Kinds,
        came: &Names,
        noted: &Uids,
        mut platform: ownership::Platform,
    ) -> Result<Self, RequestError> {
        let (mut objects, mut crds, mut unlisted) = (Vec::new(), Vec::new(), Vec::new());
        let nothing = came.namespaces.is_empty() && came.crds.is_empty();
        for (resource, api) in kinds.listable().filter(|_| !nothing) {
            let crd = crd_of(resource);
            let defined = came.crds.contains(&crd);
            let listed = Kinds::each_object(resource, &api, |metadata| {
                let object = object(resource, metadata);
                let itself = Container::of(&object).is_some_and(|it| is_of(&it, came));
                if defined || itself || came.namespaces.contains(&object.namespace) {
                    objects.push(object);
                }
            });
            let listed = listed.await?;
            crds.resize(objects.len(), crd.clone());
            if listed == Listed::Denied {
                unlisted.push(Unlisted { kind: resource.kind.clone(), crd });
            }
        }
        let made_anew = made_anew(&objects, noted);
        // Whoever has made a namespace may also have made what is in it.
        platform.namespaces.retain(|name| !made_anew.contains(&Container::Namespace(name.clone())));
        let judged = ownership::judge(&objects, &platform);
        let found = objects.into_iter().zip(judged).zip(crds);
        let found = found.map(|((object, whose), crd)| Entry { object, whose, crd });
        Ok(Inventory { found: found.collect(), unlisted, made_anew, including: platform.including })
    }

    /// What must not go, and the namespaces and CRDs that it needs.
    pub(super) fn divide(&self, came: &Names) -> Division {
        let judged = self.found.iter();
        let judged = judged.map(|Entry { object, whose, crd }| Judged { object, whose, crd });
        let mut needed = ownership::needed(judged);
        let taken: BTreeSet<Container> =
            self.taken_entries().filter_map(|entry| Container::of(&entry.object)).collect();
        for container in self.made_anew.difference(&taken) {
            needed.insert(container.clone(), MADE_ANEW.to_owned());
        }
        let stays = |entry: &&Entry| !entry.whose.goes() && Container::of(&entry.object).is_none();
        let kept = self.found.iter().filter(stays);
        let kept = kept.map(|Entry { object, whose, .. }| Kept {
            object: name(object),
            why: whose.to_string(),
        });
        let mut kept: Vec<Kept> = kept.collect();
        for Unlisted { kind, crd } in &self.unlisted {
            let why = || format!("cannot list objects of kind {kind}, which may belong to anyone");
            needed.entry(Container::Crd(crd.clone())).or_insert_with(why);
            for namespace in &came.namespaces {
                needed.entry(Container::Namespace(namespace.clone())).or_insert_with(why);
            }
        }
        let goes = |container: Container| !needed.contains_key(&container);
        let (namespaces, crds) = (came.namespaces.iter(), came.crds.iter());
        let going = Names {
            namespaces: namespaces
                .filter(|name| goes(Container::Namespace((*name).clone())))
                .cloned()
                .collect(),
            crds: crds.filter(|name| goes(Container::Crd((*name).clone()))).cloned().collect(),
        };
        let needed = needed.into_iter().filter(|(container, _)| is_of(container, came));
        kept.extend(needed.map(|(container, why)| Kept { object: name_of(container), why }));
        kept.sort();
        let mut defined = BTreeMap::new();
        for entry in self.found.iter().filter(|entry| came.crds.contains(&entry.crd)) {
            *defined.entry(entry.crd.clone()).or_default() += 1;
        }
        let uids = self.uids().only(&going);
        Division {
            alone: self.alone(&going),
            taken: self.taken(),
            unmatched: self.unmatched(),
            candidates: self.candidates(came),
            going,
            uids,
            kept,
            defined,
        }
    }

    /// Without the namespaces and CRDs that would go anyway: nobody marks those.
    fn taken_entries(&self) -> impl Iterator<Item = &Entry> {
        self.found.iter().filter(|Entry { object, whose, .. }| match whose {
            Ownership::Taken(Whose::Unmarked) => {
                Container::of(object).is_none_or(|container| self.made_anew.contains(&container))
            }
            Ownership::Taken(_) => true,
            _ => false,
        })
    }

    fn taken(&self) -> Vec<(ObjectName, String)> {
        let taken = self.taken_entries();
        let mut taken: Vec<_> =
            taken.map(|entry| (name(&entry.object), entry.whose.to_string())).collect();
        taken.sort();
        taken
    }

    fn unmatched(&self) -> Vec<Others> {
        let matches =
            |others: &&Others| self.taken_entries().any(|entry| others.include(&entry.object));
        self.including.iter().filter(|others| !matches(others)).cloned().collect()
    }

    fn candidates(&self, came: &Names) -> BTreeSet<String> {
        let theirs = self.found.iter().filter(|Entry { object, whose, .. }| {
            matches!(whose, Ownership::Foreign(_) | Ownership::Taken(_))
                && Container::of(object).is_none()
        });
        let names = theirs.flat_map(|Entry { object, .. }| {
            let kind = match &*object.group {
                "" => object.kind.clone(),
                group => format!("{}.{group}", object.kind),
            };
            let namespace = came.namespaces.get(&object.namespace).cloned();
            [Some(kind), namespace]
        });
        names.flatten().collect()
    }

    fn uids(&self) -> Uids {
        let mut uids = Uids::default();
        for Entry { object, .. } in &self.found {
            match Container::of(object) {
                Some(Container::Namespace(name)) => {
                    uids.namespaces.insert(name, object.uid.clone())
                }
                Some(Container::Crd(name)) => uids.crds.insert(name, object.uid.clone()),
                None => None,
            };
        }
        uids
    }

    /// What goes, and is in nothing that does. What has an owner goes with that.
    fn alone(&self, going: &Names) -> Vec<(ObjectName, Option<String>)> {
        let alone = self.found.iter().filter(|Entry { object, whose, crd }| {
            let by_itself = match whose {
                Ownership::Ours | Ownership::Derived => object.owners.is_empty(),
                // Its owners may stay.
                Ownership::Taken(_) => true,
                Ownership::Ambient | Ownership::Kept(_) | Ownership::Foreign(_) => false,
            };
            by_itself
                && Container::of(object).is_none()
                && !going.namespaces.contains(&object.namespace)
                && !going.crds.contains(crd)
        });
        alone.map(|entry| (name(&entry.object), Some(entry.object.uid.clone()))).collect()
    }
}

fn is_of(container: &Container, names: &Names) -> bool {
    match container {
        Container::Namespace(name) => names.namespaces.contains(name),
        Container::Crd(name) => names.crds.contains(name),
    }
}

fn name_of(container: Container) -> ObjectName {
    let (group, kind, name) = match container {
        Container::Namespace(name) => ("", "Namespace", name),
        Container::Crd(name) => (CRDS, "CustomResourceDefinition", name),
    };
    let [group, kind] = [group, kind].map(str::to_owned);
    ObjectName { group, kind, namespace: String::new(), name }
}

/// The namespaces and CRDs among these objects that are not those that were noted.
fn made_anew(objects: &[Object], noted: &Uids) -> BTreeSet<Container> {
    let other =
        |object: &Object, noted: Option<&String>| noted.is_some_and(|uid| *uid != object.uid);
    let containers = objects.iter().filter_map(|object| {
        let container = Container::of(object)?;
        let noted = match &container {
            Container::Namespace(name) => noted.namespaces.get(name),
            Container::Crd(name) => noted.crds.get(name),
        };
        other(object, noted).then_some(container)
    });
    containers.collect()
}

/// CRDs are called so: `plural.group`.
fn crd_of(resource: &ApiResource) -> String {
    format!("{}.{}", resource.plural, resource.group)
}

fn object(resource: &ApiResource, metadata: ObjectMeta) -> Object {
    let fields = metadata.managed_fields.unwrap_or_default().into_iter();
    // A status is written by whoever controls the object, whoever has made it.
    let written = fields.filter(|entry| entry.subresource.is_none());
    let first = written.min_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    let owners = metadata.owner_references.unwrap_or_default().into_iter();
    Object {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        owners: owners.map(|owner| owner.uid).collect(),
        creator: first.and_then(|entry| entry.manager),
    }
}

fn name(object: &Object) -> ObjectName {
    let Object { group, kind, namespace, name, .. } = object;
    let [group, kind, namespace, name] = [group, kind, namespace, name].map(Clone::clone);
    ObjectName { group, kind, namespace, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(namespaces: &[&str], crds: &[&str]) -> Names {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names { namespaces: set(namespaces), crds: set(crds) }
    }

    /// `group/Kind namespace/name`, defined by `plural.group`.
    fn entry(object: &str, crd: &str, whose: Ownership) -> Entry {
        let (kind, name) = object.split_once(' ').unwrap();
        let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
        let object = Object { group, kind, namespace, name, ..Object::default() };
        Entry { object, whose, crd: crd.to_owned() }
    }

    fn theirs() -> Ownership {
        Ownership::Foreign(Whose::App("blog".to_owned()))
    }

    fn divided(found: Vec<Entry>, unlisted: &[&str]) -> (Names, Vec<String>, Vec<String>) {
        let unlisted = unlisted.iter().map(|kind| Unlisted {
            kind: (*kind).to_owned(),
            crd: format!("{}s.x", kind.to_lowercase()),
        });
        let (unlisted, made_anew) = (unlisted.collect(), BTreeSet::new());
        let inventory = Inventory { found, unlisted, made_anew, including: Vec::new() };
        let Division { going, alone, kept, .. } =
            inventory.divide(&names(&["shop", "web"], &["things.x", "others.x"]));
        let alone = alone.iter().map(|(object, _)| object.to_string()).collect();
        (going, alone, kept.iter().map(Kept::to_string).collect())
    }

    #[test]
    fn where_nothing_is_anybody_elses_all_goes_together() {
        let found = vec![
            entry("Secret shop/a", "secrets.", Ownership::Derived),
            entry("x/Thing web/b", "things.x", Ownership::Ours),
            entry("Namespace shop", "namespaces.", Ownership::Foreign(Whose::Unmarked)),
        ];
        let all = names(&["shop", "web"], &["things.x", "others.x"]);
        assert_eq!(divided(found, &[]), (all, vec![], vec![]));
    }

    #[test]
    fn a_namespace_stays_for_what_it_holds_and_the_rest_of_it_goes() {
        let found = vec![
            entry("Secret shop/ours", "secrets.", Ownership::Derived),
            entry("ServiceAccount shop/default", "serviceaccounts.", Ownership::Ambient),
            entry("Secret shop/theirs", "secrets.", theirs()),
        ];
        let (going, alone, kept) = divided(found, &[]);
        assert_eq!(going, names(&["web"], &["things.x", "others.x"]));
        assert_eq!(alone, ["Secret/shop/ours"]);
        assert_eq!(
            kept,
            [
                "Namespace/shop: it holds Secret/shop/theirs",
                "Secret/shop/theirs: the Application `blog` has applied it",
            ]
        );
    }

    #[test]
    fn a_crd_stays_for_what_it_defines_anywhere() {
        let found = vec![
            entry("x/Thing blog/theirs", "things.x", theirs()),
            entry("x/Thing ours", "things.x", Ownership::Derived),
        ];
        let (going, alone, kept) = divided(found, &[]);
        assert_eq!(going, names(&["shop", "web"], &["others.x"]));
        assert_eq!(alone, ["Thing/ours"]);
        assert_eq!(
            kept,
            [
                "CustomResourceDefinition/things.x: it defines Thing/blog/theirs",
                "Thing/blog/theirs: the Application `blog` has applied it",
            ]
        );
    }

    #[test]
    fn a_namespace_or_crd_that_somebody_keeps_stays_itself() {
        let keep = || Ownership::Kept(ownership::Keep::HelmPolicy);
        let found = vec![
            entry("apiextensions.k8s.io/CustomResourceDefinition things.x", "", keep()),
            entry("Namespace web", "namespaces.", keep()),
        ];
        let (going, _, kept) = divided(found, &[]);
        assert_eq!(going, names(&["shop"], &["others.x"]));
        assert_eq!(kept.len(), 2, "{kept:?}");
    }

    #[test]
    fn what_has_the_name_and_another_uid_is_somebody_elses() {
        let mut found: Vec<Entry> = ["Namespace shop", "Namespace web"]
            .map(|object| entry(object, "namespaces.", Ownership::Foreign(Whose::Unmarked)))
            .into();
        found.push(entry("apiextensions.k8s.io/CustomResourceDefinition things.x", "", theirs()));
        for (entry, uid) in found.iter_mut().zip(["1", "2", "3"]) {
            entry.object.uid = uid.to_owned();
        }
        let uid = |name: &str, uid: &str| [(name.to_owned(), uid.to_owned())].into();
        let noted = Uids { namespaces: uid("shop", "0"), crds: uid("things.x", "3") };
        let objects: Vec<Object> = found.iter().map(|entry| entry.object.clone()).collect();
        let made_anew = made_anew(&objects, &noted);
        assert_eq!(made_anew, [Container::Namespace("shop".to_owned())].into());
        let (unlisted, including) = (Vec::new(), Vec::new());
        let inventory = Inventory { found, unlisted, made_anew, including };
        let division = inventory.divide(&names(&["shop", "web"], &[]));
        assert_eq!(division.uids, Uids { namespaces: uid("web", "2"), ..Uids::default() });
        assert_eq!(division.kept[0].to_string(), format!("Namespace/shop: {MADE_ANEW}"));
    }

    #[test]
    fn what_cannot_be_listed_may_be_in_any_namespace() {
        let (going, _, kept) = divided(Vec::new(), &["Thing"]);
        assert_eq!(going, names(&[], &["others.x"]));
        assert_eq!(kept.len(), 3, "{kept:?}");
    }
}
