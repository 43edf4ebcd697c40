//! What creates Applications: an Application lists what it has applied, and an ApplicationSet owns
//! what it has made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kube::ResourceExt;
use tiphys_argocd::application::{Application, ResourceStatus};
use tiphys_argocd::tracking;
use tiphys_cluster::ObjectName;

/// A generator, by kind and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Generator {
    Application(String),
    Set(String),
}

impl Generator {
    pub(crate) fn name(&self) -> &str {
        match self {
            Generator::Application(name) | Generator::Set(name) => name,
        }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Generator::Application(name) => f.write_str(name),
            Generator::Set(name) => write!(f, "ApplicationSet {name}"),
        }
    }
}

/// The Applications and ApplicationSets that an Application has created, or will when it is synced.
pub(crate) fn created(application: &Application) -> impl Iterator<Item = Generator> {
    application.status.resources.iter().flatten().filter_map(of)
}

fn of(resource: &ResourceStatus) -> Option<Generator> {
    match (&*resource.group, &*resource.kind) {
        ("argoproj.io", "Application") => Some(Generator::Application(resource.name.clone())),
        ("argoproj.io", "ApplicationSet") => Some(Generator::Set(resource.name.clone())),
        _ => None,
    }
}

/// The Application that has applied another one, if Argo CD has noted that on it.
fn applied_by(application: &Application) -> Option<&str> {
    let metadata = &application.metadata;
    let object = ObjectName {
        group: "argoproj.io".to_owned(),
        kind: "Application".to_owned(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: application.name().to_owned(),
    };
    tracking::is_annotated(metadata).then(|| tracking::app_of(&object, metadata)).flatten()
}

/// The ApplicationSets that have made an Application: hardly more than one.
pub(crate) fn makers(application: &Application) -> impl Iterator<Item = &str> {
    let owners = application.owner_references().iter();
    owners.filter(|owner| owner.kind == "ApplicationSet").map(|owner| owner.name.as_str())
}

/// Who creates whom.
#[derive(Debug, Default)]
pub(crate) struct Creations(BTreeMap<Generator, BTreeSet<Generator>>);

impl Creations {
    /// As all these Applications show it. Two may list the same child, as when an app has moved from
    /// one platform to another: then the child says whose it is.
    pub(crate) fn among(applications: &[Application]) -> Self {
        let named: BTreeMap<&str, &Application> =
            applications.iter().map(|one| (one.name(), one)).collect();
        let is_of_another = |child: &Generator, parent: &Application| match child {
            Generator::Application(name) => named
                .get(name.as_str())
                .and_then(|one| applied_by(one))
                .is_some_and(|by| !tracking::is_instance(by, parent)),
            Generator::Set(_) => false,
        };
        // A namesake of it, which others have in a namespace of theirs.
        let is_elsewhere = |child: &Generator, resource: &ResourceStatus| match child {
            Generator::Application(name) => named.get(name.as_str()).is_some_and(|one| {
                let both = [one.namespace(), &resource.namespace];
                both.iter().all(|namespace| !namespace.is_empty()) && both[0] != both[1]
            }),
            Generator::Set(_) => false,
        };
        let mut all = Creations::default();
        for application in applications {
            let this = Generator::Application(application.name().to_owned());
            for resource in application.status.resources.iter().flatten() {
                let Some(child) = of(resource) else { continue };
                if is_of_another(&child, application) || is_elsewhere(&child, resource) {
                    continue;
                }
                all.0.entry(this.clone()).or_default().insert(child);
            }
            for set in makers(application) {
                let set = Generator::Set(set.to_owned());
                all.0.entry(set).or_default().insert(this.clone());
            }
        }
        all
    }

    pub(crate) fn of(&self, generator: &Generator) -> impl Iterator<Item = &Generator> {
        self.0.get(generator).into_iter().flatten()
    }

    /// What has created these apps, and what has created that, and so on. What has created the root
    /// app is none of the platform's business: only a run syncs the root app.
    pub(crate) fn generators_of<'a>(
        &self,
        apps: impl IntoIterator<Item = &'a str>,
        root: &str,
    ) -> BTreeSet<Generator> {
        let application = |name: &str| Generator::Application(name.to_owned());
        let root = application(root);
        let mut created: BTreeSet<Generator> = apps.into_iter().map(application).collect();
        let mut generators = BTreeSet::new();
        loop {
            let creates = |(_, children): &(_, &BTreeSet<Generator>)| {
                children.iter().any(|child| *child != root && created.contains(child))
            };
            let found = self.0.iter().filter(creates).map(|(generator, _)| generator);
            let found: BTreeSet<Generator> = found.cloned().collect();
            if found.is_subset(&generators) {
                return generators;
            }
            created.extend(found.iter().cloned());
            generators.extend(found);
        }
    }

    /// These, each before what it creates.
    pub(crate) fn in_order(&self, generators: &BTreeSet<Generator>) -> Vec<Generator> {
        let mut left: BTreeSet<&Generator> = generators.iter().collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let created: BTreeSet<&Generator> =
                left.iter().flat_map(|parent| self.of(parent)).collect();
            let mut next: Vec<&Generator> =
                left.iter().copied().filter(|generator| !created.contains(generator)).collect();
            if next.is_empty() {
                // They create each other; there is no right order.
                next = left.iter().copied().collect();
            }
            left.retain(|generator| !next.contains(generator));
            order.extend(next.into_iter().cloned());
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An Application that has created these; a name that begins with `set-` is that of a set.
    fn application(name: &str, creates: &[&str], made_by: &[&str]) -> Application {
        let resource = |name: &&str| {
            let kind = if name.starts_with("set-") { "ApplicationSet" } else { "Application" };
            json!({ "group": "argoproj.io", "kind": kind, "name": name })
        };
        let owner = |name: &&str| json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": name, "uid": "1" });
        let owners: Vec<_> = made_by.iter().map(owner).collect();
        let resources: Vec<_> = creates.iter().map(resource).collect();
        serde_json::from_value(json!({
            "metadata": { "name": name, "ownerReferences": owners },
            "spec": {},
            "status": { "resources": resources },
        }))
        .unwrap()
    }

    fn found(applications: &[Application], apps: &[&str]) -> Vec<String> {
        let creations = Creations::among(applications);
        let found = creations.generators_of(apps.iter().copied(), "root");
        creations.in_order(&found).iter().map(|one| one.name().to_owned()).collect()
    }

    #[test]
    fn generators_are_known_by_what_they_have_created() {
        let applications = [
            application("admin", &["root"], &[]),
            application("root", &["stack", "set-b"], &[]),
            application("stack", &["a"], &[]),
            application("a", &["inner"], &[]),
            application("b", &[], &["set-b"]),
            application("other", &["theirs"], &[]),
            application("theirs", &[], &[]),
        ];
        assert_eq!(found(&applications, &["a", "b"]), ["root", "stack", "set-b"]);
        assert_eq!(found(&applications, &["b"]), ["root", "set-b"]);
        assert_eq!(found(&applications, &["inner"]), ["root", "stack", "a"]);
        assert_eq!(found(&applications, &["nothing"]), Vec::<String>::new());
    }

    #[test]
    fn a_child_that_two_list_is_of_the_one_that_has_applied_it() {
        let mut moved = application("a", &[], &[]);
        let id = "root:argoproj.io/Application:argocd/a".to_owned();
        moved.metadata.namespace = Some("argocd".to_owned());
        moved.metadata.annotations =
            Some([("argocd.argoproj.io/tracking-id".to_owned(), id)].into());
        let applications =
            [application("old", &["a"], &[]), application("root", &["a"], &[]), moved];
        assert_eq!(found(&applications, &["a"]), ["root"]);
    }

    #[test]
    fn those_that_create_each_other_end_too() {
        let applications = [application("x", &["y", "a"], &[]), application("y", &["x"], &[])];
        assert_eq!(found(&applications, &["a"]), ["x", "y"]);
    }
}
