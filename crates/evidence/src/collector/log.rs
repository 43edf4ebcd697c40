//! What a pod has written.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::LogParams;
use kube::{Api, Client};
use serde::Deserialize;

use super::EvidenceCollector;
use super::tree::Node;
use tiphys_argocd::AppAddress;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_cluster::ObjectName;
use tiphys_cluster::excerpt::cut;

/// How much of it is kept.
const LINES: usize = 10;
/// How long it may take.
const LOG_TIMEOUT: Duration = Duration::from_secs(5);

/// The end of what a pod has written.
pub(super) async fn of(client: &Client, pod: &Node) -> Result<Vec<String>, String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.object.namespace);
    let name = &pod.object.name;
    let reading = async {
        let container = troubled_container(&pods.get(name).await?);
        let params =
            LogParams { container, tail_lines: i64::try_from(LINES).ok(), ..LogParams::default() };
        let now = pods.logs(name, &params).await?;
        if !now.trim().is_empty() {
            return Ok(now);
        }
        // It has just been started again: what it said before counts.
        let before = LogParams { previous: true, ..params };
        Ok::<_, kube::Error>(pods.logs(name, &before).await.unwrap_or_default())
    };
    match tokio::time::timeout(LOG_TIMEOUT, reading).await {
        Ok(Ok(text)) => Ok(text.lines().map(cut).collect()),
        Ok(Err(kube::Error::Api(status))) => Err(status.message.clone()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}

/// The same of a pod on another cluster. Argo CD's API server asks that cluster.
pub(super) async fn through_argocd(
    collector: &EvidenceCollector,
    app: &AppAddress,
    pod: &Node,
) -> Result<Vec<String>, CallError> {
    let live = collector.live(app, &pod.object, &pod.version).await?;
    let container = serde_json::from_value(live).ok().as_ref().and_then(troubled_container);
    let container = container.map_or(String::new(), |name| format!("&container={name}"));
    let ObjectName { namespace, name, .. } = &pod.object;
    let path = format!(
        "{}&namespace={namespace}&podName={name}{container}&tailLines={LINES}",
        collector.argocd.path(app, "/logs")
    );
    let now = contents(&collector.argocd.read_stream(&path, LOG_TIMEOUT).await?);
    if !now.is_empty() {
        return Ok(now);
    }
    let before = collector.argocd.read_stream(&format!("{path}&previous=true"), LOG_TIMEOUT).await;
    Ok(contents(&before.unwrap_or_default()))
}

/// What is said when that log cannot be read.
pub(super) fn unseen(cluster: &str, error: &CallError) -> String {
    let why = match error {
        CallError::Refused { refusal: Refusal::Forbidden, .. } => {
            "Argo CD does not allow this account to read logs (`logs, get`)".to_owned()
        }
        error => error.to_string(),
    };
    format!("it runs on the cluster {cluster}; {why}")
}

/// A line of a log. The last entry says that there are no more.
#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    content: String,
    #[serde(default)]
    last: bool,
}

fn contents(entries: &[Entry]) -> Vec<String> {
    let written = |entry: &Entry| !entry.last && !entry.content.trim().is_empty();
    entries.iter().filter(|entry| written(entry)).map(|entry| cut(&entry.content)).collect()
}

/// The container that is not ready: of several, the log of one has to be asked for by name.
fn troubled_container(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let is_over = |status: &&ContainerStatus| {
        let state = status.state.as_ref().and_then(|state| state.terminated.as_ref());
        state.is_some_and(|terminated| terminated.exit_code == 0)
    };
    let first = status.init_container_statuses.iter().flatten().filter(|c| !is_over(c));
    let all = first.filter(|c| !c.ready).chain(status.container_statuses.iter().flatten());
    let all: Vec<&ContainerStatus> = all.collect();
    let troubled = all.iter().find(|container| !container.ready).or(all.first());
    troubled.map(|container| container.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn container(status: &Value) -> Option<String> {
        troubled_container(&serde_json::from_value(json!({ "status": status })).unwrap())
    }

    #[test]
    fn the_log_is_that_of_the_container_that_is_not_ready() {
        let one = |name: &str, ready: bool| {
            json!({
                "name": name, "ready": ready, "image": "", "imageID": "", "restartCount": 0,
                "state": if ready { json!({}) } else { json!({ "waiting": {} }) },
            })
        };
        let mut done = one("migrate", false);
        done["state"] = json!({ "terminated": { "exitCode": 0 } });
        let mains = json!([one("proxy", true), one("app", false)]);
        assert_eq!(container(&json!({ "containerStatuses": mains })).as_deref(), Some("app"));
        let after = json!({ "initContainerStatuses": [done], "containerStatuses": mains });
        assert_eq!(container(&after).as_deref(), Some("app"));
        let during = json!({
            "initContainerStatuses": [one("migrate", false)], "containerStatuses": mains,
        });
        assert_eq!(container(&during).as_deref(), Some("migrate"));
        let well = json!({ "containerStatuses": [one("app", true)] });
        assert_eq!(container(&well).as_deref(), Some("app"));
        assert_eq!(container(&json!({})), None);
    }

    #[test]
    fn a_log_through_argo_cd_is_its_lines_without_the_end_mark() {
        let entries = json!([
            { "content": "panic: no disk", "podName": "db-0", "last": false },
            { "content": "" },
            { "content": "exit 2" },
            { "content": "", "last": true },
        ]);
        let entries: Vec<Entry> = serde_json::from_value(entries).unwrap();
        assert_eq!(contents(&entries), ["panic: no disk", "exit 2"]);
    }

    #[test]
    fn a_log_that_cannot_be_read_says_on_which_cluster_and_which_right_is_missing() {
        let denied = CallError::Refused {
            refusal: Refusal::Forbidden,
            message: "permission denied: logs, get, apps/db, sub: tiphys".to_owned(),
        };
        assert_eq!(
            unseen("edge", &denied),
            "it runs on the cluster edge; Argo CD does not allow this account to read logs (`logs, \
             get`)"
        );
        let late = CallError::Unanswered { message: "no answer within 5 s".to_owned() };
        assert_eq!(unseen("edge", &late), "it runs on the cluster edge; no answer within 5 s");
    }
}
