//! etcd, the API server with its audit log, the controllers and the scheduler.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::{API_PORT, Cluster, ETCD_PEER_PORT, ETCD_PORT, SERVICE_RANGE};
use crate::error::LabError;

/// Every write to what Argo CD and Tiphys care about, with its content; of the rest, who did
/// what. It is the witness for order and for idempotence, so nothing that writes is left out.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: argoproj.io
  - group: coordination.k8s.io
    resources: [leases]
  namespaces: [argocd]
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: argoproj.io
- level: None
  users: [\"system:kube-scheduler\", \"system:kube-controller-manager\"]
  verbs: [get, list, watch]
- level: None
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
";

impl Cluster {
    pub(super) fn start_control_plane(&self, address: Ipv4Addr) -> Result<(), LabError> {
        self.start_etcd()?;
        self.start_api_server(address)?;
        self.start_controllers()
    }

    fn start_etcd(&self) -> Result<(), LabError> {
        let data = self.home.make("etcd")?;
        let client = format!("http://127.0.0.1:{ETCD_PORT}");
        let peer = format!("http://127.0.0.1:{ETCD_PEER_PORT}");
        let mut etcd = self.program("etcd")?;
        etcd.arg("--data-dir").arg(data);
        etcd.args(["--name=lab", "--log-level=warn"]);
        etcd.args([
            &format!("--listen-client-urls={client}"),
            &format!("--advertise-client-urls={client}"),
        ]);
        etcd.args([
            &format!("--listen-peer-urls={peer}"),
            &format!("--initial-advertise-peer-urls={peer}"),
        ]);
        etcd.arg(format!("--initial-cluster=lab={peer}"));
        // A lab is thrown away: what a power cut would lose is not worth the waiting.
        etcd.arg("--unsafe-no-fsync");
        let process = self.process("etcd");
        process.start(&mut etcd)?;
        process.wait("etcd", Duration::from_secs(30), || http_ok(ETCD_PORT, "/health"))
    }

    fn start_api_server(&self, address: Ipv4Addr) -> Result<(), LabError> {
        self.home.make("audit")?;
        let policy = self.home.write("audit/policy.yaml", AUDIT_POLICY)?;
        let pki = |name: &str| self.home.path("pki").join(name).display().to_string();
        let mut server = self.program("kube-apiserver")?;
        server.args([
            format!("--etcd-servers=http://127.0.0.1:{ETCD_PORT}"),
            format!("--secure-port={API_PORT}"),
            format!("--advertise-address={address}"),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
            format!("--cert-dir={}", pki("")),
            format!("--tls-cert-file={}", pki("apiserver.crt")),
            format!("--tls-private-key-file={}", pki("apiserver.key")),
            format!("--client-ca-file={}", pki("ca.crt")),
            format!("--token-auth-file={}", pki("tokens.csv")),
            format!("--kubelet-client-certificate={}", pki("kubelet-client.crt")),
            format!("--kubelet-client-key={}", pki("kubelet-client.key")),
            format!("--service-account-key-file={}", pki("service-accounts.pub")),
            format!("--service-account-signing-key-file={}", pki("service-accounts.key")),
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", self.home.audit_log().display()),
        ]);
        server.args([
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            // `kubectl logs` would look the node up by name.
            "--kubelet-preferred-address-types=InternalIP",
            "--audit-log-mode=blocking",
        ]);
        let process = self.process("kube-apiserver");
        process.start(&mut server)?;
        process.wait("the API server", Duration::from_secs(90), || self.answers("/readyz"))
    }

    fn start_controllers(&self) -> Result<(), LabError> {
        let kubeconfig = self.home.kubeconfig().display().to_string();
        let pki = |name: &str| self.home.path("pki").join(name).display().to_string();
        let mut manager = self.program("kube-controller-manager")?;
        manager.args([
            format!("--kubeconfig={kubeconfig}"),
            format!("--service-account-private-key-file={}", pki("service-accounts.key")),
            format!("--root-ca-file={}", pki("ca.crt")),
            format!("--cert-dir={}", pki("controller-manager")),
        ]);
        manager.args([
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
        ]);
        self.process("kube-controller-manager").start(&mut manager)?;

        let mut scheduler = self.program("kube-scheduler")?;
        scheduler.args([
            format!("--kubeconfig={kubeconfig}"),
            format!("--cert-dir={}", pki("scheduler")),
        ]);
        scheduler.args(["--leader-elect=false", "--bind-address=127.0.0.1"]);
        self.process("kube-scheduler").start(&mut scheduler)?;
        // The default ServiceAccount is made by a controller: once it is there, pods can start.
        let process = self.process("kube-controller-manager");
        process.wait("the controllers", Duration::from_secs(60), || {
            self.answers("/api/v1/namespaces/kube-system/serviceaccounts/default")
        })
    }
}

/// Whether a plain HTTP endpoint on loopback answers with 200.
fn http_ok(port: u16, path: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.split_whitespace().nth(1) == Some("200"))
}
