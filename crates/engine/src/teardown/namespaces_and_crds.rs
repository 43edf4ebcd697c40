//! Namespaces and CRDs that came with the platform. Argo CD does not remove them with its
//! Applications.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tiphys_state::graph::Names;

use super::TeardownError;
use tiphys_cluster::{RequestError, crds, delete, names};
use tokio::time::Instant;

const POLL: Duration = Duration::from_secs(1);
/// Kubernetes' own and ours. No platform brings them, whatever a list says.
const NEVER: [&str; 7] = [
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    names::NAMESPACE,
    names::TEARDOWN_NAMESPACE,
    names::EVENTS_NAMESPACE,
];

/// What may go: not Kubernetes' own or ours, not where Argo CD is, and nothing that another app uses.
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

/// Removes these very namespaces and waits until they are gone. What is inside goes with them.
pub(super) async fn remove_namespaces(
    client: &Client,
    uids: &BTreeMap<String, String>,
    timeout: Duration,
) -> Result<(), TeardownError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let nothing = async |_: &Namespace| Ok(());
    remove_all(&namespaces, "the namespace", uids, timeout, nothing).await
}

/// Removes these very CRDs, and with them their objects, and waits until they are gone.
pub(super) async fn remove_crds(
    client: &Client,
    uids: &BTreeMap<String, String>,
    timeout: Duration,
) -> Result<(), TeardownError> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let nudge = async |crd: &CustomResourceDefinition| {
        crds::nudge(client, &serde_json::to_value(crd).unwrap_or_default()).await
    };
    remove_all(&definitions, "the CRD", uids, timeout, nudge).await
}

async fn remove_all<K>(
    objects: &Api<K>,
    called: &'static str,
    uids: &BTreeMap<String, String>,
    timeout: Duration,
    meanwhile: impl AsyncFn(&K) -> Result<(), RequestError>,
) -> Result<(), TeardownError>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    if uids.is_empty() {
        return Ok(());
    }
    let began = Instant::now();
    let mut asked = BTreeSet::new();
    loop {
        let listed = objects.list(&ListParams::default()).await;
        let listed = listed.map_err(RequestError::because(format!("cannot list {called}s")))?;
        // One of the same name and another uid is somebody else's.
        let ours = |object: &K| uids.get(&object.name_any()) == object.uid().as_ref();
        let left: Vec<K> = listed.items.into_iter().filter(ours).collect();
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
                let what = format!("cannot delete {called} `{name}`");
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
    if told.is_empty() {
        "its status does not say what is left in it".to_owned()
    } else {
        told.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(namespaces: &[&str], crds: &[&str]) -> Names {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names { namespaces: set(namespaces), crds: set(crds) }
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
        assert_eq!(remaining(&json!({})), "its status does not say what is left in it");
    }
}
