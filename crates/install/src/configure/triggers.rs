//! What triggers have in common: each object is made for one trigger, and goes with it.

use kube::api::ListParams;
use kube::{Client, ResourceExt};
use serde_json::Value;
use tiphys_cluster::names::{
    self, ARGOCD_LABEL, EVENTS_NAMESPACE, MANAGED_BY, NAMESPACE, PLATFORM_LABEL, TRIGGER_LABEL,
};
use tiphys_cluster::{Cause, RequestError, dynamic};
use tiphys_model::{Platform, TriggerName};

use super::objects::cluster_metadata;
use super::removal::Removal;

const CRON_WORKFLOW: &str = "CronWorkflow";
/// Each with its group and version, and where it is. What hears goes before what it has heard with.
const KINDS: [(&str, &str, &str); 5] = [
    ("argoproj.io/v1alpha1", CRON_WORKFLOW, NAMESPACE),
    ("argoproj.io/v1alpha1", "Sensor", EVENTS_NAMESPACE),
    ("argoproj.io/v1alpha1", "EventSource", EVENTS_NAMESPACE),
    ("v1", "ConfigMap", EVENTS_NAMESPACE),
    ("v1", "Secret", EVENTS_NAMESPACE),
];

/// Metadata of an object that is made for a trigger.
pub(super) fn metadata(
    platform: &Platform,
    trigger: &TriggerName,
    name: &str,
    namespace: &str,
) -> Value {
    let mut metadata = cluster_metadata(platform, name);
    metadata["namespace"] = namespace.into();
    metadata["labels"][ARGOCD_LABEL] = platform.argocd.namespace.clone().into();
    metadata["labels"][TRIGGER_LABEL] = trigger.as_str().into();
    metadata
}

/// Objects of the platform's triggers that are in the cluster, while the trigger is not in the platform
/// file: they would go on for ever. Where nobody knows their kinds, or may see them, there are none of
/// ours.
pub(super) async fn removals(
    client: &Client,
    platform: &Platform,
) -> Result<Vec<Removal>, RequestError> {
    let labels = format!(
        "{}={},{PLATFORM_LABEL}={},{ARGOCD_LABEL}={},{TRIGGER_LABEL}",
        MANAGED_BY.0, MANAGED_BY.1, platform.name, platform.argocd.namespace
    );
    let mut removals = Vec::new();
    for (version, kind, namespace) in KINDS {
        let objects = dynamic(client, Some(namespace), version, kind);
        let listed = objects.list(&ListParams::default().labels(&labels)).await;
        let what = format!("cannot list objects of kind {kind} in {namespace}");
        let found = match listed.map_err(RequestError::because(what)) {
            Ok(found) => found.items,
            Err(error) if matches!(error.cause(), Cause::NotFound | Cause::Denied) => continue,
            Err(error) => return Err(error),
        };
        let gone = found.into_iter().filter(|found| !is_wanted(platform, kind, &found.name_any()));
        let removal = |found| Removal::new(objects.clone(), (kind, namespace), &found);
        removals.extend(gone.map(removal));
    }
    Ok(removals)
}

fn is_wanted(platform: &Platform, kind: &str, name: &str) -> bool {
    platform.triggers.iter().any(|trigger| {
        if kind == CRON_WORKFLOW {
            let scheduled = trigger.schedule().is_some();
            scheduled && names::cron_workflow(platform, &trigger.name) == name
        } else {
            trigger.needs_events() && names::event_source(platform, &trigger.name) == name
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_cluster::scripted::Server;

    use super::*;
    use crate::configure::push::tests::pushed;
    use crate::configure::schedules::{self, tests::scheduled};

    #[tokio::test]
    async fn what_the_file_has_no_more_is_removed() {
        let server = Server::default();
        let path = "/apis/argoproj.io/v1alpha1/namespaces/tiphys/cronworkflows";
        for object in schedules::objects(&scheduled(&["nightly", "old"], None)) {
            let name = object["metadata"]["name"].as_str().unwrap();
            server.put(&format!("{path}/{name}"), object.clone());
        }
        let removals = removals(&server.client(), &scheduled(&["nightly"], None)).await.unwrap();
        let [old] = &removals[..] else { panic!("one is left over") };
        assert!(old.change().name.starts_with("prod-old-"));
        old.carry_out().await.unwrap();
        assert_eq!(server.get(&format!("{path}/{}", old.change().name)), None);
    }

    #[tokio::test]
    async fn nobody_sees_the_secret_of_a_webhook_that_goes() {
        let server = Server::default();
        let name = names::event_source(&pushed(), &pushed().triggers[0].name);
        let secret = json!({ "metadata": { "name": name }, "data": { "secret": "aHVudGVyMg==" } });
        server.put(&format!("/api/v1/namespaces/tiphys-events/secrets/{name}"), secret);
        let without = Platform { triggers: Vec::new(), ..pushed() };
        let removals = removals(&server.client(), &without).await.unwrap();
        let [secret] = &removals[..] else { panic!("one goes") };
        assert_eq!(secret.change().before.as_ref().unwrap()["data"], json!({ "secret": "(old)" }));
    }

    #[test]
    fn a_trigger_that_has_become_another_one_leaves_nothing_of_the_first() {
        let (scheduled, pushed) = (scheduled(&["news"], None), pushed());
        let name = &scheduled.triggers[0].name;
        let (cron, event) =
            (names::cron_workflow(&scheduled, name), names::event_source(&pushed, name));
        assert!(is_wanted(&scheduled, CRON_WORKFLOW, &cron));
        assert!(!is_wanted(&pushed, CRON_WORKFLOW, &cron));
        assert!(is_wanted(&pushed, "Sensor", &event));
        assert!(!is_wanted(&scheduled, "Sensor", &event));
    }
}
