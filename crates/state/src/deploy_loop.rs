//! What is kept of deployments without a person: a ConfigMap for each platform that may be deployed so,
//! which `configure` makes. People pause and resume there, and the deploy loop notes its attempts and
//! what it sees.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tiphys_assess::deploy_loop::commit::Told;
use tiphys_assess::deploy_loop::validation::Validated;
use tiphys_assess::deploy_loop::{Attempts, Pause, SeenByLoop};
use tiphys_cluster::names::{
    self, ARGOCD_LABEL, FIELD_MANAGER, LOOP_LABEL, NAMESPACE, PLATFORM_LABEL, VALIDATES_LABEL,
};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::PlatformName;

const PAUSE: &str = "pause";
const ATTEMPTS: &str = "attempts";
const SEEN: &str = "seen";
const TOLD: &str = "told";
const VALIDATED: &str = "validated";

/// Where it is kept.
#[derive(Clone)]
pub struct LoopStore {
    maps: Api<ConfigMap>,
}

/// What is kept of a platform. What cannot be read counts as absent: the loop writes it anew.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopState {
    pub platform: PlatformName,
    pub argocd: String,
    /// The deploy loop looks after it. Otherwise only its schedules do.
    pub is_watched: bool,
    /// Triggers watch objects for it.
    pub validates: bool,
    pub pause: Option<Pause>,
    pub attempts: Option<Attempts>,
    pub seen: Option<SeenByLoop>,
    /// What the Git server was told of commits.
    pub told: Option<Told>,
    /// The last validation of each trigger that watches objects.
    pub validated: BTreeMap<String, Validated>,
}

impl LoopStore {
    #[must_use]
    pub fn new(client: &Client) -> Self {
        LoopStore { maps: Api::namespaced(client.clone(), NAMESPACE) }
    }

    /// All platforms of the cluster that may be deployed automatically. Where nobody has configured
    /// one, nobody has given the right to look either.
    pub async fn list(&self) -> Result<Vec<LoopState>, RequestError> {
        let labelled = ListParams::default().labels(LOOP_LABEL);
        let listed = self.maps.list(&labelled).await;
        match listed.map_err(RequestError::because("cannot list what the deploy loop keeps")) {
            Ok(listed) => Ok(listed.items.iter().filter_map(LoopState::of).collect()),
            Err(error) if error.cause() == Cause::Denied => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Of one platform; `None`: only people deploy it.
    pub async fn get(
        &self,
        argocd: &str,
        platform: &PlatformName,
    ) -> Result<Option<LoopState>, RequestError> {
        let name = names::deploy_loop(argocd, platform);
        let what = format!("cannot read the ConfigMap {name} in {NAMESPACE}");
        let found = self.maps.get_opt(&name).await.map_err(RequestError::because(what))?;
        Ok(found.as_ref().and_then(LoopState::of))
    }

    /// Pauses, or resumes with `None`.
    pub async fn set_pause(
        &self,
        argocd: &str,
        platform: &PlatformName,
        pause: Option<&Pause>,
    ) -> Result<(), RequestError> {
        self.set(argocd, platform, PAUSE, pause).await
    }

    pub async fn note_attempts(
        &self,
        argocd: &str,
        platform: &PlatformName,
        attempts: &Attempts,
    ) -> Result<(), RequestError> {
        self.set(argocd, platform, ATTEMPTS, Some(attempts)).await
    }

    pub async fn note_seen(
        &self,
        argocd: &str,
        platform: &PlatformName,
        seen: &SeenByLoop,
    ) -> Result<(), RequestError> {
        self.set(argocd, platform, SEEN, Some(seen)).await
    }

    pub async fn note_told(
        &self,
        argocd: &str,
        platform: &PlatformName,
        told: &Told,
    ) -> Result<(), RequestError> {
        self.set(argocd, platform, TOLD, Some(told)).await
    }

    pub async fn note_validated(
        &self,
        argocd: &str,
        platform: &PlatformName,
        validated: &BTreeMap<String, Validated>,
    ) -> Result<(), RequestError> {
        self.set(argocd, platform, VALIDATED, Some(validated)).await
    }

    async fn set(
        &self,
        argocd: &str,
        platform: &PlatformName,
        key: &str,
        value: Option<&impl Serialize>,
    ) -> Result<(), RequestError> {
        let name = names::deploy_loop(argocd, platform);
        let text = value.map(serde_json::to_string).transpose();
        let what = format!("cannot write the ConfigMap {name} in {NAMESPACE}");
        let unwritable = |error| RequestError::because(&what)(kube::Error::SerdeError(error));
        // A merge patch removes what is null.
        let value = text.map_err(unwritable)?.map_or(Value::Null, Value::String);
        let patch = Patch::Merge(json!({ "data": { key: value } }));
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let written = self.maps.patch(&name, &params, &patch).await;
        written.map(|_| ()).map_err(RequestError::because(&what))
    }
}

impl LoopState {
    /// One that nobody has labelled as `configure` does is none of ours.
    fn of(map: &ConfigMap) -> Option<Self> {
        let platform = PlatformName::parse(map.labels().get(PLATFORM_LABEL)?).ok()?;
        let argocd = map.labels().get(ARGOCD_LABEL)?.clone();
        if names::deploy_loop(&argocd, &platform) != map.name_any() {
            return None;
        }
        let data = map.data.as_ref();
        Some(LoopState {
            is_watched: map.labels().contains_key(LOOP_LABEL),
            validates: map.labels().contains_key(VALIDATES_LABEL),
            pause: read(data, PAUSE),
            attempts: read(data, ATTEMPTS),
            seen: read(data, SEEN),
            told: read(data, TOLD),
            validated: read(data, VALIDATED).unwrap_or_default(),
            platform,
            argocd,
        })
    }
}

fn read<T: DeserializeOwned>(data: Option<&BTreeMap<String, String>>, key: &str) -> Option<T> {
    serde_json::from_str(data?.get(key)?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tiphys_cluster::scripted::Server;

    use super::*;

    const PATH: &str = "/api/v1/namespaces/tiphys/configmaps/tiphys.argocd.prod.deploy-loop";

    fn map(name: &str, data: &Value) -> ConfigMap {
        let labels = json!({ PLATFORM_LABEL: "prod", ARGOCD_LABEL: "argocd", LOOP_LABEL: "true" });
        let metadata = json!({ "name": name, "labels": labels });
        serde_json::from_value(json!({ "metadata": metadata, "data": data })).unwrap()
    }

    #[test]
    fn what_cannot_be_read_counts_as_absent() {
        let name = "tiphys.argocd.prod.deploy-loop";
        let at = "2026-11-19T12:00:00Z";
        let pause = format!(r#"{{"by":"alice","at":"{at}","reason":"audit"}}"#);
        let state =
            LoopState::of(&map(name, &json!({ "pause": pause, "attempts": "{}" }))).unwrap();
        assert_eq!((&*state.argocd, state.platform.as_str()), ("argocd", "prod"));
        assert_eq!((state.attempts, state.seen), (None, None));
        let expected =
            Pause { by: "alice".into(), at: at.parse().unwrap(), reason: Some("audit".into()) };
        assert_eq!(state.pause, Some(expected));
        assert_eq!(LoopState::of(&map("somebody-elses", &json!({}))), None);
    }

    #[tokio::test]
    async fn a_pause_is_kept_until_it_is_taken_back() {
        let server = Server::default();
        server.put(
            PATH,
            serde_json::to_value(map("tiphys.argocd.prod.deploy-loop", &json!({}))).unwrap(),
        );
        let store = LoopStore::new(&server.client());
        let platform = PlatformName::parse("prod").unwrap();
        let pause = Pause { by: "alice".into(), at: Timestamp::UNIX_EPOCH, reason: None };
        store.set_pause("argocd", &platform, Some(&pause)).await.unwrap();
        let read = async || store.get("argocd", &platform).await.unwrap().unwrap().pause;
        assert_eq!(read().await, Some(pause));
        store.set_pause("argocd", &platform, None).await.unwrap();
        assert_eq!(read().await, None);
        let other = PlatformName::parse("other").unwrap();
        assert_eq!(store.get("argocd", &other).await.unwrap(), None);
    }
}
