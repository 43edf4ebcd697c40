//! What apps have applied, as their Applications said last: in a teardown, all of it has to be
//! gone before anything that an app depends on may go.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use kube::Client;
use kube::api::ObjectMeta;
use tiphys_model::platform::ArgoCd;
use tiphys_run::Evidence;

use tiphys_argocd::application::Application;
use tiphys_argocd::{AppAddress, hooks, tracking};
use tiphys_cluster::stuck;
use tiphys_cluster::{Kinds, ObjectName};
use tiphys_evidence::EvidenceCollector;

const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct AppResources {
    client: Client,
    kinds: Kinds,
    argocd: ArgoCd,
    /// By app.
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Debug, Clone, Default)]
struct Known {
    address: AppAddress,
    /// What Argo CD calls the app on its objects.
    instance: String,
    objects: Vec<ObjectName>,
    /// Argo CD leaves them, unless they say otherwise.
    kept: bool,
}

impl AppResources {
    pub(crate) fn new(client: &Client, argocd: &ArgoCd, kinds: Kinds) -> Self {
        let (client, argocd) = (client.clone(), argocd.clone());
        AppResources { client, kinds, argocd, known: Mutex::default() }
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// An Application that is being deleted forgets what it had: then the last word counts.
    pub(crate) fn remember(&self, application: &Application) {
        let resources = application.status.resources.iter().flatten();
        let objects: Vec<ObjectName> = resources
            .map(|resource| ObjectName {
                group: resource.group.clone(),
                kind: resource.kind.clone(),
                namespace: resource.namespace.clone(),
                name: resource.name.clone(),
            })
            .collect();
        if let Ok(mut known) = self.known.lock()
            && !(objects.is_empty() && application.metadata.deletion_timestamp.is_some())
        {
            let kept = application.keeps_its_objects();
            let name = application.name();
            let instance = self.argocd.instance_name(application.namespace(), name);
            let address = application.address();
            known.insert(name.to_owned(), Known { address, instance, objects, kept });
        }
    }

    fn of(&self, app: &str) -> Known {
        self.known.lock().ok().and_then(|known| known.get(app).cloned()).unwrap_or_default()
    }

    /// Returns when nothing of the app is there any more but hooks, and names those. Whether that
    /// takes too long is for the run to judge.
    pub(crate) async fn await_gone(&self, app: &str) -> Vec<ObjectName> {
        loop {
            let Left { awaited, hooks } = self.left(app).await;
            if awaited.is_empty() {
                return hooks;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// What the app has applied and is there. What we may not look at, we have Argo CD's word for.
    async fn left(&self, app: &str) -> Left {
        let mut left = Left::default();
        let Known { objects, kept, instance, .. } = self.of(app);
        for object in objects {
            let found = match self.kinds.get(&object).await {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(kube::Error::Api(status)) if status.code < 500 => continue,
                // Nobody knows.
                Err(_) => {
                    left.awaited.push(object);
                    continue;
                }
            };
            if !kept || tracking::says_itself(&found.metadata) {
                left.take(&instance, object, &found.metadata);
            }
        }
        left
    }

    /// Whether the app keeps its objects, and none of them says otherwise.
    pub(crate) async fn all_stay(&self, app: &str) -> bool {
        let Known { objects, kept, .. } = self.of(app);
        if !kept {
            return false;
        }
        for object in objects {
            // An object that cannot be read must not be deleted.
            if let Ok(Some(found)) = self.kinds.get(&object).await
                && tracking::says_itself(&found.metadata)
            {
                return false;
            }
        }
        true
    }

    /// Why an app does not go: the object that holds it up, and who should act.
    pub(crate) async fn explain(
        &self,
        app: &str,
        collector: Option<&EvidenceCollector>,
        mut evidence: Evidence,
    ) -> Evidence {
        let Known { address, mut objects, .. } = self.of(app);
        if let Some(collector) = collector {
            // What its objects have made may hold them up.
            match collector.members(&address).await {
                Ok(members) => objects.extend(members),
                Err(error) => evidence.unseen.push(format!("its resource tree: {error}")),
            }
        }
        if let Some(stuck) = stuck::find(&self.kinds, objects).await {
            evidence.events = stuck::events(&self.client, &stuck.object).await;
            evidence.resource = Some(stuck.to_string());
            evidence.likely = Some(stuck.next());
            return evidence;
        }
        let left = self.left(app).await.awaited;
        if !left.is_empty() {
            let names: Vec<String> = left.iter().map(ToString::to_string).collect();
            evidence.resource = Some(format!("still there: {}", names.join(", ")));
        }
        evidence
    }
}

/// What is there of an app whose Application is gone.
#[derive(Debug, Default, PartialEq, Eq)]
struct Left {
    /// It should have gone, too.
    awaited: Vec<ObjectName>,
    /// Argo CD is done with these, and leaves them.
    hooks: Vec<ObjectName>,
}

impl Left {
    fn take(&mut self, instance: &str, object: ObjectName, metadata: &ObjectMeta) {
        if tracking::app_of(&object, metadata) != Some(instance)
            || tracking::outlives_its_app(&object, metadata)
        {
            return;
        }
        if !hooks::is_hook(metadata) {
            self.awaited.push(object);
        } else if metadata.deletion_timestamp.is_none() {
            self.hooks.push(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn left(metadata: Value) -> Left {
        let name = |text: &str| text.to_owned();
        let object = ObjectName {
            group: name("batch"),
            kind: name("Job"),
            namespace: name("db"),
            name: name("clean"),
        };
        let mut left = Left::default();
        left.take("db", object, &serde_json::from_value(metadata).unwrap());
        left
    }

    #[test]
    fn a_hook_is_not_waited_for() {
        let (label, hook) = ("app.kubernetes.io/instance", "argocd.argoproj.io/hook");
        let count = |left: Left| (left.awaited.len(), left.hooks.len());
        let labels = json!({ label: "db" });
        let annotations = json!({ hook: "PostDelete" });
        let going = "2026-01-01T00:00:00Z";
        for (metadata, expected) in [
            (json!({ "labels": labels }), (1, 0)),
            (json!({ "labels": labels, "deletionTimestamp": going }), (1, 0)),
            (json!({ "labels": labels, "annotations": annotations }), (0, 1)),
            (json!({ "labels": labels, "annotations": { "helm.sh/hook": "post-delete" } }), (0, 1)),
            (
                json!({ "labels": labels, "annotations": annotations, "deletionTimestamp": going }),
                (0, 0),
            ),
            (json!({ "labels": { label: "other" } }), (0, 0)),
            (json!({ "labels": { label: "other" }, "annotations": annotations }), (0, 0)),
            (
                json!({ "labels": labels, "annotations": { "helm.sh/resource-policy": "keep" } }),
                (0, 0),
            ),
        ] {
            assert_eq!(count(left(metadata.clone())), expected, "{metadata}");
        }
    }
}
