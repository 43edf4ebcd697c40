//! Changes that have platforms validated, as Sensors note them.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tiphys_cluster::names::{
    ARGOCD_LABEL, EVENTS_NAMESPACE, NOTED_EVENT, NOTED_TIME, PLATFORM_LABEL, SCOPE_ANNOTATION,
    TRIGGER_LABEL, VALIDATES_LABEL,
};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{PlatformName, Scope};

/// The last change that a trigger has told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedChange {
    pub platform: PlatformName,
    pub argocd: String,
    pub trigger: String,
    /// What is validated.
    pub scope: Scope,
    /// When it was, and by which name Argo Events knows it; nothing if there was none yet.
    pub last: Option<(String, String)>,
}

/// Of all platforms. Where nobody has configured such a trigger, nobody has given the right to look either.
pub async fn noted(client: &Client) -> Result<Vec<NotedChange>, RequestError> {
    let notes: Api<ConfigMap> = Api::namespaced(client.clone(), EVENTS_NAMESPACE);
    let listed = notes.list(&ListParams::default().labels(VALIDATES_LABEL)).await;
    match listed.map_err(RequestError::because("cannot list which objects have changed")) {
        Ok(listed) => Ok(listed.iter().filter_map(NotedChange::of).collect()),
        Err(error) if error.cause() == Cause::Denied => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl NotedChange {
    /// One that `configure` has not made is none of ours.
    fn of(note: &ConfigMap) -> Option<Self> {
        let label = |key: &str| note.labels().get(key);
        let read = |key: &str| note.data.as_ref()?.get(key).cloned();
        Some(NotedChange {
            platform: PlatformName::parse(label(PLATFORM_LABEL)?).ok()?,
            argocd: label(ARGOCD_LABEL)?.clone(),
            trigger: label(TRIGGER_LABEL)?.clone(),
            scope: note.annotations().get(SCOPE_ANNOTATION)?.parse().ok()?,
            last: read(NOTED_TIME).zip(read(NOTED_EVENT)),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_cluster::scripted::{Answer, Server};

    use super::*;

    #[tokio::test]
    async fn notes_are_read_as_sensors_write_them() {
        let server = Server::default();
        let client = server.client();
        let path = "/api/v1/namespaces/tiphys-events/configmaps";
        let labels = json!({
            PLATFORM_LABEL: "prod", ARGOCD_LABEL: "argocd", TRIGGER_LABEL: "certificates",
            VALIDATES_LABEL: "true",
        });
        let metadata = json!({
            "labels": labels, "annotations": { SCOPE_ANNOTATION: "stack:web" },
        });
        server.put(&format!("{path}/a"), json!({ "metadata": metadata }));
        let [never] = &noted(&client).await.unwrap()[..] else { panic!("there is one") };
        assert_eq!((&*never.trigger, &never.last), ("certificates", &None));
        let data = json!({ "last": "2026-11-19T03:00:00Z", "call": "0a1b" });
        server.put(&format!("{path}/a"), json!({ "metadata": metadata, "data": data }));
        let [changed] = &noted(&client).await.unwrap()[..] else { panic!("there is one") };
        let (time, event) = changed.last.as_ref().unwrap();
        assert_eq!((&**time, &**event), ("2026-11-19T03:00:00Z", "0a1b"));
        server.put(&format!("{path}/a"), json!({ "metadata": { "labels": labels } }));
        assert_eq!(noted(&client).await.unwrap(), [], "somebody else's");
        server.next_where(|asked| asked.path.contains("configmaps"), Answer::refused(403, "no"));
        assert_eq!(noted(&client).await.unwrap(), []);
    }
}
