//! Objects whose changes have the platform validated: an EventSource that watches them, and a Sensor that
//! notes when one has changed. What follows is the deploy loop's.

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tiphys_cluster::names::{Account, SCOPE_ANNOTATION, VALIDATES_LABEL};
use tiphys_model::{Platform, ResourceTrigger, TriggerName};

use super::events::{event_source, metadata, note, noting, sensor, telling};

/// The one event of such an EventSource.
const EVENT: &str = "change";

pub(super) fn objects(
    platform: &Platform,
    trigger: &TriggerName,
    resource: &ResourceTrigger,
) -> [Value; 3] {
    let metadata = metadata(platform, trigger);
    let mut note = note(&metadata);
    note["metadata"]["labels"][VALIDATES_LABEL] = "true".into();
    note["metadata"]["annotations"] = json!({ SCOPE_ANNOTATION: resource.scope.to_string() });
    let mut noting = noting(&metadata, EVENT);
    let why = "cannot note a change; the platform is validated after the next one";
    noting["dlqTrigger"] = telling(&metadata, "TiphysNoteFailed", why);
    let sensor = sensor(platform, &metadata, EVENT, &[noting]);
    [note, watching(platform, &metadata, resource), sensor]
}

/// In all namespaces. What was there before it began to watch has not changed.
fn watching(platform: &Platform, metadata: &Value, resource: &ResourceTrigger) -> Value {
    let kind = kind(&resource.api_version, &resource.kind);
    let label = json!({
        "key": resource.label.key, "operation": "=", "value": resource.label.value,
    });
    let event = json!({
        "namespace": "",
        "group": kind.group,
        "version": kind.version,
        "resource": kind.plural,
        "eventTypes": ["ADD", "UPDATE", "DELETE"],
        "filter": { "afterStart": true, "labels": [label] },
    });
    let account = Account::Events.name(platform);
    event_source(metadata, Some(&account), "resource", &json!({ EVENT: event }))
}

/// With its plural, as most kinds form it: the kind may come with the platform, so nobody can be asked.
pub(super) fn kind(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

#[cfg(test)]
pub(super) mod tests {
    use tiphys_model::{Label, Trigger, TriggerKind};

    use super::*;
    use crate::configure::objects::tests::platform;

    pub(in crate::configure) fn changed() -> Platform {
        let resource = ResourceTrigger {
            api_version: "cert-manager.io/v1".to_owned(),
            kind: "Certificate".to_owned(),
            label: Label::parse("team=a").unwrap(),
            scope: "stack:web".parse().unwrap(),
        };
        let trigger = Trigger {
            name: TriggerName::parse("certificates").unwrap(),
            kind: TriggerKind::Resource(resource),
        };
        Platform { triggers: vec![trigger], ..platform("prod") }
    }

    #[test]
    fn changes_of_labelled_objects_are_noted() {
        let platform = changed();
        let trigger = &platform.triggers[0];
        let resource = trigger.resource().unwrap();
        let [note, source, sensor] = objects(&platform, &trigger.name, resource);
        assert_eq!(note["metadata"]["annotations"], json!({ SCOPE_ANNOTATION: "stack:web" }));
        let event = &source["spec"]["resource"]["change"];
        assert_eq!(
            (&event["group"], &event["version"], &event["resource"]),
            (&json!("cert-manager.io"), &json!("v1"), &json!("certificates"))
        );
        let label = json!([{ "key": "team", "operation": "=", "value": "a" }]);
        assert_eq!(event["filter"]["labels"], label);
        let noted = &sensor["spec"]["triggers"][0]["template"]["k8s"]["source"]["resource"];
        assert_eq!(noted["metadata"]["name"], note["metadata"]["name"]);
        assert_eq!(sensor["spec"]["triggers"].as_array().unwrap().len(), 1, "and nothing else");
    }

    #[test]
    fn core_kinds_have_no_group() {
        let kind = kind("v1", "Secret");
        assert_eq!((&*kind.group, &*kind.version, &*kind.plural), ("", "v1", "secrets"));
    }
}
