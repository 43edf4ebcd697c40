//! A port of a pod, through the API server.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tiphys_model::{Exit, Explain, Explanation};
use tokio::io::DuplexStream;
use tokio::sync::oneshot;

use crate::request::RequestError;

/// A connection to a port of a pod.
pub struct Forward {
    pub stream: DuplexStream,
    /// What the pod's node says when nobody listens there. It says nothing when somebody does.
    pub refused: oneshot::Receiver<String>,
}

/// A port that cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum ForwardError {
    Request(#[from] RequestError),
    /// The API server promised a connection and gave none.
    NoStream {
        what: String,
    },
}

impl Explain for ForwardError {
    fn explain(&self) -> Explanation {
        match self {
            ForwardError::Request(error) => error.explain(),
            ForwardError::NoStream { what } => {
                Explanation::new(Exit::Unreachable, what, "no stream")
            }
        }
    }
}

/// A pod with these labels that is ready; `None` if there is none.
pub async fn ready_pod(
    pods: &Api<Pod>,
    labels: &str,
    what: &str,
) -> Result<Option<Pod>, RequestError> {
    Ok(ready_pods(pods, labels, what).await?.into_iter().next())
}

/// The pods with these labels that are ready.
pub async fn ready_pods(
    pods: &Api<Pod>,
    labels: &str,
    what: &str,
) -> Result<Vec<Pod>, RequestError> {
    let list = pods.list(&ListParams::default().labels(labels)).await;
    let mut pods = list.map_err(RequestError::because(what))?.items;
    pods.retain(is_ready);
    Ok(pods)
}

/// Connects to a port of a pod.
pub async fn forward(
    pods: &Api<Pod>,
    pod: &str,
    port: u16,
    what: &str,
) -> Result<Forward, ForwardError> {
    let mut forward = pods.portforward(pod, &[port]).await.map_err(RequestError::because(what))?;
    let parts = forward.take_stream(port).zip(forward.take_error(port));
    let (stream, error) = parts.ok_or_else(|| ForwardError::NoStream { what: what.to_owned() })?;
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
