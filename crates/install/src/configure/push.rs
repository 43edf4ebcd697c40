//! The webhooks of a platform, for each push trigger: an EventSource that takes the calls of a Git server
//! and checks who calls, and a Sensor that has Argo CD look at Git. What follows is the deploy loop's.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tiphys_argocd::application::REFRESH;
use tiphys_cluster::names::{self, EVENTS_NAMESPACE};
use tiphys_cluster::{RequestError, encoded};
use tiphys_model::{Exit, Explain, Explanation, Platform, PushProvider, PushTrigger, TriggerName};

use super::events::{event_source, metadata, note, noting, patch, sensor, telling};
use crate::mounted::Mounted;
use crate::webhooks::{EVENT, PORT, SECRET_KEY, VERSION, event_kind};

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

/// All that a webhook needs, with its secret, which stays as it is without credentials.
pub(super) async fn objects(
    client: &Client,
    platform: &Platform,
    (trigger, push): (&TriggerName, &PushTrigger),
    mounted: &Mounted,
) -> Result<Vec<Value>, PushError> {
    let mut objects = Vec::new();
    match &mounted.webhook_secret {
        Some(value) => objects.push(secret(platform, trigger, value)),
        None if has_secret(client, platform, trigger).await? => {}
        None => return Err(PushError::NoSecret { trigger: trigger.clone() }),
    }
    objects.extend(of_trigger(platform, trigger, push));
    Ok(objects)
}

fn of_trigger(platform: &Platform, trigger: &TriggerName, push: &PushTrigger) -> [Value; 3] {
    let metadata = metadata(platform, trigger);
    let source = listening(platform, &metadata, push.provider);
    [note(&metadata), source, refreshing(platform, &metadata)]
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

fn secret(platform: &Platform, trigger: &TriggerName, value: &SecretString) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(platform, trigger),
        "data": { SECRET_KEY: encoded(value.expose_secret()) },
    })
}

fn listening(platform: &Platform, metadata: &Value, provider: PushProvider) -> Value {
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
    let mut source = event_source(metadata, None, event_kind(provider), &json!({ EVENT: event }));
    source["spec"]["service"] =
        json!({ "ports": [{ "name": "http", "port": PORT, "targetPort": PORT }] });
    source
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
fn refreshing(platform: &Platform, metadata: &Value) -> Value {
    let root = names::root_application(platform);
    let refresh = json!({
        "apiVersion": VERSION,
        "kind": "Application",
        "metadata": {
            "name": root, "namespace": platform.argocd.namespace,
            "annotations": { REFRESH: "normal" },
        },
    });
    let mut refresh = patch("refresh", &refresh);
    let why = format!("cannot request a refresh of {root}; Argo CD's next poll finds the commit");
    refresh["dlqTrigger"] = telling(metadata, "TiphysRefreshFailed", &why);
    sensor(platform, metadata, EVENT, &[refresh, noting(metadata, EVENT)])
}

#[cfg(test)]
pub(super) mod tests {
    use tiphys_cluster::scripted::Server;
    use tiphys_model::{Trigger, TriggerKind};

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
        let trigger = &platform.triggers[0];
        of_trigger(platform, &trigger.name, trigger.push().expect("a push trigger"))
    }

    #[tokio::test]
    async fn without_a_secret_there_is_no_webhook() {
        let (server, platform) = (Server::default(), pushed());
        let trigger = &platform.triggers[0];
        let of_trigger = (&trigger.name, trigger.push().unwrap());
        let objects =
            async || objects(&server.client(), &platform, of_trigger, &Mounted::default()).await;
        let refused = objects().await.unwrap_err();
        assert!(matches!(&refused, PushError::NoSecret { trigger } if trigger.as_str() == "news"));
        let secret = secret(&platform, &trigger.name, &"hunter2".into());
        let name = secret["metadata"]["name"].as_str().unwrap().to_owned();
        server.put(&format!("/api/v1/namespaces/tiphys-events/secrets/{name}"), secret);
        let objects = objects().await.unwrap();
        let kinds: Vec<&str> = objects.iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["ConfigMap", "EventSource", "Sensor"], "it stays as it is");
    }

    #[test]
    fn each_provider_checks_who_calls() {
        let metadata = json!({ "name": "prod-news-01234" });
        let of = |provider| listening(&platform("prod"), &metadata, provider)["spec"].clone();
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
        let sensor = refreshing(&pushed(), &metadata(&pushed(), &pushed().triggers[0].name));
        let refresh = &sensor["spec"]["triggers"][0];
        let object = &refresh["template"]["k8s"]["source"]["resource"];
        assert_eq!(object.get("spec"), None);
        assert_eq!(object["metadata"]["annotations"], json!({ REFRESH: "normal" }));
    }
}
