//! The schedules of a platform: a CronWorkflow for each.

use serde_json::{Value, json};
use tiphys_cluster::RunWorkflow;
use tiphys_cluster::names::{self, NAMESPACE};
use tiphys_model::{Platform, ScheduleTrigger, TriggerName};

use super::triggers;

/// A controller that was away starts what it has missed, if it is back so soon.
const LATEST_START_SECONDS: u32 = 600;

pub(super) fn objects(platform: &Platform) -> impl Iterator<Item = Value> {
    let triggers = platform.triggers.iter();
    triggers.filter_map(|trigger| Some(cron_workflow(platform, &trigger.name, trigger.schedule()?)))
}

fn cron_workflow(platform: &Platform, trigger: &TriggerName, schedule: &ScheduleTrigger) -> Value {
    let run = RunWorkflow {
        action: schedule.action,
        platform: platform.name.clone(),
        argocd: platform.argocd.namespace.clone(),
        scope: schedule.scope.clone(),
        environment: platform.environment.as_ref().map(|environment| environment.name.clone()),
        unattended: true,
    };
    let name = names::cron_workflow(platform, trigger);
    let metadata = triggers::metadata(platform, trigger, &name, NAMESPACE);
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
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": metadata,
        "spec": spec,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use tiphys_cluster::names::PLATFORM_LABEL;
    use tiphys_model::{Cron, Scope, Trigger, TriggerAction, TriggerKind};

    use super::*;
    use crate::configure::objects::tests::platform;

    pub(in crate::configure) fn scheduled(names: &[&str], zone: Option<&str>) -> Platform {
        let trigger = |name: &&str| Trigger {
            name: TriggerName::parse(name).unwrap(),
            kind: TriggerKind::Schedule(ScheduleTrigger {
                at: Cron::new("0 3 * * *", zone).unwrap(),
                action: TriggerAction::Validate,
                scope: Scope::Platform,
            }),
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
}
