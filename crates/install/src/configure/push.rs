//! The webhooks of a platform, for each push trigger: an EventSource that takes the calls of a Git server
//! and checks who calls, and a Sensor that has Argo CD look at Git. What follows is the deploy loop's.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tiphys_argocd::application::REFRESH;
use tiphys_cluster::names::{self, Account, EVENT_BUS, EVENTS_NAMESPACE, MANAGED_BY};
use tiphys_cluster::{Cause, RequestError, dynamic, encoded};
use tiphys_model::{Exit, Explain, Explanation, Platform, PushProvider, Trigger, TriggerName};

use super::triggers;
use crate::mounted::Mounted;
use crate::webhooks::{CALL, EVENT, LAST, PORT, SECRET_KEY, VERSION, event_kind};

/// Any but root, and nobody else's: the images of Argo Events and NATS have no users of their own.
const USER: u32 = 9731;

/// Why the webhooks cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum PushError {
    Request(#[from] RequestError),
    /// Anybody could call.
    NoSecret {
        trigger: TriggerName,
    },
}

impl Explain for PushError {
    fn explain(&self) -> Explanation {
        match self {
            PushError::Request(error) => error.explain(),
            PushError::NoSecret { trigger } => Explanation::new(
                Exit::Configuration,
                format!("the trigger `{trigger}` has no secret"),
                "without one, anybody could call its webhook",
            )
            .hint(
                "put the secret that the Git server signs with into the file `argocd/webhook-secret` of \
                 the credentials, and pass `--credentials DIR`",
            ),
        }
    }
}

/// Everything in the namespace of events, but who may do what. Empty without push triggers.
pub(super) async fn objects(
    client: &Client,
    platform: &Platform,
    mounted: &Mounted,
) -> Result<Vec<Value>, PushError> {
    let mut objects = Vec::new();
    let pushes: Vec<&Trigger> = pushes(platform).collect();
    if pushes.is_empty() {
        return Ok(objects);
    }
    if !has_bus_of_others(client).await? {
        objects.push(event_bus());
    }
    for trigger in pushes {
        match &mounted.webhook_secret {
            Some(value) => objects.push(secret(platform, &trigger.name, value)),
            None if has_secret(client, platform, &trigger.name).await? => {}
            None => return Err(PushError::NoSecret { trigger: trigger.name.clone() }),
        }
        objects.extend(of_trigger(platform, trigger).into_iter().flatten());
    }
    Ok(objects)
}

fn pushes(platform: &Platform) -> impl Iterator<Item = &Trigger> {
    platform.triggers.iter().filter(|trigger| trigger.push().is_some())
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

async fn has_secret(
    client: &Client,
    platform: &Platform,
    trigger: &TriggerName,
) -> Result<bool, RequestError> {
    let name = names::event_source(platform, trigger);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), EVENTS_NAMESPACE);
    let what = format!("cannot read the Secret {name} in {EVENTS_NAMESPACE}");
    let found = secrets.get_metadata_opt(&name).await.map_err(RequestError::because(what))?;
    Ok(found.is_some())
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

fn secret(platform: &Platform, trigger: &TriggerName, value: &SecretString) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(platform, trigger),
        "data": { SECRET_KEY: encoded(value.expose_secret()) },
    })
}

fn of_trigger(platform: &Platform, trigger: &Trigger) -> Option<[Value; 3]> {
    let provider = trigger.push()?.provider;
    let metadata = metadata(platform, &trigger.name);
    // When it heard something last, for `status`. The Sensor fills it.
    let note = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    Some([note, event_source(platform, &metadata, provider), sensor(platform, &metadata)])
}

fn metadata(platform: &Platform, trigger: &TriggerName) -> Value {
    let name = names::event_source(platform, trigger);
    triggers::metadata(platform, trigger, &name, EVENTS_NAMESPACE)
}

fn event_source(platform: &Platform, metadata: &Value, provider: PushProvider) -> Value {
    let secret = json!({ "name": metadata["name"], "key": SECRET_KEY });
    let address =
        json!({ "port": PORT.to_string(), "endpoint": format!("/{EVENT}"), "method": "POST" });
    let event = match provider {
        PushProvider::GitHub => {
            // Argo Events wants to know it, and uses it only where it makes the webhook itself.
            let (owner, repository) = repository(platform);
            let repositories = json!([{ "owner": owner, "names": [repository] }]);
            json!({
                "repositories": repositories, "webhook": address, "webhookSecret": secret,
                "events": ["push"], "contentType": "json", "active": true,
            })
        }
        PushProvider::Generic => {
            let mut event = address;
            event["authSecret"] = secret;
            event
        }
    };
    json!({
        "apiVersion": VERSION,
        "kind": "EventSource",
        "metadata": metadata,
        "spec": {
            "eventBusName": EVENT_BUS,
            "template": template(None),
            "service": { "ports": [{ "name": "http", "port": PORT, "targetPort": PORT }] },
            event_kind(provider): { EVENT: event },
        },
    })
}

/// The last two parts of the repository's address.
fn repository(platform: &Platform) -> (&str, &str) {
    let url = platform.source.as_ref().map_or("", |source| source.repo_url.as_str());
    let url = url.trim_end_matches('/').trim_end_matches(".git");
    let mut parts = url.rsplit(['/', ':']);
    let repository = parts.next().filter(|part| !part.is_empty()).unwrap_or("any");
    (parts.next().filter(|part| !part.is_empty()).unwrap_or("any"), repository)
}

/// An event that comes twice is one refresh more, which changes nothing. One that cannot be worked on is
/// told, and costs no more than Argo CD's next look.
fn sensor(platform: &Platform, metadata: &Value) -> Value {
    let root = names::root_application(platform);
    let refresh = json!({
        "apiVersion": VERSION,
        "kind": "Application",
        "metadata": {
            "name": root, "namespace": platform.argocd.namespace,
            "annotations": { REFRESH: "normal" },
        },
    });
    let note = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": metadata["name"], "namespace": EVENTS_NAMESPACE },
    });
    let mut note = patch("note", &note);
    let from_event = |key: &str, to: &str| {
        let source = json!({ "dependencyName": EVENT, "contextKey": key });
        json!({ "src": source, "dest": format!("data.{to}") })
    };
    note["template"]["k8s"]["parameters"] =
        json!([from_event("time", LAST), from_event("id", CALL)]);
    let mut refresh = patch("refresh", &refresh);
    refresh["dlqTrigger"] = json!({
        "template": { "name": "tell", "k8s": {
            "operation": "create",
            "source": { "resource": could_not_refresh(metadata, &root) },
        } },
        "atLeastOnce": true,
    });
    let account = Account::Events.name(platform);
    json!({
        "apiVersion": VERSION,
        "kind": "Sensor",
        "metadata": metadata,
        "spec": {
            "eventBusName": EVENT_BUS,
            "template": template(Some(&account)),
            "dependencies": [
                { "name": EVENT, "eventSourceName": metadata["name"], "eventName": EVENT },
            ],
            "triggers": [refresh, note],
        },
    })
}

fn patch(name: &str, object: &Value) -> Value {
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

fn could_not_refresh(metadata: &Value, root: &str) -> Value {
    json!({
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
        "reason": "TiphysRefreshFailed",
        "message": format!(
            "cannot request a refresh of {root}; Argo CD's next poll finds the commit"
        ),
        "source": { "component": "tiphys" },
    })
}

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
pub(super) mod tests {
    use http::Method;
    use tiphys_cluster::scripted::{Answer, Server};
    use tiphys_model::{PushTrigger, TriggerKind};

    use super::*;
    use crate::configure::objects::tests::platform;

    pub(crate) fn pushed() -> Platform {
        let trigger = Trigger {
            name: TriggerName::parse("news").unwrap(),
            kind: TriggerKind::Push(PushTrigger { provider: PushProvider::GitHub }),
        };
        Platform { triggers: vec![trigger], ..platform("prod") }
    }

    pub(crate) fn objects_of_webhook(platform: &Platform) -> [Value; 3] {
        of_trigger(platform, &platform.triggers[0]).expect("a push trigger")
    }

    const SECRET: &str = "hunter2";

    fn with_secret() -> Mounted {
        Mounted { webhook_secret: Some(SECRET.into()), ..Mounted::default() }
    }

    async fn kinds(server: &Server, platform: &Platform, mounted: &Mounted) -> Vec<String> {
        let objects = objects(&server.client(), platform, mounted).await.unwrap();
        objects.iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
    }

    #[tokio::test]
    async fn a_bus_of_somebody_else_stays_as_it_is() {
        let server = Server::default();
        let with = kinds(&server, &pushed(), &with_secret()).await;
        assert_eq!(with, ["EventBus", "Secret", "ConfigMap", "EventSource", "Sensor"]);
        let path = "/apis/argoproj.io/v1alpha1/namespaces/tiphys-events/eventbus/tiphys";
        server.put(path, event_bus());
        assert_eq!(kinds(&server, &pushed(), &with_secret()).await[0], "EventBus", "ours");
        let mut others = event_bus();
        others["metadata"]["labels"] = json!({});
        server.put(path, others);
        assert_eq!(kinds(&server, &pushed(), &with_secret()).await[0], "Secret");
        server.next(Method::GET, "eventbus", Answer::UnknownKind);
        assert_eq!(kinds(&server, &pushed(), &with_secret()).await[0], "EventBus", "not known");
        let nothing = kinds(&server, &platform("prod"), &with_secret()).await;
        assert_eq!(nothing, [""; 0], "nobody pushes");
    }

    #[tokio::test]
    async fn without_a_secret_there_is_no_webhook() {
        let server = Server::default();
        let refused = objects(&server.client(), &pushed(), &Mounted::default()).await.unwrap_err();
        assert!(matches!(&refused, PushError::NoSecret { trigger } if trigger.as_str() == "news"));
        let secret = secret(&pushed(), &pushed().triggers[0].name, &SECRET.into());
        let name = secret["metadata"]["name"].as_str().unwrap().to_owned();
        server.put(&format!("/api/v1/namespaces/tiphys-events/secrets/{name}"), secret);
        let kinds = kinds(&server, &pushed(), &Mounted::default()).await;
        assert_eq!(kinds, ["EventBus", "ConfigMap", "EventSource", "Sensor"], "it stays as it is");
    }

    #[test]
    fn each_provider_checks_who_calls() {
        let metadata = json!({ "name": "prod-news-01234" });
        let of = |provider| event_source(&platform("prod"), &metadata, provider)["spec"].clone();
        let expected = json!({ "name": "prod-news-01234", "key": "secret" });
        assert_eq!(of(PushProvider::GitHub)["github"]["push"]["webhookSecret"], expected);
        assert_eq!(of(PushProvider::Generic)["webhook"]["push"]["authSecret"], expected);
    }

    #[test]
    fn the_repository_is_named_as_argo_events_wants_it() {
        let of = |url: &str| {
            let mut platform = platform("prod");
            platform.source.as_mut().unwrap().repo_url = url.to_owned();
            let (owner, name) = repository(&platform);
            format!("{owner} {name}")
        };
        assert_eq!(of("https://git.example/team/platform.git"), "team platform");
        assert_eq!(of("git@git.example:team/platform"), "team platform");
        assert_eq!(of("platform"), "any platform");
    }

    #[test]
    fn a_sensor_asks_for_a_refresh_and_nothing_else() {
        let sensor = sensor(&pushed(), &metadata(&pushed(), &pushed().triggers[0].name));
        let refresh = &sensor["spec"]["triggers"][0];
        let object = &refresh["template"]["k8s"]["source"]["resource"];
        assert_eq!(object.get("spec"), None);
        assert_eq!(object["metadata"]["annotations"], json!({ REFRESH: "normal" }));
        for trigger in sensor["spec"]["triggers"].as_array().unwrap() {
            // Without it, retries and the dead-letter trigger do not count.
            assert_eq!(trigger["atLeastOnce"], true);
        }
    }
}
