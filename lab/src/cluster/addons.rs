//! What runs inside the cluster from the start: DNS.

use std::time::Duration;

use super::{Cluster, DNS_ADDRESS};
use crate::containers;
use crate::error::LabError;
use tiphys_image::Image;

const COREDNS_IMAGE: &str = "tiphys.lab/coredns:1.14.5";

impl Cluster {
    pub(super) fn install_dns(&self) -> Result<(), LabError> {
        if !containers::has(&self.home, COREDNS_IMAGE)? {
            let image = Image::new(COREDNS_IMAGE)
                .file("coredns", &self.artifacts.binary("coredns")?, 0o755)
                .entrypoint(&["/coredns"]);
            self.load_image(&image, &self.home.make("images")?.join("coredns.tar"))?;
        }
        self.apply("dns", &dns_manifests())?;
        self.wait_for("kube-system", "deployment/coredns", Duration::from_secs(60))
    }
}

/// CoreDNS as its documentation sets it up, on a port that needs no privilege.
fn dns_manifests() -> String {
    format!(
        "\
apiVersion: v1
kind: ServiceAccount
metadata: {{ name: coredns, namespace: kube-system }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{ name: system:coredns }}
rules:
- apiGroups: [\"\"]
  resources: [endpoints, services, pods, namespaces]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{ name: system:coredns }}
roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns }}
subjects: [{{ kind: ServiceAccount, name: coredns, namespace: kube-system }}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{ name: coredns, namespace: kube-system }}
data:
  Corefile: |
    .:5353 {{
        errors
        health :8080 {{
            lameduck 1s
        }}
        ready :8181
        kubernetes cluster.local in-addr.arpa ip6.arpa
        cache 5
    }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: coredns, namespace: kube-system, labels: {{ k8s-app: kube-dns }} }}
spec:
  selector: {{ matchLabels: {{ k8s-app: kube-dns }} }}
  template:
    metadata: {{ labels: {{ k8s-app: kube-dns }} }}
    spec:
      serviceAccountName: coredns
      dnsPolicy: Default
      containers:
      - name: coredns
        image: {COREDNS_IMAGE}
        imagePullPolicy: Never
        args: [-conf, /etc/coredns/Corefile]
        readinessProbe: {{ httpGet: {{ path: /ready, port: 8181 }}, periodSeconds: 1 }}
        volumeMounts: [{{ name: config, mountPath: /etc/coredns }}]
      volumes:
      - name: config
        configMap: {{ name: coredns }}
---
apiVersion: v1
kind: Service
metadata: {{ name: kube-dns, namespace: kube-system, labels: {{ k8s-app: kube-dns }} }}
spec:
  clusterIP: {DNS_ADDRESS}
  selector: {{ k8s-app: kube-dns }}
  ports:
  - {{ name: dns, port: 53, targetPort: 5353, protocol: UDP }}
  - {{ name: dns-tcp, port: 53, targetPort: 5353, protocol: TCP }}
"
    )
}
