//! Namespaces and custom resource definitions (CRDs), by name, and what Applications have to do
//! with them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tiphys_argocd::application::Application;

const CRD: &str = "CustomResourceDefinition";

/// Names of namespaces and CRDs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Names {
    pub namespaces: BTreeSet<String>,
    pub crds: BTreeSet<String>,
}

impl Names {
    pub fn extend(&mut self, others: Names) {
        self.namespaces.extend(others.namespaces);
        self.crds.extend(others.crds);
    }

    /// Without these.
    #[must_use]
    pub fn without(&self, others: &Names) -> Names {
        Names { namespaces: &self.namespaces - &others.namespaces, crds: &self.crds - &others.crds }
    }

    /// Those that are among these too.
    fn within(&self, others: &Names) -> Names {
        Names { namespaces: &self.namespaces & &others.namespaces, crds: &self.crds & &others.crds }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.crds.is_empty()
    }
}

/// Namespaces and CRDs, each with its uid: another one of the same name is not the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Uids {
    pub namespaces: BTreeMap<String, String>,
    pub crds: BTreeMap<String, String>,
}

impl Uids {
    #[must_use]
    pub fn names(&self) -> Names {
        Names {
            namespaces: self.namespaces.keys().cloned().collect(),
            crds: self.crds.keys().cloned().collect(),
        }
    }

    pub fn extend(&mut self, others: Uids) {
        self.namespaces.extend(others.namespaces);
        self.crds.extend(others.crds);
    }

    /// Those that are among these names.
    #[must_use]
    pub fn only(&self, names: &Names) -> Uids {
        let only = |uids: &BTreeMap<String, String>, names: &BTreeSet<String>| {
            let found = uids.iter().filter(|(name, _)| names.contains(*name));
            found.map(|(name, uid)| (name.clone(), uid.clone())).collect()
        };
        Uids {
            namespaces: only(&self.namespaces, &names.namespaces),
            crds: only(&self.crds, &names.crds),
        }
    }
}

/// What Applications bring to this cluster: the namespace that they are in, and the CRDs that they
/// define.
pub(super) fn brought<'a>(applications: impl Iterator<Item = &'a Application>) -> Names {
    let mut names = Names::default();
    for application in applications {
        if application.destination().other_cluster.is_none() {
            names.namespaces.extend(namespace_of(application));
            names.crds.extend(crds_of(application));
        }
    }
    names
}

/// What of that their last operations have synced. An Application may be meant for another
/// namespace since, which somebody else has made.
pub(super) fn synced<'a>(applications: impl Iterator<Item = &'a Application>) -> Names {
    let mut names = Names::default();
    for application in applications {
        let operation = application.status.operation_state.as_ref();
        let result = operation.and_then(|state| state.sync_result.as_ref());
        let mut synced = Names::default();
        for resource in result.and_then(|result| result.resources.as_ref()).into_iter().flatten() {
            synced.namespaces.insert(resource.namespace.clone());
            if resource.kind == CRD {
                synced.crds.insert(resource.name.clone());
            }
        }
        names.extend(brought(std::iter::once(application)).within(&synced));
    }
    names
}

/// What Applications may use here: also the namespaces that single resources of theirs are in. A
/// cluster may be known by several names and addresses, so each of them may be this one.
pub fn used<'a>(applications: impl Iterator<Item = &'a Application>) -> Names {
    let mut names = Names::default();
    for application in applications {
        let resources = application.status.resources.iter().flatten();
        let namespaces = resources.map(|resource| resource.namespace.clone());
        names.namespaces.extend(namespaces.filter(|name| !name.is_empty()));
        names.namespaces.extend(namespace_of(application));
        names.crds.extend(crds_of(application));
    }
    names
}

fn namespace_of(application: &Application) -> Option<String> {
    let namespace = application.spec.destination["namespace"].as_str();
    namespace.filter(|name| !name.is_empty()).map(str::to_owned)
}

fn crds_of(application: &Application) -> impl Iterator<Item = String> {
    let resources = application.status.resources.iter().flatten();
    let crds = resources.filter(|resource| resource.kind == CRD);
    crds.map(|resource| resource.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn application(destination: &Value, definition: &str) -> Application {
        serde_json::from_value(json!({
            "metadata": { "name": "a" },
            "spec": { "destination": destination },
            "status": { "resources": [
                { "kind": "CustomResourceDefinition", "name": definition },
                { "kind": "Service", "name": "web" },
            ] },
        }))
        .unwrap()
    }

    fn names(namespaces: &[&str], crds: &[&str]) -> Names {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names { namespaces: set(namespaces), crds: set(crds) }
    }

    #[test]
    fn apps_bring_what_they_are_in_and_define_in_this_cluster() {
        let applications = [
            application(
                &json!({ "server": "https://kubernetes.default.svc", "namespace": "x" }),
                "a.b",
            ),
            application(&json!({ "name": "in-cluster" }), "c.d"),
            application(&json!({ "server": "https://elsewhere", "namespace": "y" }), "e.f"),
        ];
        assert_eq!(brought(applications.iter()), names(&["x"], &["a.b", "c.d"]));
        let all = names(&["x", "y"], &["a.b", "c.d", "e.f"]);
        assert_eq!(used(applications.iter()), all, "it may be the same cluster");
    }

    #[test]
    fn an_app_that_is_meant_for_another_namespace_has_not_brought_it_before_it_is_synced() {
        let here = json!({ "name": "in-cluster", "namespace": "x" });
        let mut application = application(&here, "a.b");
        assert_eq!(synced([&application].into_iter()), Names::default());
        let resources = json!([
            { "kind": "CustomResourceDefinition", "name": "a.b", "namespace": "" },
            { "kind": "Service", "name": "web", "namespace": "x" },
        ]);
        let state = json!({ "syncResult": { "resources": resources } });
        application.status.operation_state = Some(serde_json::from_value(state).unwrap());
        assert_eq!(synced([&application].into_iter()), names(&["x"], &["a.b"]));
        application.spec.destination["namespace"] = "y".into();
        assert_eq!(synced([&application].into_iter()), names(&[], &["a.b"]));
    }
}
