//! The webhooks of push triggers, as the cluster has them.

pub mod trial;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use tiphys_cluster::names::{
    self, ARGOCD_LABEL, EVENTS_NAMESPACE, NOTED_EVENT, NOTED_TIME, PLATFORM_LABEL, TRIGGER_LABEL,
};
use tiphys_cluster::{Cause, RequestError, dynamic};
use tiphys_model::{PlatformName, PushProvider};

/// Of all that Argo Events defines.
pub(crate) const VERSION: &str = "argoproj.io/v1alpha1";
/// Where an EventSource listens.
pub(crate) const PORT: u16 = 12_000;
/// The one event of an EventSource. It is also the path of its address.
pub(crate) const EVENT: &str = "push";
pub(crate) const SECRET_KEY: &str = "secret";

/// A webhook that `configure` has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Of its trigger.
    pub name: String,
    /// Of its objects.
    object: String,
    pub provider: PushProvider,
    pub created: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// Which call that was.
    call: Option<String>,
}

impl Webhook {
    /// Inside the cluster.
    #[must_use]
    pub fn address(&self) -> String {
        let service = names::webhook(&self.object);
        format!("http://{service}.{EVENTS_NAMESPACE}:{PORT}/{EVENT}")
    }

    /// What somebody has changed into something else is not shown as ours.
    fn of(object: &DynamicObject) -> Option<Self> {
        let has = |kind: &str| object.data.pointer(&format!("/spec/{kind}/{EVENT}")).is_some();
        let provider = PushProvider::ALL.into_iter().find(|one| has(event_kind(*one)))?;
        let created = object.metadata.creation_timestamp.as_ref();
        Some(Webhook {
            name: object.labels().get(TRIGGER_LABEL)?.clone(),
            object: object.name_any(),
            provider,
            created: created.map(|time| time.0),
            last: None,
            call: None,
        })
    }

    fn heard(&mut self, note: Option<&ConfigMap>) {
        let data = note.and_then(|note| note.data.as_ref());
        let read = |key: &str| data.and_then(|data| data.get(key)).cloned();
        self.last = read(NOTED_TIME).and_then(|time| time.parse().ok());
        self.call = read(NOTED_EVENT);
    }
}

/// What Argo Events calls a source of such events.
pub(crate) fn event_kind(provider: PushProvider) -> &'static str {
    match provider {
        PushProvider::GitHub => "github",
        PushProvider::Generic => "webhook",
    }
}

/// All of a platform, by name. Where nobody knows EventSources there are none.
pub async fn webhooks(
    client: &Client,
    argocd: &str,
    platform: &PlatformName,
) -> Result<Vec<Webhook>, RequestError> {
    let labels = format!("{TRIGGER_LABEL},{PLATFORM_LABEL}={platform},{ARGOCD_LABEL}={argocd}");
    let labelled = ListParams::default().labels(&labels);
    let sources = dynamic(client, Some(EVENTS_NAMESPACE), VERSION, "EventSource");
    let what = "cannot list the webhooks";
    let mut found: Vec<Webhook> =
        match sources.list(&labelled).await.map_err(RequestError::because(what)) {
            Ok(listed) => listed.items.iter().filter_map(Webhook::of).collect(),
            Err(error) if error.cause() == Cause::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
    if found.is_empty() {
        return Ok(found);
    }
    let notes = notes(client).list(&labelled).await.map_err(RequestError::because(what))?;
    for webhook in &mut found {
        webhook.heard(notes.iter().find(|note| note.name_any() == webhook.object));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn notes(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), EVENTS_NAMESPACE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tiphys_cluster::scripted::Server;

    use super::*;
    use crate::configure::pushed;

    #[tokio::test]
    async fn they_are_read_as_configure_writes_them() {
        let server = Server::default();
        let platform = pushed();
        let read = async || webhooks(&server.client(), "argocd", &platform.name).await.unwrap();
        assert_eq!(read().await, []);
        let [mut note, source, _] = crate::configure::objects_of_webhook(&platform);
        let name = source["metadata"]["name"].as_str().unwrap().to_owned();
        let put = |kind: &str, object: &Value| {
            server.put(&format!("/{kind}/{name}"), object.clone());
        };
        put("apis/argoproj.io/v1alpha1/namespaces/tiphys-events/eventsources", &source);
        put("api/v1/namespaces/tiphys-events/configmaps", &note);
        let [never] = &read().await[..] else { panic!("there is one") };
        assert_eq!(
            (&*never.name, never.provider, never.last),
            ("news", PushProvider::GitHub, None)
        );
        let address = format!("http://{name}-eventsource-svc.tiphys-events:12000/push");
        assert_eq!(never.address(), address);
        note["data"] = json!({ "last": "2026-11-19T03:00:00Z", "call": "0a1b" });
        put("api/v1/namespaces/tiphys-events/configmaps", &note);
        let [called] = &read().await[..] else { panic!("there is one") };
        assert_eq!(called.last.unwrap().to_string(), "2026-11-19T03:00:00Z");
        assert_eq!(called.call.as_deref(), Some("0a1b"));
    }
}
