//! What triggers need of Argo Events: a bus, and for each an EventSource, a Sensor, and a ConfigMap in
//! which the Sensor notes what it heard last.

use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tiphys_cluster::names::{
    self, Account, EVENT_BUS, EVENTS_NAMESPACE, MANAGED_BY, NOTED_EVENT, NOTED_TIME,
};
use tiphys_cluster::{Cause, RequestError, dynamic};
use tiphys_model::{Platform, Trigger, TriggerKind, TriggerName};

use super::{PushError, changes, push, triggers};
use crate::mounted::Mounted;
use crate::webhooks::VERSION;

/// Any but root, and nobody else's: the images of Argo Events and NATS have no users of their own.
const USER: u32 = 9731;

/// Everything in the namespace of events, but who may do what. Empty without triggers that need it.
pub(super) async fn objects(
    client: &Client,
    platform: &Platform,
    mounted: &Mounted,
) -> Result<Vec<Value>, PushError> {
    let mut objects = Vec::new();
    if !platform.triggers.iter().any(Trigger::needs_events) {
        return Ok(objects);
    }
    if !has_bus_of_others(client).await? {
        objects.push(event_bus());
    }
    for Trigger { name, kind } in &platform.triggers {
        match kind {
            TriggerKind::Push(push) => {
                objects.extend(push::objects(client, platform, (name, push), mounted).await?);
            }
            TriggerKind::Resource(resource) => {
                objects.extend(changes::objects(platform, name, resource));
            }
            TriggerKind::Schedule(_) => {}
        }
    }
    Ok(objects)
}

/// Somebody may have their own NATS, and say so with an EventBus of this name.
async fn has_bus_of_others(client: &Client) -> Result<bool, RequestError> {
    let buses = dynamic(client, Some(EVENTS_NAMESPACE), VERSION, "EventBus");
    let what = format!("cannot read the EventBus {EVENT_BUS} in {EVENTS_NAMESPACE}");
    match buses.get_opt(EVENT_BUS).await.map_err(RequestError::because(what)) {
        Ok(found) => Ok(found.is_some_and(|found| {
            found.labels().get(MANAGED_BY.0).map(String::as_str) != Some(MANAGED_BY.1)
        })),
        // Writing it will fail with the same error, and it is skipped with a note.
        Err(error) if matches!(error.cause(), Cause::Denied | Cause::NotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Three replicas, so that one of them can go without an event being lost.
fn event_bus() -> Value {
    let container = json!({ "securityContext": container_security() });
    json!({
        "apiVersion": VERSION,
        "kind": "EventBus",
        "metadata": {
            "name": EVENT_BUS, "namespace": EVENTS_NAMESPACE,
            "labels": { MANAGED_BY.0: MANAGED_BY.1 },
        },
        "spec": { "jetstream": {
            "version": "latest",
            "replicas": 3,
            "securityContext": pod_security(),
            "containerTemplate": container,
            "reloaderContainerTemplate": container,
            "metricsContainerTemplate": container,
        } },
    })
}

/// Of all objects of a trigger.
pub(super) fn metadata(platform: &Platform, trigger: &TriggerName) -> Value {
    let name = names::event_source(platform, trigger);
    triggers::metadata(platform, trigger, &name, EVENTS_NAMESPACE)
}

/// When it heard something last, for `status` and the deploy loop. The Sensor fills it.
pub(super) fn note(metadata: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })
}

/// An EventSource with events of one kind.
pub(super) fn event_source(
    metadata: &Value,
    account: Option<&str>,
    kind: &str,
    events: &Value,
) -> Value {
    json!({
        "apiVersion": VERSION,
        "kind": "EventSource",
        "metadata": metadata,
        "spec": { "eventBusName": EVENT_BUS, "template": template(account), kind: events },
    })
}

/// A Sensor that hears one event of the EventSource of its name.
pub(super) fn sensor(
    platform: &Platform,
    metadata: &Value,
    event: &str,
    triggers: &[Value],
) -> Value {
    json!({
        "apiVersion": VERSION,
        "kind": "Sensor",
        "metadata": metadata,
        "spec": {
            "eventBusName": EVENT_BUS,
            "template": template(Some(&Account::Events.name(platform))),
            "dependencies": [
                { "name": event, "eventSourceName": metadata["name"], "eventName": event },
            ],
            "triggers": triggers,
        },
    })
}

/// What a Sensor does: it notes when an event came, and which.
pub(super) fn noting(metadata: &Value, event: &str) -> Value {
    let note = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": metadata["name"], "namespace": EVENTS_NAMESPACE },
    });
    let mut noting = patch("note", &note);
    let from_event = |key: &str, to: &str| {
        let source = json!({ "dependencyName": event, "contextKey": key });
        json!({ "src": source, "dest": format!("data.{to}") })
    };
    noting["template"]["k8s"]["parameters"] =
        json!([from_event("time", NOTED_TIME), from_event("id", NOTED_EVENT)]);
    noting
}

/// What a Sensor does: it changes an object, and tries that again and again.
pub(super) fn patch(name: &str, object: &Value) -> Value {
    json!({
        "template": { "name": name, "k8s": {
            "operation": "patch",
            "patchStrategy": "application/merge-patch+json",
            "source": { "resource": object },
        } },
        "atLeastOnce": true,
        "retryStrategy": { "steps": 6, "duration": "1s", "factor": 2 },
    })
}

/// What a Sensor does when all tries have failed: it leaves a Kubernetes Event about itself.
pub(super) fn telling(metadata: &Value, reason: &str, message: &str) -> Value {
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "generateName": format!("{}-", metadata["name"].as_str().unwrap_or_default()),
            "namespace": EVENTS_NAMESPACE,
        },
        "involvedObject": {
            "apiVersion": VERSION, "kind": "Sensor",
            "name": metadata["name"], "namespace": EVENTS_NAMESPACE,
        },
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": { "component": "tiphys" },
    });
    json!({
        "template": { "name": "tell", "k8s": {
            "operation": "create",
            "source": { "resource": event },
        } },
        "atLeastOnce": true,
    })
}

/// Of the pod of an EventSource or a Sensor.
fn template(account: Option<&str>) -> Value {
    let mut template = json!({
        "securityContext": pod_security(),
        "container": {
            "securityContext": container_security(),
            "resources": { "requests": { "cpu": "10m", "memory": "64Mi" } },
        },
    });
    if let Some(account) = account {
        template["serviceAccountName"] = account.into();
    }
    template
}

fn pod_security() -> Value {
    json!({
        "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

fn container_security() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use tiphys_cluster::scripted::{Answer, Server};

    use super::*;
    use crate::configure::changes::tests::changed;
    use crate::configure::objects::tests::platform;
    use crate::configure::pushed;

    async fn kinds(server: &Server, platform: &Platform) -> Vec<String> {
        let mounted = Mounted { webhook_secret: Some("hunter2".into()), ..Mounted::default() };
        let objects = objects(&server.client(), platform, &mounted).await.unwrap();
        objects.iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
    }

    #[tokio::test]
    async fn a_bus_of_somebody_else_stays_as_it_is() {
        let server = Server::default();
        let with = kinds(&server, &pushed()).await;
        assert_eq!(with, ["EventBus", "Secret", "ConfigMap", "EventSource", "Sensor"]);
        let without_secret = kinds(&server, &changed()).await;
        assert_eq!(without_secret, ["EventBus", "ConfigMap", "EventSource", "Sensor"]);
        let path = "/apis/argoproj.io/v1alpha1/namespaces/tiphys-events/eventbus/tiphys";
        server.put(path, event_bus());
        assert_eq!(kinds(&server, &pushed()).await[0], "EventBus", "ours");
        let mut others = event_bus();
        others["metadata"]["labels"] = json!({});
        server.put(path, others);
        assert_eq!(kinds(&server, &pushed()).await[0], "Secret");
        server.next(Method::GET, "eventbus", Answer::UnknownKind);
        assert_eq!(kinds(&server, &pushed()).await[0], "EventBus", "not known");
        assert_eq!(kinds(&server, &platform("prod")).await, [""; 0], "nobody needs it");
    }

    #[tokio::test]
    async fn all_that_a_sensor_does_is_tried_again_and_told_if_it_fails() {
        let server = Server::default();
        for platform in [pushed(), changed()] {
            let mounted = Mounted { webhook_secret: Some("hunter2".into()), ..Mounted::default() };
            let objects = objects(&server.client(), &platform, &mounted).await.unwrap();
            let sensor = objects.last().unwrap();
            let triggers = sensor["spec"]["triggers"].as_array().unwrap();
            // Without `atLeastOnce`, retries and the dead-letter trigger do not count.
            assert!(triggers.iter().all(|one| one["atLeastOnce"] == true));
            assert!(triggers.iter().all(|one| one["retryStrategy"]["steps"] == 6));
            let first = &triggers[0]["dlqTrigger"]["template"]["k8s"]["source"]["resource"];
            assert_eq!((&first["kind"], &first["type"]), (&json!("Event"), &json!("Warning")));
        }
    }
}
