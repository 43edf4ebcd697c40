//! Whose an object is: what Argo CD writes on what it applies.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;

use tiphys_assess::ownership::{self, keep, tracking_app};
use tiphys_cluster::ObjectName;
#[cfg(doc)]
use tiphys_model::platform::ArgoCd;

use crate::application::Application;

const ANNOTATION: &str = "argocd.argoproj.io/tracking-id";
const LABEL: &str = "app.kubernetes.io/instance";

/// The app that has applied an object, as Argo CD calls it: with the namespace before its name, if
/// that is not Argo CD's own ([`ArgoCd::instance_name`]). Controllers copy annotations to what they make of an
/// object, so one that speaks of another object does not count.
pub fn app_of<'a>(object: &ObjectName, metadata: &'a ObjectMeta) -> Option<&'a str> {
    let annotation = metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION));
    let Some(id) = annotation else {
        return metadata.labels.as_ref()?.get(LABEL).map(String::as_str);
    };
    let ObjectName { group, kind, namespace, name } = object;
    tracking_app(id, group, kind, namespace, name)
}

/// Whether this is what Argo CD calls an Application, whichever namespace is Argo CD's own. No name
/// of either kind has an underscore in it.
#[must_use]
pub fn is_instance(instance: &str, application: &Application) -> bool {
    match instance.split_once('_') {
        Some(named) => named == (application.namespace(), application.name()),
        None => instance == application.name(),
    }
}

/// Whether Argo CD itself says so, and not a label that many use.
#[must_use]
pub fn is_annotated(metadata: &ObjectMeta) -> bool {
    metadata.annotations.as_ref().is_some_and(|all| all.contains_key(ANNOTATION))
}

/// Whether an object says itself what happens to it when its app is deleted: then its app does not.
#[must_use]
pub fn says_itself(metadata: &ObjectMeta) -> bool {
    metadata.annotations.as_ref().is_some_and(ownership::says_itself)
}

/// Whether Argo CD leaves an object where it is when its app is deleted.
#[must_use]
pub fn outlives_its_app(object: &ObjectName, metadata: &ObjectMeta) -> bool {
    let nothing = BTreeMap::new();
    let annotations = metadata.annotations.as_ref().unwrap_or(&nothing);
    // Argo CD does not know sealing keys: what is kept by labels alone goes.
    object.kind == "CustomResourceDefinition" || keep(&nothing, annotations).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
    const HELM_POLICY: &str = "helm.sh/resource-policy";

    fn object(kind: &str, namespace: &str, name: &str) -> ObjectName {
        let [kind, namespace, name] = [kind, namespace, name].map(str::to_owned);
        ObjectName { group: "apps".to_owned(), kind, namespace, name }
    }

    fn metadata(value: Value) -> ObjectMeta {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_object_belongs_to_the_app_that_its_own_tracking_id_names() {
        let tracked = |id: &str| metadata(json!({ "annotations": { ANNOTATION: id } }));
        let of = |object: &ObjectName, id: &str| app_of(object, &tracked(id)).map(str::to_owned);
        let web = object("Deployment", "web", "web");
        assert_eq!(of(&web, "shop:apps/Deployment:web/web").as_deref(), Some("shop"));
        assert_eq!(of(&web, "shop:apps/Deployment:other/web"), None);
        let copied = object("ReplicaSet", "web", "web-1");
        assert_eq!(of(&copied, "shop:apps/Deployment:web/web"), None);
        let wide = object("Wide", "", "all");
        assert_eq!(of(&wide, "shop:apps/Wide:web/all").as_deref(), Some("shop"));
        assert_eq!(of(&wide, "shop:apps/Wide:web/small"), None);
        let labelled = metadata(json!({ "labels": { LABEL: "shop" } }));
        assert_eq!(app_of(&web, &labelled), Some("shop"));
        assert_eq!(app_of(&web, &metadata(json!({}))), None);
    }

    #[test]
    fn an_app_outside_argo_cds_namespace_is_named_with_its_own() {
        let argocd = crate::applications::tests::argocd(&["team"]);
        let application = |namespace: &str| -> Application {
            let metadata = json!({ "name": "shop", "namespace": namespace });
            serde_json::from_value(json!({ "metadata": metadata, "spec": {} })).unwrap()
        };
        let web = object("Deployment", "web", "web");
        for (namespace, instance) in [("argocd", "shop"), ("team", "team_shop")] {
            let id = format!("{instance}:apps/Deployment:web/web");
            let tracked = metadata(json!({ "annotations": { ANNOTATION: id } }));
            let labelled = metadata(json!({ "labels": { LABEL: instance } }));
            assert_eq!(argocd.instance_name(namespace, "shop"), instance);
            assert_eq!(argocd.app_of_instance(instance), Some("shop"));
            assert_eq!(app_of(&web, &tracked), Some(instance));
            assert_eq!(app_of(&web, &labelled), Some(instance));
            assert!(is_instance(instance, &application(namespace)));
        }
        assert_eq!(argocd.app_of_instance("web_shop"), None);
        assert!(!is_instance("team_shop", &application("argocd")));
        assert!(!is_instance("team_shop", &application("web")));
        assert!(!is_instance("team_blog", &application("team")));
    }

    #[test]
    fn some_objects_stay_when_their_app_goes() {
        let stays = |kind: &str, annotations: Value| {
            let metadata = metadata(json!({ "annotations": annotations }));
            outlives_its_app(&object(kind, "", "a"), &metadata)
        };
        assert!(stays("CustomResourceDefinition", json!({})));
        assert!(stays("Secret", json!({ SYNC_OPTIONS: "Prune=false, Delete=false" })));
        assert!(stays("Secret", json!({ HELM_POLICY: "keep" })));
        assert!(!stays("Secret", json!({ SYNC_OPTIONS: "Prune=false" })));
    }
}
