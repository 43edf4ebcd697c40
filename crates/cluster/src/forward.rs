//! A port of a pod, through the API server.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::io::DuplexStream;
use tokio::sync::oneshot;

use crate::error::{ClusterError, Kind};

/// A connection to a port of a pod.
pub struct Forward {
    pub stream: DuplexStream,
    /// What the pod's node says when nobody listens there. It says nothing when somebody does.
    pub refused: oneshot::Receiver<String>,
}

/// A pod with these labels that is ready; `None` if there is none.
pub async fn ready_pod(
    pods: &Api<Pod>,
    labels: &str,
    what: &str,
) -> Result<Option<Pod>, ClusterError> {
    let list = pods.list(&ListParams::default().labels(labels)).await;
    Ok(list.map_err(ClusterError::kube(what))?.items.into_iter().find(is_ready))
}

/// Connects to a port of a pod.
pub async fn forward(
    pods: &Api<Pod>,
    pod: &str,
    port: u16,
    what: &str,
) -> Result<Forward, ClusterError> {
    let mut forward = pods.portforward(pod, &[port]).await.map_err(ClusterError::kube(what))?;
    let parts = forward.take_stream(port).zip(forward.take_error(port));
    let (stream, error) =
        parts.ok_or_else(|| ClusterError::new(Kind::Unreachable, what, "no stream"))?;
    let (sender, refused) = oneshot::channel();
    tokio::spawn(async move {
        if let Some(error) = error.await {
            // Whoever has gone away does not want to know.
            sender.send(error).unwrap_or_default();
        }
    });
    Ok(Forward { stream, refused })
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}
