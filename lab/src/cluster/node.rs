//! The node: containerd, kubelet, kube-proxy.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use super::{Cluster, DNS_ADDRESS};
use crate::error::LabError;
use crate::{command, containers};
use tiphys_image::Image;

impl Cluster {
    pub(super) fn start_node(&self, address: Ipv4Addr) -> Result<(), LabError> {
        self.start_containerd()?;
        self.load_pause()?;
        self.start_kubelet(address)?;
        self.start_proxy()
    }

    fn start_containerd(&self) -> Result<(), LabError> {
        let config = containers::configure(&self.home)?;
        let mut containerd = Command::new("containerd");
        containerd.arg("--config").arg(config);
        let process = self.process("containerd");
        process.start(&mut containerd)?;
        process.wait("containerd", Duration::from_secs(30), || {
            command::run(containers::ctr(&self.home).arg("version")).is_ok()
        })
    }

    fn load_pause(&self) -> Result<(), LabError> {
        // A lab of an earlier version has only the first.
        if containers::has(&self.home, containers::PAUSE_IMAGE)?
            && containers::has(&self.home, containers::PUBLIC_PAUSE_IMAGE)?
        {
            return Ok(());
        }
        let image = Image::new(containers::PAUSE_IMAGE)
            .also(containers::PUBLIC_PAUSE_IMAGE)
            .file("pause", &self.artifacts.binary("pause")?, 0o755)
            .entrypoint(&["/pause"]);
        self.load_image(&image, &self.home.make("images")?.join("pause.tar"))
    }

    fn start_kubelet(&self, address: Ipv4Addr) -> Result<(), LabError> {
        let root = self.home.make("kubelet")?;
        let resolv = self.home.write("kubelet/resolv.conf", "nameserver 127.0.0.1\n")?;
        let config = format!(
            "\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {{ enabled: false }}
  webhook: {{ enabled: true }}
  x509: {{ clientCAFile: {authority} }}
authorization: {{ mode: Webhook }}
clusterDNS: [{DNS_ADDRESS}]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://{socket}
resolvConf: {resolv}
podLogsDir: {logs}
volumePluginDir: {root}/volume-plugins
# The machine may have swap, cgroup v1 and neighbours; none of that is the cluster's business.
failSwapOn: false
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
maxPods: 250
imageGCHighThresholdPercent: 100
# In bytes: one per cent of a large disk is gigabytes, and a lab with room enough would be refused.
evictionHard: {{ memory.available: 100Mi, nodefs.available: 200Mi, imagefs.available: 200Mi }}
registryPullQPS: 0
nodeStatusUpdateFrequency: 4s
",
            authority = self.home.path("pki/ca.crt").display(),
            socket = containers::socket(&self.home).display(),
            resolv = resolv.display(),
            logs = self.home.make("pod-logs")?.display(),
            root = root.display(),
        );
        let config = self.home.write("kubelet/config.yaml", config)?;
        let mut kubelet = self.program("kubelet")?;
        kubelet.args([
            format!("--config={}", config.display()),
            format!("--kubeconfig={}", self.home.kubeconfig().display()),
            format!("--root-dir={}", root.display()),
            format!("--cert-dir={}", root.join("pki").display()),
            format!("--node-ip={address}"),
            "--hostname-override=lab".to_owned(),
        ]);
        let process = self.process("kubelet");
        process.start(&mut kubelet)?;
        process.wait("the node", Duration::from_secs(90), || self.node_is_ready())
    }

    fn start_proxy(&self) -> Result<(), LabError> {
        // Pods on the bridge talk to services through the machine.
        let forward = "/proc/sys/net/ipv4/ip_forward";
        if fs::read_to_string(forward).is_ok_and(|text| text.trim() == "0") {
            self.home.write("run/ip_forward.before", "0\n")?;
            fs::write(forward, "1\n")
                .map_err(LabError::file("could not allow forwarding", forward))?;
        }
        let mut proxy = self.program("kube-proxy")?;
        proxy.arg(format!("--kubeconfig={}", self.home.kubeconfig().display()));
        proxy.args([
            "--hostname-override=lab",
            "--proxy-mode=iptables",
            "--cluster-cidr=10.244.0.0/16",
            // These settings of the kernel may be read-only, and are of no use to a lab.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ]);
        let process = self.process("kube-proxy");
        process.start(&mut proxy)?;
        process.wait("kube-proxy", Duration::from_secs(30), || {
            let rules = Command::new("iptables-save").args(["-t", "nat"]).output();
            rules.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("KUBE-SERVICES"))
        })
    }
}
