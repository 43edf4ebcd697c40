//! Starting a cluster, part by part, each waited for until it is ready.

mod addons;
mod control_plane;
mod git_server;
mod node;
mod registry;

pub use registry::Registry;

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::artifacts::Artifacts;
use crate::error::LabError;
use crate::home::Home;
use crate::process::Process;
use crate::{certificates, command, containers, disk, go, kubeconfig, packages, ports, teardown};
use tiphys_image::Image;

pub(crate) const API_PORT: u16 = 16443;
const ETCD_PORT: u16 = 12379;
const ETCD_PEER_PORT: u16 = 12380;
const SERVICE_RANGE: &str = "10.96.0.0/16";
const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
const DNS_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);

/// The processes of a lab in the order in which they start, with the ports they listen on.
pub(crate) const PROCESSES: [(&str, &[u16]); 8] = [
    (git_server::PROCESS, &[git_server::PORT]),
    ("etcd", &[ETCD_PORT, ETCD_PEER_PORT]),
    ("kube-apiserver", &[API_PORT]),
    ("kube-controller-manager", &[10257]),
    ("kube-scheduler", &[10259]),
    ("containerd", &[]),
    ("kubelet", &[10248, 10250]),
    ("kube-proxy", &[10249, 10256]),
];

/// Processes that only some labs have.
pub(crate) const OPTIONAL: [&str; 1] = [registry::PROCESS];

/// A lab, up or down.
pub struct Cluster {
    home: Home,
    artifacts: Artifacts,
    say: Box<dyn Fn(&str)>,
}

/// What is running.
#[derive(Debug, Clone)]
pub struct Status {
    /// Name and, if it is running, process id.
    pub processes: Vec<(&'static str, Option<u32>)>,
    pub ready: bool,
}

impl Cluster {
    #[must_use]
    pub fn new(home: Home, say: impl Fn(&str) + 'static) -> Self {
        let artifacts = Artifacts::new(&home);
        Cluster { home, artifacts, say: Box::new(say) }
    }

    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Builds everything that `up` would build.
    pub fn build(&self) -> Result<(), LabError> {
        self.require_tools()?;
        let cluster = ["pause", "etcd", "kubernetes", "tools"];
        let added =
            ["argocd", "argocd-3.5", "workflows", "workflows-4.0", "events", "nats", "registry"];
        self.artifacts.build(&[&cluster[..], &added[..]].concat(), self.teller())
    }

    /// Starts what is not running. Twice is once; after a crash it mends what is left.
    pub fn up(&self) -> Result<(), LabError> {
        require_root()?;
        disk::require(self.home.folder(), "TIPHYS_LAB_HOME")?;
        disk::require(self.home.cache(), "XDG_CACHE_HOME")?;
        self.require_tools()?;
        self.artifacts.build(&["pause", "etcd", "kubernetes", "tools"], self.teller())?;
        self.refuse_taken_ports()?;
        teardown::remember_outside(&self.home)?;
        if !Process::new(&self.home, "containerd").is_running() {
            teardown::sweep(&self.home)?;
        }
        let address = host_address()?;
        let addresses =
            [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(address), IpAddr::V4(SERVICE_ADDRESS)];
        certificates::make(&self.home, &addresses)?;
        kubeconfig::token(&self.home)?;
        kubeconfig::write(&self.home, &format!("https://{address}:{API_PORT}"))?;
        self.tell("starting the Git server");
        self.start_git_server(address)?;
        self.tell("starting the control plane");
        self.start_control_plane(address)?;
        self.tell("starting the node");
        self.start_node(address)?;
        self.tell("waiting for DNS");
        self.install_dns()?;
        self.tell("ready");
        Ok(())
    }

    /// Stops and removes everything but the cache.
    pub fn down(&self) -> Result<(), LabError> {
        require_root()?;
        teardown::down(&self.home)
    }

    #[must_use]
    pub fn status(&self) -> Status {
        let processes = PROCESSES
            .iter()
            .map(|(name, _)| (*name, Process::new(&self.home, name).pid()))
            .collect::<Vec<_>>();
        let running = processes.iter().all(|(_, pid)| pid.is_some());
        let ready = running && self.node_is_ready();
        let optional = OPTIONAL.iter().map(|name| (*name, Process::new(&self.home, name).pid()));
        let processes = processes.into_iter().chain(optional.filter(|(_, pid)| pid.is_some()));
        Status { ready, processes: processes.collect() }
    }

    /// Writes an image from files and makes it known to the cluster.
    pub fn load_image(&self, image: &Image, tarball: &Path) -> Result<(), LabError> {
        image.write(tarball)?;
        containers::import(&self.home, tarball)
    }

    /// Makes an image that was written before known to the cluster.
    pub fn import_image(&self, tarball: &Path) -> Result<(), LabError> {
        containers::import(&self.home, tarball)
    }

    /// `kubectl` for this lab.
    pub fn kubectl(&self) -> Result<Command, LabError> {
        self.client("kubectl")
    }

    /// `helm` for this lab.
    pub fn helm(&self) -> Result<Command, LabError> {
        self.client("helm")
    }

    pub(crate) fn client(&self, name: &str) -> Result<Command, LabError> {
        let mut command = Command::new(self.artifacts.binary(name)?);
        command.arg("--kubeconfig").arg(self.home.kubeconfig());
        Ok(command)
    }

    pub(crate) fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    pub(crate) fn tell(&self, text: &str) {
        (self.say)(text);
    }

    pub(crate) fn teller(&self) -> &dyn Fn(&str) {
        &*self.say
    }

    fn require_tools(&self) -> Result<(), LabError> {
        self.require_go()?;
        packages::install()
    }

    pub(crate) fn require_go(&self) -> Result<(), LabError> {
        go::require(self.artifacts.modules())
    }

    fn program(&self, name: &str) -> Result<Command, LabError> {
        Ok(Command::new(self.artifacts.binary(name)?))
    }

    fn process(&self, name: &'static str) -> Process<'_> {
        Process::new(&self.home, name)
    }

    fn refuse_taken_ports(&self) -> Result<(), LabError> {
        for (name, ports) in PROCESSES {
            if !self.process(name).is_running() {
                ports.iter().try_for_each(|port| ports::require_free(*port))?;
            }
        }
        Ok(())
    }

    /// Whether a question to the API server is answered.
    fn answers(&self, path: &str) -> bool {
        let asked = self.kubectl().and_then(|mut kubectl| {
            command::run(kubectl.args(["get", "--raw", path, "--request-timeout=5s"]))
        });
        asked.is_ok()
    }

    /// The tag of the image of what is installed under this name.
    pub(crate) fn image_tag(
        &self,
        namespace: &str,
        object: &str,
    ) -> Result<Option<String>, LabError> {
        let mut kubectl = self.kubectl()?;
        kubectl.args(["get", object, "--ignore-not-found", "--namespace", namespace]);
        kubectl.arg("-o=jsonpath={.spec.template.spec.containers[0].image}");
        Ok(command::run(&mut kubectl)?.rsplit_once(':').map(|(_, tag)| tag.trim().to_owned()))
    }

    fn node_is_ready(&self) -> bool {
        let jsonpath = "{.items[*].status.conditions[?(@.type=='Ready')].status}";
        let output = format!("-o=jsonpath={jsonpath}");
        let asked = self.kubectl().and_then(|mut kubectl| {
            command::run(kubectl.args(["get", "nodes", &output, "--request-timeout=5s"]))
        });
        asked.is_ok_and(|text| text.trim() == "True")
    }

    /// Applies manifests, given as text.
    pub(crate) fn apply(&self, name: &str, manifests: &str) -> Result<(), LabError> {
        self.apply_in(None, name, manifests)
    }

    /// Applies manifests; those that name no namespace go to the given one.
    pub(crate) fn apply_in(
        &self,
        namespace: Option<&str>,
        name: &str,
        manifests: &str,
    ) -> Result<(), LabError> {
        let file = self.home.write(&format!("applied/{name}.yaml"), manifests)?;
        let mut kubectl = self.kubectl()?;
        kubectl
            .args(namespace.map(|namespace| format!("--namespace={namespace}")))
            .args(["apply", "--server-side", "--force-conflicts", "-f"])
            .arg(file);
        command::run(&mut kubectl).map(|_| ())
    }

    /// Waits until a Deployment or StatefulSet has rolled out.
    pub(crate) fn wait_for(
        &self,
        namespace: &str,
        object: &str,
        patience: Duration,
    ) -> Result<(), LabError> {
        let mut kubectl = self.kubectl()?;
        let timeout = format!("--timeout={}s", patience.as_secs());
        kubectl.args(["-n", namespace, "rollout", "status", object, &timeout]);
        match command::run(&mut kubectl) {
            Ok(_) => Ok(()),
            Err(LabError::Command { command, status, output }) => {
                let output = format!("{output}{}", self.trouble(namespace));
                Err(LabError::Command { command, status, output })
            }
            Err(error) => Err(error),
        }
    }

    /// What usually explains why something does not become ready.
    fn trouble(&self, namespace: &str) -> String {
        let pressure = "-o=jsonpath={range .items[*].status.conditions[*]}{.type}={.status} {end}";
        let asked: [&[&str]; 3] = [
            &["-n", namespace, "get", "pods"],
            &["-n", namespace, "get", "events", "--field-selector=type=Warning"],
            &["get", "nodes", pressure],
        ];
        let answers = asked.iter().filter_map(|args| {
            let mut kubectl = self.kubectl().ok()?;
            command::run(kubectl.args(*args)).ok()
        });
        answers.collect::<Vec<_>>().join("\n")
    }
}

fn require_root() -> Result<(), LabError> {
    if !cfg!(target_os = "linux") {
        return Err(LabError::NotLinux);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
    if uid == Some("0") { Ok(()) } else { Err(LabError::NotRoot) }
}

/// The address of the machine's own interface. kube-proxy waits for ever for a node that has
/// only a loopback address.
fn host_address() -> Result<Ipv4Addr, LabError> {
    let text = command::run(
        Command::new("ip").args(["-4", "-o", "addr", "show", "scope", "global", "up"]),
    )?;
    let address = text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let interface = words.nth(1)?;
        let address = words.nth(1)?.split('/').next()?.parse().ok()?;
        (interface != containers::BRIDGE).then_some(address)
    });
    address.ok_or_else(|| LabError::Other("the machine has no address but loopback".to_owned()))
}
