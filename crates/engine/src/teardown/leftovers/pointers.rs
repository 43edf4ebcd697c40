//! Objects that point to a service which is not there any more: webhooks and APIs, which then
//! hinder others, and endpoints.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::{Leftover, named};
use tiphys_cluster::{Kinds, ObjectName, RequestError};

const WEBHOOKS: &str = "admissionregistration.k8s.io";
const APIS: &str = "apiregistration.k8s.io";

/// `came`: namespaces of the platform. What points there is the platform's; what points elsewhere
/// may be anybody's.
pub(super) async fn to_nowhere(
    client: &Client,
    kinds: &Kinds,
    came: &BTreeSet<String>,
) -> Result<Vec<Leftover>, RequestError> {
    let services: Api<Service> = Api::all(client.clone());
    let listed = services.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(RequestError::because("cannot list the services"))?;
    let there: BTreeSet<(String, String)> = listed
        .items
        .iter()
        .map(|service| (service.namespace().unwrap_or_default(), service.name_any()))
        .collect();
    let wanted = [
        (WEBHOOKS, "ValidatingWebhookConfiguration"),
        (WEBHOOKS, "MutatingWebhookConfiguration"),
        (APIS, "APIService"),
    ];
    let mut found = Vec::new();
    for (group, kind) in wanted {
        let any = ObjectName {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: String::new(),
        };
        let Some(api) = kinds.api(&any) else { continue };
        let what = format!("cannot list objects of kind {kind}");
        let objects =
            api.list(&ListParams::default()).await.map_err(RequestError::because(what))?;
        let judged = objects.items.iter().map(|object| judge(group, kind, object, &there, came));
        found.extend(judged.flatten());
    }
    found.extend(stale_endpoints(client).await?);
    Ok(found)
}

/// Services that send their callers to pods which are not there. Kubernetes keeps up by itself
/// what a selector chooses, so somebody else has written these.
async fn stale_endpoints(client: &Client) -> Result<Vec<Leftover>, RequestError> {
    let all = ListParams::default();
    let pods: Api<Pod> = Api::all(client.clone());
    let pods = pods.list_metadata(&all).await;
    let pods = pods.map_err(RequestError::because("cannot list the pods"))?;
    let pods: BTreeSet<(String, String)> = pods
        .items
        .iter()
        .map(|pod| (pod.namespace().unwrap_or_default(), pod.name_any()))
        .collect();
    let slices: Api<EndpointSlice> = Api::all(client.clone());
    let slices = slices.list(&all).await;
    let slices = slices.map_err(RequestError::because("cannot list the endpoints"))?;
    Ok(slices.items.iter().filter_map(|slice| stale(slice, &pods)).collect())
}

fn stale(slice: &EndpointSlice, pods: &BTreeSet<(String, String)>) -> Option<Leftover> {
    let service = slice.labels().get("kubernetes.io/service-name")?;
    let namespace = slice.namespace().unwrap_or_default();
    let targets = slice.endpoints.iter().filter_map(|e| e.target_ref.as_ref());
    let mut pods_of = targets.filter(|target| target.kind.as_deref() == Some("Pod"));
    let gone = pods_of.find_map(|target| {
        let name = target.name.clone().unwrap_or_default();
        (!pods.contains(&(namespace.clone(), name.clone()))).then_some(name)
    })?;
    Some(Leftover {
        object: ObjectName {
            group: String::new(),
            kind: "Service".to_owned(),
            namespace,
            name: service.clone(),
        },
        why: format!("its endpoints point to the pod {gone}, which does not exist"),
        certain: false,
        uid: None,
    })
}

fn judge(
    group: &str,
    kind: &str,
    object: &DynamicObject,
    there: &BTreeSet<(String, String)>,
    came: &BTreeSet<String>,
) -> Option<Leftover> {
    let (namespace, name) =
        services(&object.data).into_iter().find(|service| !there.contains(service))?;
    Some(Leftover {
        object: named(group, kind, &object.metadata),
        why: format!("it points to the service {namespace}/{name}, which does not exist"),
        certain: came.contains(&namespace),
        uid: object.uid(),
    })
}

/// The services that an object points to.
fn services(object: &Value) -> Vec<(String, String)> {
    let webhooks = object["webhooks"].as_array().into_iter().flatten();
    let pointers = webhooks.map(|webhook| &webhook["clientConfig"]["service"]);
    let pointers = pointers.chain([&object["spec"]["service"]]);
    pointers
        .filter_map(|service| {
            let text = |field: &str| service[field].as_str().map(str::to_owned);
            Some((text("namespace")?, text("name")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_that_name_a_pod_which_is_gone_are_stale() {
        let pods = [("web".to_owned(), "web-1".to_owned())].into();
        let slice = |pod: &str| {
            serde_json::from_value(json!({
                "metadata": {
                    "name": "web-abc", "namespace": "web",
                    "labels": { "kubernetes.io/service-name": "web" },
                },
                "addressType": "IPv4",
                "endpoints": [
                    { "addresses": ["10.0.0.1"] },
                    { "addresses": ["10.0.0.2"], "targetRef": { "kind": "Pod", "name": pod } },
                ],
                "ports": [],
            }))
            .unwrap()
        };
        assert_eq!(stale(&slice("web-1"), &pods), None);
        let found = stale(&slice("web-2"), &pods).unwrap();
        assert_eq!((found.object.to_string().as_str(), found.certain), ("Service/web/web", false));
    }

    #[test]
    fn what_points_to_a_service_that_is_gone_is_found() {
        let there = [("kube-system".to_owned(), "metrics".to_owned())].into();
        let came = ["vault".to_owned()].into();
        let judge = |value: Value| {
            let object = serde_json::from_value(value).unwrap();
            judge("g", "K", &object, &there, &came).map(|found| (found.why, found.certain))
        };
        let webhook = |namespace: &str| {
            json!({
                "metadata": { "name": "w" },
                "webhooks": [
                    { "clientConfig": { "url": "https://elsewhere" } },
                    { "clientConfig": { "service": { "namespace": namespace, "name": "hook" } } },
                ],
            })
        };
        let (why, certain) = judge(webhook("vault")).unwrap();
        assert!(why.contains("vault/hook") && certain);
        assert!(!judge(webhook("other")).unwrap().1);
        let api = |name: &str| {
            let service = json!({ "namespace": "kube-system", "name": name });
            json!({ "metadata": { "name": "a" }, "spec": { "service": service } })
        };
        assert_eq!(judge(api("metrics")), None);
        assert!(judge(api("custom")).is_some());
        assert_eq!(judge(json!({ "metadata": { "name": "local" }, "spec": {} })), None);
    }
}
