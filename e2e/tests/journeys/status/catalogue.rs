//! Twelve things that go wrong on real platforms, and what makes them go wrong on the lab.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::json;
use tiphys_e2e::Site;
use tiphys_lab::PAUSE_IMAGE;
use tiphys_lab::repository::Behaviour;

pub(super) struct Trouble {
    /// Of the app, of its stack, and of the snapshot.
    pub(super) name: &'static str,
    pub(super) behaviour: Behaviour,
    pub(super) state: &'static str,
    /// What its status says is the cause.
    pub(super) cause: &'static str,
    /// What a closer look says first.
    pub(super) first: &'static str,
}

impl Trouble {
    fn new(
        name: &'static str,
        behaviour: Behaviour,
        state: &'static str,
        cause: &'static str,
        first: &'static str,
    ) -> Self {
        Trouble { name, behaviour, state, cause, first }
    }
}

pub(super) fn troubles() -> Vec<Trouble> {
    let resource = |manifests: String| Behaviour::Resource { manifests };
    let deadline = Behaviour::Degrades { after: Duration::from_secs(1) };
    let (progressing, failed) = ("it is Progressing", "the sync failed");
    vec![
        Trouble::new(
            "probe",
            Behaviour::NeverHealthy,
            "converging",
            progressing,
            "likely: a probe fails",
        ),
        Trouble::new("degraded", deadline, "unhealthy", "it is Degraded", "likely: a probe fails"),
        Trouble::new(
            "refused",
            Behaviour::FailsToSync,
            "failed",
            failed,
            "likely: the API server rejects a manifest",
        ),
        Trouble::new(
            "unreadable",
            Behaviour::InvalidManifest,
            "failed",
            "cannot compare it",
            "likely: the manifests cannot be rendered",
        ),
        Trouble::new(
            "drifting",
            Behaviour::StaysOutOfSync,
            "drifted",
            "OutOfSync",
            "drifted Deployment/trouble-drifting: \
             metadata.annotations[\"deployment.kubernetes.io/revision\"]",
        ),
        Trouble::new(
            "image",
            resource(deployment("")),
            "converging",
            progressing,
            "likely: an image cannot be pulled",
        ),
        Trouble::new(
            "volume",
            resource(deployment(MOUNT) + CLAIM),
            "converging",
            progressing,
            "likely: a volume is pending",
        ),
        Trouble::new(
            "quota",
            resource(deployment("") + QUOTA),
            "converging",
            progressing,
            "likely: a quota is used up",
        ),
        Trouble::new(
            "crd",
            resource(UNKNOWN.to_owned()),
            "failed",
            failed,
            "likely: a CRD is missing",
        ),
        Trouble::new(
            "webhook",
            resource(SERVICE.to_owned()),
            "failed",
            failed,
            "likely: an admission webhook does not answer",
        ),
        Trouble::new(
            "vault",
            resource(vault()),
            "converging",
            progressing,
            "likely: Vault is sealed",
        ),
        Trouble::new(
            "finalizer",
            Behaviour::HoldsFinalizer,
            "removing",
            "it is being deleted",
            "likely: a resource is being deleted and waits for a finalizer",
        ),
    ]
}

/// A Deployment of an image that nobody serves, with what a trouble needs.
fn deployment(pod: &str) -> String {
    format!(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: app }}
spec:
  selector: {{ matchLabels: {{ app: app }} }}
  template:
    metadata: {{ labels: {{ app: app }} }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {{ name: app, image: \"localhost:1/nobody/serves:this\" }}
{pod}"
    )
}

const MOUNT: &str = "      volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]\n";

const CLAIM: &str = "\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec:
  storageClassName: nobody-provides-this
  accessModes: [ReadWriteOnce]
  resources: { requests: { storage: 1Gi } }
";

const QUOTA: &str = "\
---
apiVersion: v1
kind: ResourceQuota
metadata: { name: none }
spec: { hard: { pods: 0 } }
";

const UNKNOWN: &str = "\
apiVersion: tiphys.dev/v1
kind: Unheard
metadata: { name: app }
";

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: { name: app }
spec: { ports: [{ port: 80 }] }
";

/// Vault is not ready until somebody has unsealed it, and says so on its pod.
fn vault() -> String {
    format!(
        "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{ name: vault }}
spec:
  serviceName: vault
  selector: {{ matchLabels: {{ app: vault }} }}
  template:
    metadata:
      labels: {{ app: vault, vault-initialized: \"true\", vault-sealed: \"true\" }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: vault
          image: {PAUSE_IMAGE}
          imagePullPolicy: Never
          readinessProbe: {{ tcpSocket: {{ port: 8200 }} }}
"
    )
}

/// A webhook for the Services of one namespace, and nothing behind it.
pub(super) async fn hook(site: &Site, watched: &str) {
    let namespace = format!("{watched}-hook");
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
    }))
    .await;
    // One that is not there at all would be a leftover of somebody, to whoever looks for those.
    site.apply(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "hook", "namespace": namespace },
        "spec": { "ports": [{ "port": 443 }], "selector": { "app": "none" } },
    }))
    .await;
    site.apply(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": watched },
        "webhooks": [{
            "name": "hook.example.org",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": { "service": { "namespace": namespace, "name": "hook" } },
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": watched } },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["services"],
            }],
        }],
    }))
    .await;
}

pub(super) async fn unhook(site: &Site, watched: &str) {
    let kind = "ValidatingWebhookConfiguration";
    let hooks = site.objects("admissionregistration.k8s.io/v1", kind, None);
    hooks.delete(watched, &DeleteParams::default()).await.expect("it can be deleted");
}
