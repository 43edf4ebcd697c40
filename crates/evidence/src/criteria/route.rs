//! How to get to a Service: directly from inside the cluster, and from outside through a
//! port-forward to one of its ready pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{Api, Client};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use tiphys_cluster::Place;
use tiphys_cluster::RequestError;
use tiphys_cluster::forward::{Forward, forward, ready_pod};

/// A port of a Service.
pub(super) struct Route<'a> {
    pub(super) client: &'a Client,
    pub(super) place: Place,
    pub(super) namespace: String,
    pub(super) service: String,
    pub(super) port: u16,
}

/// A connection to a service.
pub(super) struct Connection {
    pub(super) stream: Box<dyn Stream>,
    /// What says that nobody listens, if the way there does not.
    pub(super) refused: Option<oneshot::Receiver<String>>,
}

/// Of a socket, and of a port-forward.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Route<'_> {
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }

    pub(super) async fn open(&self) -> Result<Connection, String> {
        match self.place {
            Place::Inside => {
                let stream = TcpStream::connect((self.host(), self.port)).await;
                let stream = stream.map_err(|error| shortened(&error.to_string()))?;
                Ok(Connection { stream: Box::new(stream), refused: None })
            }
            Place::Outside => {
                let Forward { stream, refused } = self.forwarded().await?;
                Ok(Connection { stream: Box::new(stream), refused: Some(refused) })
            }
        }
    }

    async fn forwarded(&self) -> Result<Forward, String> {
        let Route { client, namespace, service: name, .. } = self;
        let what = "cannot reach it through a port-forward";
        let services: Api<Service> = Api::namespaced((*client).clone(), namespace);
        let service = services.get_opt(name).await.map_err(RequestError::because(what));
        let service = service.map_err(|error| error.to_string())?;
        let service = service.ok_or_else(|| format!("Service {name} not found in {namespace}"))?;
        let labels = selector(&service).ok_or("its Service selects no pods")?;
        let pods: Api<Pod> = Api::namespaced((*client).clone(), namespace);
        let pod = ready_pod(&pods, &labels, what).await.map_err(|error| error.to_string())?;
        let pod = pod.ok_or("none of its pods is ready")?;
        let port = target_port(&service, &pod, self.port)
            .ok_or_else(|| format!("its Service has no port {}", self.port))?;
        let pod = pod.metadata.name.unwrap_or_default();
        forward(&pods, &pod, port, what).await.map_err(|error| error.to_string())
    }
}

fn selector(service: &Service) -> Option<String> {
    let labels: &BTreeMap<String, String> = service.spec.as_ref()?.selector.as_ref()?;
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

/// The port of the pod behind a port of the Service.
fn target_port(service: &Service, pod: &Pod, port: u16) -> Option<u16> {
    let ports = service.spec.as_ref()?.ports.as_ref()?;
    let found = ports.iter().find(|found| found.port == i32::from(port))?;
    let number = match &found.target_port {
        None => found.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let containers = &pod.spec.as_ref()?.containers;
            let mut named = containers.iter().flat_map(|c| c.ports.iter().flatten());
            named.find(|port| port.name.as_ref() == Some(name))?.container_port
        }
    };
    u16::try_from(number).ok()
}

impl Connection {
    /// Sends a request and reads until the answer is understood.
    pub(super) async fn exchange(
        mut self,
        request: &[u8],
        understand: impl Fn(&[u8]) -> Option<Result<(), String>>,
    ) -> Result<(), String> {
        let mut answer = Vec::new();
        let mut part = [0; 1024];
        // If it cannot be sent, reading tells why.
        let mut read = self.stream.write_all(request).await.map(|()| 0);
        while read.is_ok() {
            read = self.stream.read(&mut part).await;
            match read {
                Ok(0) | Err(_) => break,
                Ok(length) => answer.extend_from_slice(&part[..length]),
            }
            if let Some(understood) = understand(&answer) {
                return understood;
            }
            if answer.len() > MAX_ANSWER {
                return Err(format!("its answer is too long: {}", quoted(&answer)));
            }
        }
        match self.refusal().await {
            Some(refusal) => Err(refusal),
            None if answer.is_empty() => {
                Err("it closes the connection without an answer".to_owned())
            }
            None => Err(format!("it answers {} and closes the connection", quoted(&answer))),
        }
    }

    /// What was in the way, if the other side has hung up.
    pub(super) async fn refusal(self) -> Option<String> {
        let Connection { stream, refused } = self;
        // Nothing more is said as long as somebody could still listen.
        drop(stream);
        refused?.await.ok().map(|told| shortened(&told))
    }
}

/// No answer that we ask for is as long as this.
const MAX_ANSWER: usize = 16 * 1024;
const QUOTED: usize = 60;

/// The beginning of an answer, for people.
pub(super) fn quoted(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let line: String = text.lines().next().unwrap_or_default().chars().take(QUOTED).collect();
    format!("{line:?}")
}

/// What a node says when nobody listens, without the path through its machinery.
pub(super) fn shortened(told: &str) -> String {
    let refused = "connection refused";
    if told.to_lowercase().contains(refused) { refused.to_owned() } else { told.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_are_those_of_the_pod() {
        let service: Service = serde_json::from_value(json!({ "spec": { "ports": [
            { "port": 80, "targetPort": "web" }, { "port": 81, "targetPort": 8081 }, { "port": 82 },
        ] } }))
        .unwrap();
        let pod: Pod = serde_json::from_value(json!({ "spec": { "containers": [
            { "name": "a" }, { "name": "b", "ports": [{ "name": "web", "containerPort": 8080 }] },
        ] } }))
        .unwrap();
        let ports = [80, 81, 82, 83].map(|port| target_port(&service, &pod, port));
        assert_eq!(ports, [Some(8080), Some(8081), Some(82), None]);
        assert_eq!(target_port(&service, &Pod::default(), 80), None);
    }

    #[test]
    fn a_service_without_a_selector_has_no_pods() {
        let service = |spec: serde_json::Value| {
            let service: Service = serde_json::from_value(json!({ "spec": spec })).unwrap();
            selector(&service)
        };
        assert_eq!(service(json!({ "selector": { "a": "b", "c": "d" } })).unwrap(), "a=b,c=d");
        assert_eq!(service(json!({})), None);
        assert_eq!(service(json!({ "selector": {} })), None);
    }
}
