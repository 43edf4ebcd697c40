//! The program in a pod.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, LogParams};
use serde_json::{Value, json};

use crate::{Site, image};

/// Where the platform file is, if the pod has one.
pub const FILE: &str = "/platform/platform.yaml";
const LONGEST: Duration = Duration::from_secs(240);

/// A pod that runs something to its end.
pub struct ProgramPod<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    pub account: &'a str,
    pub args: &'a [&'a str],
    pub variables: &'a [(&'a str, &'a str)],
    /// The text of a platform file.
    pub file: Option<&'a str>,
}

/// How it ended, and both of its streams.
pub struct PodEnd {
    pub code: i32,
    pub log: String,
}

impl ProgramPod<'_> {
    /// Runs it, restricted and with nothing to write to, and removes it.
    pub async fn run(&self, site: &Site) -> PodEnd {
        let pods: Api<Pod> = Api::namespaced(site.world.client.clone(), self.namespace);
        self.remove(&pods).await;
        site.apply(self.pod(site).await).await;
        let began = Instant::now();
        let code = loop {
            let pod = pods.get(self.name).await.expect("the pod");
            let statuses = pod.status.and_then(|status| status.container_statuses);
            let state = statuses.and_then(|all| all.first()?.state.clone());
            if let Some(ended) = state.and_then(|state| state.terminated) {
                break ended.exit_code;
            }
            assert!(began.elapsed() < LONGEST, "the pod {} does not end", self.name);
            tokio::time::sleep(Duration::from_millis(300)).await;
        };
        let log = pods.logs(self.name, &LogParams::default()).await.expect("its log");
        self.remove(&pods).await;
        PodEnd { code, log }
    }

    async fn remove(&self, pods: &Api<Pod>) {
        pods.delete(self.name, &DeleteParams::default().grace_period(0)).await.ok();
        while pods.get_opt(self.name).await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn pod(&self, site: &Site) -> Value {
        let (mut mounts, mut volumes) = (Vec::new(), Vec::new());
        if let Some(file) = self.file {
            site.apply(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": self.name, "namespace": self.namespace },
                "data": { "platform.yaml": file },
            }))
            .await;
            mounts.push(json!({ "name": "file", "mountPath": "/platform", "readOnly": true }));
            volumes.push(json!({ "name": "file", "configMap": { "name": self.name } }));
        }
        let variables = self.variables.iter();
        let variables: Vec<Value> =
            variables.map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let container = json!({
            "name": "tiphys", "image": image::executor().await, "args": self.args,
            "env": variables, "workingDir": "/proc", "volumeMounts": mounts,
            "securityContext": {
                "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": 65532,
                "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
                "seccompProfile": { "type": "RuntimeDefault" },
            },
        });
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "spec": {
                "serviceAccountName": self.account, "restartPolicy": "Never",
                "containers": [container], "volumes": volumes,
            },
        })
    }
}
