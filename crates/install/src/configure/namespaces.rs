//! The namespaces of what runs inside the cluster. All platforms share them, so the last one to leave
//! takes them along, and only if nobody else has put anything there.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};
use tiphys_cluster::names::{ARGOCD_LABEL, EVENT_BUS, MANAGED_BY, PLATFORM_LABEL};
use tiphys_cluster::{Kinds, Listed, RequestError};
use tiphys_model::{Platform, namespaces};

/// What Kubernetes keeps in every namespace, and what is only about other objects.
const AMBIENT: [&str; 5] = ["Event", "Lease", "EndpointSlice", "Endpoints", "PodMetrics"];
const AMBIENT_OBJECTS: [(&str, &str); 2] =
    [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")];

/// What becomes of the namespaces when a platform goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// By name: the uids of those that nobody needs any more.
    pub unneeded: BTreeMap<String, String>,
    /// The others, each with why it stays.
    pub needed: Vec<String>,
}

/// Looks at them once the platform's accounts are gone.
pub async fn namespaces(client: &Client, platform: &Platform) -> Result<Namespaces, RequestError> {
    let mut result = Namespaces::default();
    let api: Api<Namespace> = Api::all(client.clone());
    let mut kinds = None;
    for name in namespaces::ALL {
        let what = format!("cannot read the namespace {name}");
        let found = api.get_opt(name).await.map_err(RequestError::because(what))?;
        let ours = |found: &Namespace| {
            found.labels().get(MANAGED_BY.0).map(String::as_str) == Some(MANAGED_BY.1)
        };
        let Some(uid) = found.filter(ours).and_then(|found| found.uid()) else { continue };
        let kinds = match &mut kinds {
            Some(kinds) => kinds,
            none => none.insert(Kinds::discover(client).await?),
        };
        match user(kinds, platform, name).await? {
            Some(user) => result.needed.push(format!("the namespace `{name}` stays: {user}")),
            None => {
                result.unneeded.insert(name.to_owned(), uid);
            }
        }
    }
    Ok(result)
}

/// Whoever else needs the namespace.
async fn user(
    kinds: &Kinds,
    platform: &Platform,
    namespace: &str,
) -> Result<Option<String>, RequestError> {
    for (resource, api) in kinds.listable_in(namespace) {
        let kind = &*resource.kind;
        let mut other = None;
        let each = |object: ObjectMeta| {
            if other.is_none() && !goes(kind, &object, platform) {
                other = Some(format!("{kind} {} is in it", object.name.unwrap_or_default()));
            }
        };
        if Kinds::each_object(resource, &api, each).await? == Listed::Denied {
            other = Some(format!("objects of kind {kind} in it cannot be listed"));
        }
        if other.is_some() {
            return Ok(other);
        }
    }
    Ok(None)
}

/// Whether an object can go with its namespace: a record or a workflow of the platform, or what is
/// there because of something else.
fn goes(kind: &str, object: &ObjectMeta, platform: &Platform) -> bool {
    let name = object.name.as_deref().unwrap_or_default();
    if AMBIENT.contains(&kind) || AMBIENT_OBJECTS.contains(&(kind, name)) {
        return true;
    }
    if object.owner_references.as_ref().is_some_and(|owners| !owners.is_empty()) {
        return true;
    }
    let label = |key: &str| object.labels.as_ref()?.get(key).map(String::as_str);
    // Whoever still uses it has something else here.
    if (kind, name) == ("EventBus", EVENT_BUS) && label(MANAGED_BY.0) == Some(MANAGED_BY.1) {
        return true;
    }
    label(PLATFORM_LABEL) == Some(platform.name.as_str())
        && label(ARGOCD_LABEL) == Some(&*platform.argocd.namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::configure::objects::tests::platform;

    fn goes_with_prod(kind: &str, metadata: Value) -> bool {
        goes(kind, &serde_json::from_value(metadata).unwrap(), &platform("prod"))
    }

    #[test]
    fn only_what_is_the_platforms_goes() {
        let of = |platform: &str, argocd: &str| {
            let labels = json!({ PLATFORM_LABEL: platform, ARGOCD_LABEL: argocd });
            json!({ "name": "a", "labels": labels })
        };
        assert!(goes_with_prod("ConfigMap", of("prod", "argocd")));
        assert!(!goes_with_prod("ConfigMap", of("prod-2", "argocd")));
        assert!(!goes_with_prod("Workflow", of("prod", "another")));
        // An account that is still there is that of the same platform in another Argo CD.
        let account = json!({ "name": "a", "labels": { PLATFORM_LABEL: "prod" } });
        assert!(!goes_with_prod("ServiceAccount", account));
        let owner = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1" }]);
        assert!(goes_with_prod("Pod", json!({ "name": "a", "ownerReferences": owner })));
        assert!(!goes_with_prod("Secret", json!({ "name": "webhook", "ownerReferences": [] })));
        let labels = json!({ MANAGED_BY.0: MANAGED_BY.1 });
        let bus = |name: &str, labels: &Value| json!({ "name": name, "labels": labels });
        assert!(goes_with_prod("EventBus", bus(EVENT_BUS, &labels)));
        assert!(!goes_with_prod("EventBus", bus(EVENT_BUS, &json!({}))), "somebody else's");
        assert!(!goes_with_prod("Sensor", bus(EVENT_BUS, &labels)), "of another platform");
    }

    #[test]
    fn what_every_namespace_has_goes() {
        assert!(goes_with_prod("ServiceAccount", json!({ "name": "default" })));
        assert!(goes_with_prod("ConfigMap", json!({ "name": "kube-root-ca.crt" })));
        assert!(goes_with_prod("Event", json!({ "name": "a.1" })));
        assert!(!goes_with_prod("ConfigMap", json!({ "name": "default" })));
    }
}
