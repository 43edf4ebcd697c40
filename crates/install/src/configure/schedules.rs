//! The schedules of a platform: a CronWorkflow for each.

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tiphys_cluster::names::{self, ARGOCD_LABEL, MANAGED_BY, NAMESPACE, PLATFORM_LABEL};
use tiphys_cluster::{Cause, RequestError, RunWorkflow, delete};
use tiphys_model::{Platform, Trigger};

use super::intent::essence;
use super::objects::cluster_metadata;
use super::{Change, Outcome};

const KIND: &str = "CronWorkflow";
/// A controller that was away starts what it has missed, if it is back so soon.
const LATEST_START_SECONDS: u32 = 600;

/// A schedule that the platform file has no more.
pub(super) struct Removal {
    objects: Api<DynamicObject>,
    uid: Option<String>,
    change: Change,
}

impl Removal {
    pub(super) async fn carry_out(&self) -> Result<(), RequestError> {
        let what = format!("cannot delete {}", self.change);
        let only = delete::only(self.uid.clone());
        delete::delete(&self.objects, &self.change.name, &only, what).await
    }

    pub(super) fn into_change(self) -> Change {
        self.change
    }
}

/// Schedules of the platform that are in the cluster and not in the platform file: they would go on for
/// ever. Where nobody knows CronWorkflows, or may see them, there are none of ours.
pub(super) async fn removals(
    client: &Client,
    platform: &Platform,
) -> Result<Vec<Removal>, RequestError> {
    let objects = api(client);
    let labels = format!(
        "{}={},{PLATFORM_LABEL}={},{ARGOCD_LABEL}={}",
        MANAGED_BY.0, MANAGED_BY.1, platform.name, platform.argocd.namespace
    );
    let listed = objects.list(&ListParams::default().labels(&labels)).await;
    let found = match listed.map_err(RequestError::because("cannot list the schedules")) {
        Ok(found) => found.items,
        Err(error) if matches!(error.cause(), Cause::NotFound | Cause::Denied) => Vec::new(),
        Err(error) => return Err(error),
    };
    let wanted = |name: &str| {
        let mut triggers = platform.triggers.iter();
        triggers.any(|trigger| names::cron_workflow(platform, &trigger.name) == name)
    };
    let gone = found.into_iter().filter(|found| !wanted(&found.name_any()));
    Ok(gone.map(|found| removal(objects.clone(), &found)).collect())
}

fn removal(objects: Api<DynamicObject>, found: &DynamicObject) -> Removal {
    let change = Change {
        kind: KIND.to_owned(),
        name: found.name_any(),
        namespace: NAMESPACE.to_owned(),
        outcome: Outcome::Removed,
        before: Some(essence(found)),
        after: Value::Null,
    };
    Removal { objects, uid: found.uid(), change }
}

fn api(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", KIND));
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

pub(super) fn objects(platform: &Platform) -> impl Iterator<Item = Value> {
    platform.triggers.iter().map(|trigger| cron_workflow(platform, trigger))
}

fn cron_workflow(platform: &Platform, trigger: &Trigger) -> Value {
    let schedule = &trigger.schedule;
    let run = RunWorkflow {
        action: schedule.action,
        platform: platform.name.clone(),
        argocd: platform.argocd.namespace.clone(),
        scope: schedule.scope.clone(),
        environment: platform.environment.as_ref().map(|environment| environment.name.clone()),
        unattended: true,
    };
    let mut metadata = cluster_metadata(platform, &names::cron_workflow(platform, &trigger.name));
    metadata["namespace"] = NAMESPACE.into();
    metadata["labels"][ARGOCD_LABEL] = platform.argocd.namespace.clone().into();
    metadata["labels"][names::TRIGGER_LABEL] = trigger.name.as_str().into();
    let mut spec = json!({
        "schedules": [schedule.at.text()],
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": LATEST_START_SECONDS,
        "workflowMetadata": { "labels": run.labels() },
        "workflowSpec": run.spec(),
    });
    if let Some(zone) = schedule.at.time_zone() {
        spec["timezone"] = zone.into();
    }
    json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": KIND, "metadata": metadata, "spec": spec })
}

#[cfg(test)]
mod tests {
    use tiphys_cluster::scripted::Server;
    use tiphys_model::{Cron, ScheduleTrigger, Scope, TriggerAction, TriggerName};

    use super::*;
    use crate::configure::objects::tests::platform;

    fn scheduled(names: &[&str], zone: Option<&str>) -> Platform {
        let trigger = |name: &&str| Trigger {
            name: TriggerName::parse(name).unwrap(),
            schedule: ScheduleTrigger {
                at: Cron::new("0 3 * * *", zone).unwrap(),
                action: TriggerAction::Validate,
                scope: Scope::Platform,
            },
        };
        Platform { triggers: names.iter().map(trigger).collect(), ..platform("prod") }
    }

    #[test]
    fn a_schedule_is_a_cron_workflow_that_another_one_does_not_overtake() {
        let platform = scheduled(&["nightly"], Some("Europe/Berlin"));
        let object = objects(&platform).next().unwrap();
        let spec = &object["spec"];
        assert_eq!(spec["schedules"], json!(["0 3 * * *"]));
        assert_eq!(
            (&spec["timezone"], &spec["concurrencyPolicy"]),
            (&json!("Europe/Berlin"), &json!("Forbid"))
        );
        assert_eq!(spec["workflowSpec"]["workflowTemplateRef"]["name"], "tiphys-validate");
        assert_eq!(spec["workflowMetadata"]["labels"][PLATFORM_LABEL], "prod");
        assert_eq!(object["metadata"]["labels"][names::TRIGGER_LABEL], "nightly");
        let utc = objects(&scheduled(&["nightly"], None)).next().unwrap();
        assert_eq!(utc["spec"].get("timezone"), None);
    }

    #[test]
    fn names_are_short_and_tell_platforms_apart() {
        let name = |platform_name: &str, trigger: &str| {
            let platform = platform(platform_name);
            names::cron_workflow(&platform, &TriggerName::parse(trigger).unwrap())
        };
        let long = "p".repeat(56);
        let longest = name(&long, &"t".repeat(20));
        assert!(longest.len() <= 52, "what Argo Workflows takes: {longest}");
        assert_ne!(name(&long, "a"), name(&long[..55], "a"));
        assert_ne!(name("a-b", "c"), name("a", "b-c"));
        assert!(name("prod", "nightly").starts_with("prod-nightly-"));
    }

    #[tokio::test]
    async fn what_the_file_has_no_more_is_removed() {
        let server = Server::default();
        let path = "/apis/argoproj.io/v1alpha1/namespaces/tiphys/cronworkflows";
        for object in objects(&scheduled(&["nightly", "old"], None)) {
            let name = object["metadata"]["name"].as_str().unwrap();
            server.put(&format!("{path}/{name}"), object.clone());
        }
        let removals = removals(&server.client(), &scheduled(&["nightly"], None)).await.unwrap();
        let [old] = &removals[..] else { panic!("one is left over") };
        assert!(old.change.name.starts_with("prod-old-"));
        old.carry_out().await.unwrap();
        assert_eq!(server.get(&format!("{path}/{}", old.change.name)), None);
    }
}
