//! The two objects of Argo Workflows that a run with nodes follows.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tiphys_cluster::names::NAMESPACE;
use tiphys_cluster::{Cause, RequestError, lasting_watch};

use super::board::NodeId;
use super::compile::PLUGIN;
use crate::workflow::{COMPLETED, kind};

/// News, or a right that is missing. All other trouble passes.
pub(super) type News<T> = BoxStream<'static, Result<T, RequestError>>;

/// Whether a workflow has ended or is gone, whenever there is news of it. Of a large one, only the
/// labels are read.
pub(super) fn ended(client: &Client, name: &str) -> News<bool> {
    let labels: Api<PartialObjectMeta<DynamicObject>> =
        Api::namespaced_with(client.clone(), NAMESPACE, &kind("Workflow"));
    let fields = format!("metadata.name={name}");
    let events = lasting_watch(move |config| watcher(labels.clone(), config.fields(&fields)));
    let completed = |workflow: &PartialObjectMeta<DynamicObject>| {
        workflow.labels().get(COMPLETED).is_some_and(|completed| completed == "true")
    };
    news(events, completed, true)
}

/// The nodes that Argo Workflows waits for, with their apps, whenever they change.
pub(super) fn open_nodes(client: &Client, name: &str) -> News<BTreeMap<NodeId, String>> {
    let (sets, fields) = (task_sets(client), format!("metadata.name={name}"));
    let events = lasting_watch(move |config| watcher(sets.clone(), config.fields(&fields)));
    news(events, |set: &DynamicObject| open_tasks(&set.data), BTreeMap::new())
}

pub(super) fn task_sets(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), NAMESPACE, &kind("WorkflowTaskSet"))
}

fn open_tasks(set: &Value) -> BTreeMap<NodeId, String> {
    let tasks = set["spec"]["tasks"].as_object().into_iter().flatten();
    let task = |(node, task): (&NodeId, &Value)| {
        let app = task["plugin"][PLUGIN]["app"].as_str()?;
        Some((node.clone(), app.to_owned()))
    };
    tasks.filter_map(task).collect()
}

/// What is read of an object each time, or `gone` where there is none.
fn news<K: 'static, T: Clone + Send + 'static>(
    events: BoxStream<'static, Result<watcher::Event<K>, watcher::Error>>,
    read: impl Fn(&K) -> T + Send + 'static,
    gone: T,
) -> News<T> {
    let mut listed = false;
    let digest = move |event| match event {
        Ok(watcher::Event::Init) => {
            listed = false;
            None
        }
        Ok(watcher::Event::InitApply(object)) => {
            listed = true;
            Some(Ok(read(&object)))
        }
        Ok(watcher::Event::Apply(object)) => Some(Ok(read(&object))),
        Ok(watcher::Event::InitDone) => (!listed).then(|| Ok(gone.clone())),
        Ok(watcher::Event::Delete(_)) => Some(Ok(gone.clone())),
        Err(error) => denied(error).map(Err),
    };
    let mut digest = digest;
    events.filter_map(move |event| std::future::ready(digest(event))).boxed()
}

fn denied(error: watcher::Error) -> Option<RequestError> {
    tracing::debug!("{error}");
    let source = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error,
        watcher::Error::WatchError(status) => kube::Error::Api(status),
        watcher::Error::NoResourceVersion => return None,
    };
    let error = RequestError::because("cannot watch the nodes of the run")(source);
    (error.cause() == Cause::Denied).then_some(error)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tasks_of_others_are_no_nodes_of_ours() {
        let task = |plugin| json!({ "name": "app", "plugin": plugin });
        let set = json!({ "spec": { "tasks": {
            "wf-1": task(json!({ "tiphys": { "app": "ceph.cluster" } })),
            "wf-2": task(json!({ "hello": {} })),
            "wf-3": { "http": { "url": "x" } },
        } } });
        let open = open_tasks(&set);
        assert_eq!(open, [("wf-1".to_owned(), "ceph.cluster".to_owned())].into());
        assert!(open_tasks(&json!({ "spec": {} })).is_empty());
    }
}
