//! Argo Events, and a NATS server for an event bus.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::LabError;
use crate::manifests;
use crate::primitives::ROOT;
use crate::workflows::WorkflowsVersion;

/// No manifest names it: an exotic bus only has an address.
pub const NATS_IMAGE: &str = "tiphys.lab/nats:2.12.1";
/// Where an exotic bus finds it.
pub const NATS_ADDRESS: &str = "nats://nats.argo-events:4222";
const NAMESPACE: &str = "argo-events";
const MODULE: &str = "github.com/argoproj/argo-events";
const READY_TIMEOUT: Duration = Duration::from_secs(180);

impl Cluster {
    /// Installs both and waits until they work.
    pub fn install_events(&self) -> Result<(), LabError> {
        // Its image has `argo`, too.
        let of_workflows = WorkflowsVersion::default().folder();
        self.artifacts().build(&["events", "nats", of_workflows], self.teller())?;
        let manifests = self.events_manifests()?;
        self.load_events_images(&manifests)?;
        self.tell("installing Argo Events");
        let namespace =
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n");
        self.apply_in(None, "events-namespace", &namespace)?;
        self.apply_in(Some(NAMESPACE), "events", &without_pulling(&manifests))?;
        self.apply_in(Some(NAMESPACE), "nats", &self.nats_manifests()?)?;
        self.wait_for(NAMESPACE, "deployment/controller-manager", READY_TIMEOUT)?;
        self.wait_for(NAMESPACE, "deployment/nats", READY_TIMEOUT)
    }

    pub(crate) fn events_manifests(&self) -> Result<String, LabError> {
        let source = self.artifacts().source("events", MODULE)?;
        let path = source.join("manifests/install.yaml");
        std::fs::read_to_string(&path).map_err(LabError::file("could not read", &path))
    }

    pub(crate) fn load_events_images(&self, manifests: &str) -> Result<(), LabError> {
        let events = manifests::image(manifests, "/argo-events:")?;
        // Sensors submit workflows with `argo`.
        self.load_program(&events, ROOT, &[("argo-events", "argo-events"), ("argo", "argo")])?;
        self.load_program(NATS_IMAGE, ROOT, &[("nats-server", "nats-server")])
    }

    /// Argo Events takes any certificate, but will not do without one. What is stored survives the
    /// process, not the pod.
    fn nats_manifests(&self) -> Result<String, LabError> {
        let read = |name: &str| {
            let path = self.home().path(name);
            std::fs::read_to_string(&path).map_err(LabError::file("could not read", &path))
        };
        let secret = serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "nats" },
            "stringData": { "tls.crt": read("pki/nats.crt")?, "tls.key": read("pki/nats.key")? },
        });
        Ok(format!(
            "\
{secret}
---
apiVersion: v1
kind: Service
metadata: {{ name: nats }}
spec: {{ selector: {{ app: nats }}, ports: [{{ port: 4222 }}] }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: nats, labels: {{ app: nats }} }}
spec:
  strategy: {{ type: Recreate }}
  selector: {{ matchLabels: {{ app: nats }} }}
  template:
    metadata: {{ labels: {{ app: nats }} }}
    spec:
      containers:
      - name: nats
        image: {NATS_IMAGE}
        imagePullPolicy: Never
        args: [-js, -sd, /data, --tls, --tlscert=/tls/tls.crt, --tlskey=/tls/tls.key]
        readinessProbe: {{ tcpSocket: {{ port: 4222 }}, periodSeconds: 1 }}
        volumeMounts: [{{ name: tls, mountPath: /tls }}, {{ name: data, mountPath: /data }}]
      volumes:
      - name: tls
        secret: {{ secretName: nats }}
      - name: data
        emptyDir: {{}}
"
        ))
    }
}

/// Nor do the pods that it makes pull anything.
fn without_pulling(manifests: &str) -> String {
    let variables = "        env:\n";
    let with =
        format!("{variables}        - name: IMAGE_PULL_POLICY\n          value: IfNotPresent\n");
    manifests::without_pulling(manifests).replacen(variables, &with, 1)
}
