//! The namespaces and custom resource definitions (CRDs) that have to stay for the sake of what
//! stays.

use std::collections::BTreeMap;

use tiphys_run::planted;

use super::{Object, Ownership, Whose};

const CRDS: &str = "apiextensions.k8s.io";

/// What an object is in, or defined by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Container {
    Namespace(String),
    Crd(String),
}

impl Container {
    /// The namespace or CRD that this object is.
    #[must_use]
    pub fn of(object: &Object) -> Option<Self> {
        match (&*object.group, &*object.kind) {
            ("", "Namespace") => Some(Container::Namespace(object.name.clone())),
            (CRDS, "CustomResourceDefinition") => Some(Container::Crd(object.name.clone())),
            _ => None,
        }
    }
}

/// An object with its judgement, and what the CRD of its kind would be called.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    pub object: &'a Object,
    pub whose: &'a Ownership,
    pub crd: &'a str,
}

/// The namespaces and CRDs that must not go, each with the reason.
#[must_use]
pub fn needed<'a>(judged: impl IntoIterator<Item = Judged<'a>>) -> BTreeMap<Container, String> {
    let mut needed = BTreeMap::new();
    for Judged { object, whose, crd } in judged.into_iter().filter(|judged| !judged.whose.goes()) {
        if let Some(container) = Container::of(object) {
            // Nobody marks a namespace as made for an app.
            if *whose != Ownership::Foreign(Whose::Unmarked) {
                needed.insert(container, whose.to_string());
            }
            continue;
        }
        planted!(OnlyMarkedContainersStay => continue);
        let holds = || format!("it holds {object}");
        needed.entry(Container::Namespace(object.namespace.clone())).or_insert_with(holds);
        planted!(CrdsGoWithWhatTheyDefine => continue);
        let defines = || format!("it defines {object}");
        needed.entry(Container::Crd(crd.to_owned())).or_insert_with(defines);
    }
    needed
}
