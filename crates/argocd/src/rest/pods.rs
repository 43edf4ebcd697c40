//! The pods of Argo CD's API server, under whatever names its Helm chart gives them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt};
use tiphys_cluster::forward::{forward, ready_pods};
use tiphys_model::{Exit, Explain, Explanation};
use tokio::io::DuplexStream;

use super::transport::{EndpointError, UNREACHABLE};

/// As its own manifests label it, and its Helm chart under whatever name.
const SELECTORS: [&str; 2] = [
    "app.kubernetes.io/name=argocd-server",
    "app.kubernetes.io/part-of=argocd,app.kubernetes.io/component=server",
];
/// The release that a pod of the Helm chart is of.
const INSTANCE: &str = "app.kubernetes.io/instance";
/// argocd-server's own port in its pods, unless the chart says another one.
const PORT: u16 = 8080;
/// What the chart calls that port.
const PORT_NAME: &str = "server";

/// The API server in the cluster.
#[derive(Clone)]
pub(super) struct ServerPods {
    pods: Api<Pod>,
    namespace: String,
}

/// No pod, or no one server.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum PodError {
    NoneReady { namespace: String },
    SeveralServers { namespace: String, instances: Vec<String> },
}

impl Explain for PodError {
    fn explain(&self) -> Explanation {
        // In the reason: a failed request passes nothing else on.
        let why = match self {
            PodError::NoneReady { namespace } => {
                let [manifests, chart] = SELECTORS;
                format!(
                    "no pod with the labels {manifests} or {chart} is ready in the namespace \
                     {namespace}; if the server's pods have other labels, set `spec.argocd.server` \
                     to the address of the server"
                )
            }
            PodError::SeveralServers { namespace, instances } => format!(
                "the namespace {namespace} has several API servers, with the label {INSTANCE}: {}; set \
                 `spec.argocd.server` to the address of one of them",
                instances.join(", ")
            ),
        };
        Explanation::new(Exit::Unreachable, UNREACHABLE, why)
    }
}

impl ServerPods {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        ServerPods { pods: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }

    /// One of the names that Argo CD puts in its own certificate.
    pub(super) fn host(&self) -> String {
        format!("argocd-server.{}.svc", self.namespace)
    }

    pub(super) async fn connect(&self) -> Result<DuplexStream, EndpointError> {
        let pod = self.ready_pod().await?;
        Ok(forward(&self.pods, &pod.name_any(), port(&pod), UNREACHABLE).await?.stream)
    }

    async fn ready_pod(&self) -> Result<Pod, EndpointError> {
        for selector in SELECTORS {
            let ready = ready_pods(&self.pods, selector, UNREACHABLE).await?;
            let instances: BTreeSet<&String> =
                ready.iter().filter_map(|pod| pod.labels().get(INSTANCE)).collect();
            if instances.len() > 1 {
                let instances = instances.into_iter().cloned().collect();
                let namespace = self.namespace.clone();
                return Err(PodError::SeveralServers { namespace, instances }.into());
            }
            if let Some(pod) = ready.into_iter().next() {
                return Ok(pod);
            }
        }
        Err(PodError::NoneReady { namespace: self.namespace.clone() }.into())
    }
}

fn port(pod: &Pod) -> u16 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let named = ports.find(|port| port.name.as_deref() == Some(PORT_NAME));
    named.and_then(|port| u16::try_from(port.container_port).ok()).unwrap_or(PORT)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tiphys_cluster::scripted::{Answer, client};

    use super::*;

    fn pod(name: &str, labels: &Value, ready: &str) -> Value {
        json!({
            "metadata": { "name": name, "labels": labels },
            "spec": { "containers": [{ "name": "server", "image": "argocd", "ports": [
                { "name": "metrics", "containerPort": 8083 },
                { "name": "server", "containerPort": 8443 },
            ] }] },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        })
    }

    /// The pod that is found among these, which all have the labels that are looked for.
    async fn found(by_name: Vec<Value>, by_component: Vec<Value>) -> Result<Pod, EndpointError> {
        let client = client(move |asked| {
            let named = asked.path.contains("argocd-server");
            let items = if named { &by_name } else { &by_component };
            Answer::Object(json!({ "metadata": {}, "items": items }))
        });
        ServerPods::new(client, "argo").ready_pod().await
    }

    #[tokio::test]
    async fn a_server_is_found_by_its_labels_whatever_its_name() {
        let plain = pod("argocd-server-1", &json!({}), "True");
        assert_eq!(found(vec![plain.clone()], vec![]).await.unwrap().name_any(), "argocd-server-1");
        let labels = json!({ INSTANCE: "prod" });
        let starting = pod("prod-api-0", &labels, "False");
        let renamed = vec![starting, pod("prod-api-1", &labels, "True")];
        let renamed = found(vec![], renamed).await.unwrap();
        assert_eq!((renamed.name_any().as_str(), port(&renamed)), ("prod-api-1", 8443));
        let silent: Pod = serde_json::from_value(json!({ "metadata": {} })).unwrap();
        assert_eq!(port(&silent), 8080);
    }

    #[tokio::test]
    async fn none_and_several_are_told_with_what_was_looked_for() {
        let none = found(vec![pod("a", &json!({}), "False")], vec![]).await.unwrap_err().explain();
        assert!(none.why.contains("app.kubernetes.io/component=server"), "{}", none.why);
        let of = |instance: &str| pod(instance, &json!({ INSTANCE: instance }), "True");
        let replicas = found(vec![of("a"), of("a")], vec![]).await;
        assert!(replicas.is_ok(), "replicas are one server");
        let several = found(vec![of("b"), of("a")], vec![]).await.unwrap_err().explain();
        assert!(several.why.contains("app.kubernetes.io/instance: a, b"), "{}", several.why);
        for told in [none, several] {
            assert!(told.why.contains("`spec.argocd.server`"), "{}", told.why);
        }
    }
}
