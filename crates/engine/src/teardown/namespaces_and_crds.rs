//! Namespaces and CRDs that came with the platform. Argo CD does not remove them with its
//! Applications.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::TeardownError;
use crate::graph::Names;
use tiphys_argocd::application::Application;
use tiphys_cluster::{RequestError, crds, delete};
use tokio::time::Instant;

const POLL: Duration = Duration::from_secs(1);
/// Kubernetes' own. No platform brings them, whatever a list says.
const NEVER: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

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

/// What Applications may use here: also the namespaces that single resources of theirs are in. A
/// cluster may be known by several names and addresses, so each of them may be this one.
pub(super) fn used<'a>(applications: impl Iterator<Item = &'a Application>) -> Names {
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
    let crds = resources.filter(|resource| resource.kind == "CustomResourceDefinition");
    crds.map(|resource| resource.name.clone())
}

/// What may go: not Kubernetes' own, not where Argo CD is, and nothing that another app uses.
pub(super) fn removable(came: Names, argocd: &str, used: &Names) -> Names {
    let never = |name: &String| NEVER.contains(&name.as_str()) || name == argocd;
    Names {
        namespaces: came
            .namespaces
            .into_iter()
            .filter(|name| !never(name) && !used.namespaces.contains(name))
            .collect(),
        crds: &came.crds - &used.crds,
    }
}

/// Removes them and waits until they are gone. What is inside a namespace goes with it.
pub(super) async fn remove(
    client: &Client,
    names: &Names,
    timeout: Duration,
) -> Result<(), TeardownError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let nothing = async |_: &Namespace| Ok(());
    remove_all(&namespaces, "the namespace", &names.namespaces, timeout, nothing).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let nudge = async |crd: &CustomResourceDefinition| {
        crds::nudge(client, &serde_json::to_value(crd).unwrap_or_default()).await
    };
    remove_all(&definitions, "the CRD", &names.crds, timeout, nudge).await
}

async fn remove_all<K>(
    objects: &Api<K>,
    called: &'static str,
    names: &BTreeSet<String>,
    timeout: Duration,
    meanwhile: impl AsyncFn(&K) -> Result<(), RequestError>,
) -> Result<(), TeardownError>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    if names.is_empty() {
        return Ok(());
    }
    let began = Instant::now();
    let mut asked = BTreeSet::new();
    loop {
        let listed = objects.list(&ListParams::default()).await;
        let listed =
            listed.map_err(RequestError::because(format!("{called}s cannot be listed")))?;
        let left = listed.items.into_iter().filter(|object| names.contains(&object.name_any()));
        let left: Vec<K> = left.collect();
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() > timeout {
            let left = left.iter().map(inside).collect();
            return Err(TeardownError::Stuck { called, left, after: timeout });
        }
        for object in &left {
            if object.meta().deletion_timestamp.is_none() && asked.insert(object.uid()) {
                let name = object.name_any();
                let what = format!("{called} `{name}` cannot be deleted");
                delete::delete(objects, &name, &delete::only(object.uid()), what).await?;
            }
            meanwhile(object).await?;
        }
        tokio::time::sleep(POLL).await;
    }
}

fn inside<K: Resource + Serialize>(object: &K) -> (String, String) {
    let status = serde_json::to_value(object).unwrap_or_default();
    (object.name_any(), remaining(&status))
}

/// What is inside, in Kubernetes' own words.
pub(super) fn remaining(object: &Value) -> String {
    const TELLING: [&str; 6] = [
        "NamespaceContentRemaining",
        "NamespaceFinalizersRemaining",
        "NamespaceDeletionContentFailure",
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "Terminating",
    ];
    let conditions = object["status"]["conditions"].as_array();
    let told: Vec<&str> = conditions
        .into_iter()
        .flatten()
        .filter(|condition| condition["status"] == "True")
        .filter(|condition| condition["type"].as_str().is_some_and(|kind| TELLING.contains(&kind)))
        .filter_map(|condition| condition["message"].as_str())
        .collect();
    if told.is_empty() { "it does not say what is left in it".to_owned() } else { told.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn what_others_use_and_what_no_platform_brings_stays() {
        let came = names(&["default", "argocd", "x", "y"], &["a.b", "c.d"]);
        let used = names(&["y"], &["c.d"]);
        assert_eq!(removable(came, "argocd", &used), names(&["x"], &["a.b"]));
    }

    #[test]
    fn a_namespace_that_stays_says_what_is_in_it() {
        let conditions = json!([
            { "type": "NamespaceContentRemaining", "status": "True", "message": "Some pods" },
            { "type": "NamespaceDeletionContentFailure", "status": "False", "message": "well" },
        ]);
        assert_eq!(remaining(&json!({ "status": { "conditions": conditions } })), "Some pods");
        assert_eq!(remaining(&json!({})), "it does not say what is left in it");
    }
}
