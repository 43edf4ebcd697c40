//! Why an object that is being deleted stays: which finalizer, since when, and who should remove
//! it.

use std::fmt;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Event;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};

use crate::excerpt::{EVENTS, cut};
use crate::kinds::{Kinds, ObjectName};

/// How many objects are looked at at once.
const AT_ONCE: usize = 8;
/// Kubernetes removes it when what an object owns is gone: another one is the cause then.
const FOREGROUND: &str = "foregroundDeletion";

/// An object that waits for somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    pub object: ObjectName,
    since: String,
    finalizers: Vec<Finalizer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Finalizer {
    name: String,
    /// Who has put it there.
    manager: Option<String>,
}

impl Stuck {
    /// What an object waits for; nothing, if it is not being deleted.
    #[must_use]
    pub fn of(object: &ObjectName, live: &DynamicObject) -> Option<Self> {
        let since = live.metadata.deletion_timestamp.as_ref()?.0.to_string();
        let finalizer =
            |name: &String| Finalizer { name: name.clone(), manager: manager(live, name) };
        let finalizers: Vec<Finalizer> = live.finalizers().iter().map(finalizer).collect();
        (!finalizers.is_empty()).then(|| Stuck { object: object.clone(), since, finalizers })
    }

    fn waits_for_others_only(&self) -> bool {
        self.finalizers.iter().all(|finalizer| finalizer.name == FOREGROUND)
    }

    /// Who has to act, and the last resort.
    pub fn next(&self) -> String {
        let who: Vec<String> = self.finalizers.iter().map(Finalizer::remover).collect();
        format!(
            "{}; if that will never happen, run again with --force-finalizer {}",
            who.join("; "),
            self.object
        )
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self
            .finalizers
            .iter()
            .map(|finalizer| match &finalizer.manager {
                Some(manager) => format!("{} (set by {manager})", finalizer.name),
                None => finalizer.name.clone(),
            })
            .collect();
        let Stuck { object, since, .. } = self;
        let s = if names.len() == 1 { "" } else { "s" };
        write!(f, "{object} is being deleted since {since} and waits for its finalizer{s} ")?;
        f.write_str(&names.join(", "))
    }
}

impl Finalizer {
    fn remover(&self) -> String {
        let name = &*self.name;
        let known = match name {
            "kubernetes.io/pvc-protection" => "Kubernetes removes it when no pod uses the claim",
            "kubernetes.io/pv-protection" => "Kubernetes removes it when no claim uses the volume",
            FOREGROUND => "Kubernetes removes it when what the object owns is gone",
            "orphan" => "Kubernetes removes it when what the object owns has been let go",
            _ if name.starts_with("resources-finalizer.argocd.argoproj.io") => {
                "Argo CD removes it when what the Application has applied is gone"
            }
            _ if name.starts_with("post-delete-finalizer.argocd.argoproj.io")
                || name.starts_with("pre-delete-finalizer.argocd.argoproj.io") =>
            {
                "Argo CD removes it when the hook of the Application has succeeded"
            }
            _ => "",
        };
        match (known, &self.manager) {
            ("", None) => {
                let domain = name.split('/').next().unwrap_or(name);
                format!("the controller of {domain} should remove `{name}`: see whether it runs")
            }
            ("", Some(manager)) => {
                format!("{manager}, or the controller that it is for, should remove `{name}`")
            }
            (known, _) => known.to_owned(),
        }
    }
}

/// Who manages a finalizer, as the API server keeps it.
fn manager(live: &DynamicObject, finalizer: &str) -> Option<String> {
    let key = format!("v:{}", serde_json::Value::from(finalizer));
    let mut entries = live.metadata.managed_fields.iter().flatten();
    let entry = entries.find(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.is_some_and(|all| all["f:metadata"]["f:finalizers"].get(&key).is_some())
    });
    entry?.manager.clone()
}

/// The object that holds up the deletion of all the others, as far as can be told.
pub async fn find(kinds: &Kinds, objects: Vec<ObjectName>) -> Option<Stuck> {
    let looks = futures::stream::iter(objects).map(|object| async move {
        let live = kinds.get(&object).await.ok().flatten()?;
        Stuck::of(&object, &live)
    });
    let mut stuck: Vec<Stuck> = looks.buffered(AT_ONCE).filter_map(async |s| s).collect().await;
    stuck.sort_by_key(Stuck::waits_for_others_only);
    stuck.into_iter().next()
}

/// What Kubernetes has said about an object, the newest last.
pub async fn events(client: &Client, object: &ObjectName) -> Vec<String> {
    let namespace = if object.namespace.is_empty() { "default" } else { &object.namespace };
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let about = format!("involvedObject.kind={},involvedObject.name={}", object.kind, object.name);
    let Ok(listed) = events.list(&ListParams::default().fields(&about)).await else {
        return Vec::new();
    };
    let mut told: Vec<(String, String)> = listed
        .items
        .into_iter()
        .map(|event| {
            let at = event.last_timestamp.map(|time| time.0.to_string()).unwrap_or_default();
            let reason = event.reason.unwrap_or_default();
            let message = event.message.unwrap_or_default();
            (at, cut(&format!("{object}: {reason} {}", message.trim())))
        })
        .collect();
    told.sort();
    let mut texts: Vec<String> = told.into_iter().map(|(_, text)| text).collect();
    texts.dedup();
    texts.split_off(texts.len().saturating_sub(EVENTS))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn stuck(finalizers: &[&str], fields: &Value) -> Option<Stuck> {
        let [group, kind, namespace, name] =
            ["ceph.rook.io", "CephCluster", "rook", "main"].map(str::to_owned);
        let object = ObjectName { group, kind, namespace, name };
        let live = serde_json::from_value(json!({
            "metadata": {
                "name": "main",
                "deletionTimestamp": "2026-11-15T12:00:00Z",
                "finalizers": finalizers,
                "managedFields": [{ "manager": "rook", "fieldsV1": fields }],
            },
        }))
        .unwrap();
        Stuck::of(&object, &live)
    }

    #[test]
    fn a_stuck_object_says_what_it_waits_for_and_who_should_act() {
        let set = json!({ "f:metadata": { "f:finalizers": { "v:\"a.example.org/b\"": {} } } });
        let by_rook = stuck(&["a.example.org/b"], &set).unwrap();
        assert_eq!(
            by_rook.to_string(),
            "CephCluster/rook/main is being deleted since 2026-11-15T12:00:00Z and waits for its \
             finalizer a.example.org/b (set by rook)"
        );
        assert_eq!(
            by_rook.next(),
            "rook, or the controller that it is for, should remove `a.example.org/b`; if that \
             will never happen, run again with --force-finalizer CephCluster/rook/main"
        );
        let unknown = stuck(&["a.example.org/b"], &json!({})).unwrap();
        assert!(unknown.next().starts_with("the controller of a.example.org should"));
        let claim = stuck(&["kubernetes.io/pvc-protection"], &json!({})).unwrap();
        assert!(claim.next().starts_with("Kubernetes removes it when no pod uses the claim"));
        assert_eq!(stuck(&[], &json!({})), None);
    }

    #[test]
    fn who_waits_for_what_it_owns_is_not_the_cause() {
        assert!(stuck(&[FOREGROUND], &json!({})).unwrap().waits_for_others_only());
        assert!(!stuck(&[FOREGROUND, "a/b"], &json!({})).unwrap().waits_for_others_only());
    }
}
