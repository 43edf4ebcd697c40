//! Pods of a StatefulSet that keep it from being repaired: Kubernetes waits for a pod to be ready
//! before it replaces it, and one whose image is wrong never is.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use tiphys_cluster::delete;
use tiphys_cluster::{Kinds, ObjectName, RequestError};

/// Deletes pods that are neither ready nor made from the newest template.
pub(super) async fn replace(
    client: &Client,
    kinds: &Kinds,
    set: &ObjectName,
    tell: &dyn Fn(String),
) -> Result<(), RequestError> {
    // Who cannot be read now is read the next time.
    let Ok(Some(live)) = kinds.get(set).await else { return Ok(()) };
    let revision = live.data.pointer("/status/updateRevision").and_then(Value::as_str);
    let Some(revision) = revision else { return Ok(()) };
    let pods: Api<Pod> = Api::namespaced(client.clone(), &set.namespace);
    let what = format!("cannot list the pods of {set}");
    let listed = pods.list(&ListParams::default()).await.map_err(RequestError::because(what))?;
    for pod in listed.items.iter().filter(|pod| is_in_the_way(pod, &set.name, revision)) {
        let name = pod.name_any();
        tell(format!("replacing pod {name}: it is not ready and runs an earlier version"));
        let what = format!("cannot delete the pod {name}");
        delete::delete(&pods, &name, &delete::only(pod.uid()), what).await?;
    }
    Ok(())
}

fn is_in_the_way(pod: &Pod, set: &str, newest: &str) -> bool {
    let owned = pod.owner_references().iter().any(|o| o.kind == "StatefulSet" && o.name == set);
    let outdated = pod.labels().get("controller-revision-hash").is_some_and(|of| of != newest);
    let conditions = pod.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    let ready = conditions.clone().any(|c| c.type_ == "Ready" && c.status == "True");
    owned && outdated && !ready && pod.metadata.deletion_timestamp.is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_old_and_not_ready_is_in_the_way() {
        let pod = |owner: &str, revision: &str, ready: &str| -> Pod {
            let reference = json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": "u",
            });
            serde_json::from_value(json!({
                "metadata": {
                    "name": "p", "labels": { "controller-revision-hash": revision },
                    "ownerReferences": [reference],
                },
                "status": { "conditions": [{ "type": "Ready", "status": ready }] },
            }))
            .unwrap()
        };
        let in_the_way = |pod: &Pod| is_in_the_way(pod, "set", "new");
        assert!(in_the_way(&pod("set", "old", "False")));
        assert!(!in_the_way(&pod("set", "new", "False")), "it may still come");
        assert!(!in_the_way(&pod("set", "old", "True")), "Kubernetes replaces it");
        assert!(!in_the_way(&pod("other", "old", "False")));
    }
}
