//! Every version that objects go through, in the order of the cluster's own numbers.

use std::sync::{Arc, Mutex};

use futures::TryStreamExt;
use kube::Api;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use tokio::task::JoinHandle;

/// One version of one object.
#[derive(Debug, Clone)]
pub struct Written {
    /// Shared by all objects of a cluster: the order in which they were written.
    pub version: u64,
    pub object: DynamicObject,
}

/// Records from now on until it is ended.
pub struct Recording {
    written: Arc<Mutex<Vec<Written>>>,
    task: JoinHandle<()>,
}

impl Recording {
    /// Of all objects of a kind, or of one of them.
    pub async fn start(objects: Api<DynamicObject>, name: Option<&str>) -> Recording {
        let list = objects.list(&kube::api::ListParams::default().limit(1)).await.expect("a list");
        let from = list.metadata.resource_version.unwrap_or_default();
        let mut params = WatchParams::default();
        if let Some(name) = name {
            params = params.fields(&format!("metadata.name={name}"));
        }
        let stream = objects.watch(&params, &from).await.expect("a watch");
        let written = Arc::new(Mutex::new(Vec::new()));
        let into = written.clone();
        let task = tokio::spawn(async move {
            let mut stream = Box::pin(stream);
            while let Ok(Some(event)) = stream.try_next().await {
                let object = match event {
                    WatchEvent::Added(object)
                    | WatchEvent::Modified(object)
                    | WatchEvent::Deleted(object) => object,
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                };
                let version = object.metadata.resource_version.as_deref().unwrap_or_default();
                let version = version.parse().expect("versions are numbers");
                into.lock().expect("nobody panics with it").push(Written { version, object });
            }
        });
        Recording { written, task }
    }

    #[must_use]
    pub fn so_far(&self) -> Vec<Written> {
        self.written.lock().expect("nobody panics with it").clone()
    }

    #[must_use]
    pub fn end(self) -> Vec<Written> {
        self.task.abort();
        self.so_far()
    }
}
