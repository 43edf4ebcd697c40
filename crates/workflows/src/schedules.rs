//! The schedules of a platform, as the cluster has them.

use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use tiphys_cluster::names::{ARGOCD_LABEL, NAMESPACE, PLATFORM_LABEL, TRIGGER_LABEL};
use tiphys_cluster::{Cause, RequestError, RunWorkflow};
use tiphys_model::{Cron, PlatformName, ScheduleTrigger, Scope, TriggerAction};

use crate::workflow::kind;

/// A schedule that `configure` has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// Of its trigger.
    pub name: String,
    pub trigger: ScheduleTrigger,
    /// When it started a run last.
    pub last: Option<Timestamp>,
}

/// All of a platform, by name. Where nobody knows CronWorkflows there are none.
pub async fn schedules(
    client: &Client,
    argocd: &str,
    platform: &PlatformName,
) -> Result<Vec<Scheduled>, RequestError> {
    let objects: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), NAMESPACE, &kind("CronWorkflow"));
    let labels = format!("{TRIGGER_LABEL},{PLATFORM_LABEL}={platform},{ARGOCD_LABEL}={argocd}");
    let listed = objects.list(&ListParams::default().labels(&labels)).await;
    let mut found: Vec<Scheduled> =
        match listed.map_err(RequestError::because("cannot list the schedules")) {
            Ok(listed) => listed.items.iter().filter_map(Scheduled::of).collect(),
            Err(error) if error.cause() == Cause::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

impl Scheduled {
    /// What somebody has changed into something else is not shown as ours.
    fn of(object: &DynamicObject) -> Option<Self> {
        let spec = &object.data["spec"];
        let run = &spec["workflowSpec"];
        let template = run["workflowTemplateRef"]["name"].as_str()?;
        let action =
            TriggerAction::ALL.into_iter().find(|one| RunWorkflow::template(*one) == template)?;
        let parameters = run["arguments"]["parameters"].as_array()?;
        let scope = parameters.iter().find(|parameter| parameter["name"] == "scope");
        let scope: Scope = scope?["value"].as_str()?.parse().ok()?;
        let at = Cron::new(spec["schedules"][0].as_str()?, spec["timezone"].as_str()).ok()?;
        let last = object.data["status"]["lastScheduledTime"].as_str();
        Some(Scheduled {
            name: object.labels().get(TRIGGER_LABEL)?.clone(),
            trigger: ScheduleTrigger { at, action, scope },
            last: last.and_then(|time| time.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(template: &str) -> DynamicObject {
        let parameters = json!([{ "name": "platform", "value": "prod" }, { "name": "scope", "value": "app:web" }]);
        serde_json::from_value(json!({
            "metadata": { "name": "prod-nightly-01234", "labels": { TRIGGER_LABEL: "nightly" } },
            "spec": {
                "schedules": ["0 3 * * *"], "timezone": "Europe/Berlin",
                "workflowSpec": {
                    "workflowTemplateRef": { "name": template },
                    "arguments": { "parameters": parameters },
                },
            },
            "status": { "lastScheduledTime": "2026-11-19T02:00:00Z" },
        }))
        .unwrap()
    }

    #[test]
    fn it_is_read_as_configure_writes_it() {
        let found = Scheduled::of(&object("tiphys-deploy")).unwrap();
        assert_eq!(found.name, "nightly");
        assert_eq!(found.trigger.action, TriggerAction::Deploy);
        assert_eq!(found.trigger.scope.to_string(), "app:web");
        let last = found.last.unwrap();
        assert_eq!(found.trigger.at.next(last).unwrap().to_string(), "2026-11-20T02:00:00Z");
        assert_eq!(Scheduled::of(&object("somebody-elses")), None);
        let bare = serde_json::from_value(json!({ "metadata": { "name": "a" } })).unwrap();
        assert_eq!(Scheduled::of(&bare), None);
    }
}
