//! Runs on Argo Workflows whose pod, node or cluster gets into trouble: they go on by themselves, and no
//! app is synced twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams, ListParams};
use kube::{Api, ResourceExt};
use tiphys_e2e::{Site, World, count, figure, seed, tiphys};
use tiphys_model::platform::WorkflowMode;
use tiphys_sim::Chance;

use super::{install_chart, nodes, submitted};
use crate::audit::Mark;
use crate::deploy::configure;
use crate::outage::silence;

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
enum Disruption {
    PodDeleted,
    PodEvicted,
    /// What the kernel does where memory runs out.
    ExecutorKilled,
    OutOfMemory,
    ControllerKilled,
    ApiServerAway,
    /// The pod that keeps nodes open.
    AgentDeleted,
    AgentEvicted,
    PluginKilled,
}

/// Somebody takes the pod of a run away.
const LOST_PODS: [Disruption; 2] = [Disruption::PodDeleted, Disruption::PodEvicted];
/// The same with the pod that keeps nodes open.
const LOST_AGENTS: [Disruption; 2] = [Disruption::AgentDeleted, Disruption::AgentEvicted];

/// The kernel ends the process in a pod.
const KILLS: [Disruption; 2] = [Disruption::ExecutorKilled, Disruption::OutOfMemory];

/// What hits every run of the cluster.
const OUTAGES: [Disruption; 2] = [Disruption::ControllerKilled, Disruption::ApiServerAway];

/// How many kinds are tried at the same time, each with a platform of its own.
const AT_ONCE: usize = 2;

/// One of them, which a pod cannot foresee.
pub(crate) async fn of_a_deleted_pod(world: Arc<World>) {
    of(world, WorkflowMode::Single, Disruption::PodDeleted, 1).await;
}

pub(crate) async fn of_lost_pods(world: Arc<World>) {
    of_all(world, WorkflowMode::Single, &LOST_PODS, AT_ONCE).await;
}

pub(crate) async fn of_lost_pods_with_nodes(world: Arc<World>) {
    let disruptions = [&LOST_AGENTS[..], &LOST_PODS].concat();
    of_all(world, WorkflowMode::Nodes, &disruptions, AT_ONCE).await;
}

pub(crate) async fn of_kills(world: Arc<World>) {
    of_all(world, WorkflowMode::Single, &KILLS, AT_ONCE).await;
}

pub(crate) async fn of_kills_with_nodes(world: Arc<World>) {
    let disruptions = [&KILLS[..], &[Disruption::PluginKilled]].concat();
    of_all(world, WorkflowMode::Nodes, &disruptions, AT_ONCE).await;
}

pub(crate) async fn of_outages(world: Arc<World>) {
    of_all(world, WorkflowMode::Single, &OUTAGES, 1).await;
}

pub(crate) async fn of_outages_with_nodes(world: Arc<World>) {
    of_all(world, WorkflowMode::Nodes, &OUTAGES, 1).await;
}

/// A soak sets `TIPHYS_E2E_DISRUPTIONS=10`, and for one of them `TIPHYS_E2E_DISRUPTION=OutOfMemory`.
async fn of_all(world: Arc<World>, mode: WorkflowMode, disruptions: &[Disruption], at_once: usize) {
    let times = count("TIPHYS_E2E_DISRUPTIONS", 1);
    let only = std::env::var("TIPHYS_E2E_DISRUPTION").ok();
    let wanted = |one: &Disruption| only.as_ref().is_none_or(|only| *only == format!("{one:?}"));
    let chosen: Vec<Disruption> = disruptions.iter().copied().filter(wanted).collect();
    assert!(!chosen.is_empty(), "{only:?} is not one of {disruptions:?}");
    let all = futures::stream::iter(chosen);
    all.for_each_concurrent(at_once, |disruption| of(world.clone(), mode, disruption, times)).await;
}

async fn of(world: Arc<World>, mode: WorkflowMode, disruption: Disruption, times: usize) {
    let mut chance = Chance::new(seed());
    let name = format!("wf-{}-{}", mode.as_str(), format!("{disruption:?}").to_lowercase());
    let mut site = Site::reference(&world, &name, Duration::from_secs(2)).await;
    site.platform.carries_its_file = true;
    site.platform.workflows = mode;
    let few = ["metallb", "metallb-config", "cert-manager", "cluster-issuers", "ingress-nginx"];
    let few = few.map(|app| format!("{name}-{app}"));
    site.platform.apps.retain(|app| few.contains(&app.name));
    site.commit("a few apps");
    configure(&world, &site.platform_file()).await;
    install_chart().await;
    let mut moments = Vec::new();
    let mut generation = 1;
    while moments.len() < times {
        if matches!(disruption, Disruption::ApiServerAway) {
            // It ends when it cannot renew its Lease. After several times in a row, the kubelet would wait
            // for minutes before it starts it again.
            replace_controller(&world).await;
        }
        generation += 1;
        assert!(generation <= 3 * times + 2, "{disruption:?} comes too late again and again");
        for app in &mut site.platform.apps {
            app.generation = u32::try_from(generation).expect("a few");
        }
        let revision = site.commit("everything changed");
        let before = Mark::now(&world);
        // The apps need six seconds, and what comes before them two.
        let moment = chance.millis(0, 8_000);
        let run = format!("{name}-{generation}");
        let disrupted = async {
            let mut pod = running(&world, &format!("{OF}={run}")).await;
            if disruption.strikes_agent() {
                pod = agent(&world, &site).await;
            }
            tokio::time::sleep(moment).await;
            disruption.strike(&world, &pod).await.then_some(pod)
        };
        let platform = [("platform", site.platform.name.as_str())];
        let (status, struck) =
            futures::join!(submitted(&site, &run, "deploy", "tiphys", &platform), disrupted);
        let told = format!("{disruption:?} after {moment:?}");
        assert_eq!(status["phase"], "Succeeded", "{told}: {status:#}");
        let writes = before.writes(&site);
        writes.check_order(&site, revision.as_str());
        let operations = writes.operations();
        let twice: BTreeMap<_, _> = operations.iter().filter(|(_, o)| o.len() != 1).collect();
        assert!(twice.is_empty(), "{told}: synced more than once: {twice:?}");
        assert_eq!(operations.len(), few.len(), "{told}");
        assert!(world.held(&site.platform.project).await.is_empty(), "{told}: still held");
        let Some(pod) = struck else { continue };
        // A run that was about to end may do so in spite of it.
        if !disruption.ends_run() || is_replaced(&world, &run, &pod).await {
            moments.push(format!("{:.1} s", moment.as_secs_f64()));
        }
    }
    figure(&format!(
        "{} {disruption:?}: {times} runs ended well, struck after {}",
        mode.as_str(),
        moments.join(", ")
    ));
    let valid = ["validate", "--platform", site.platform.name.as_str()];
    let (code, stdout, stderr) = tiphys::said(&tiphys::run(&valid, &world.kubeconfig).await);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    site.close().await;
}

/// The workflow of a pod, on that pod.
const OF: &str = "workflows.argoproj.io/workflow";

/// Whether a workflow had another pod than this one for its run.
async fn is_replaced(world: &World, workflow: &str, struck: &Pod) -> bool {
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "tiphys");
    let of_workflow = ListParams::default().labels(&format!("{OF}={workflow}"));
    let listed = pods.list(&of_workflow).await.expect("a list");
    listed.iter().any(|pod| pod.uid() != struck.uid())
}

/// The pod that keeps the newest nodes of the platform open, once it runs.
async fn agent(world: &World, site: &Site) -> Pod {
    let open = async || {
        let workflows = nodes::listed(site).await.into_iter();
        let open = workflows.filter(|one| one.data["status"]["finishedAt"].is_null());
        open.max_by_key(ResourceExt::creation_timestamp)
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let workflow = loop {
        if let Some(workflow) = open().await {
            break workflow.name_any();
        }
        assert!(Instant::now() < deadline, "there are no nodes");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    running(world, &format!("{OF}={workflow}")).await
}

/// A pod with these labels, once it runs.
async fn running(world: &World, labels: &str) -> Pod {
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "tiphys");
    let list = ListParams::default().labels(labels);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = pods.list(&list).await.expect("a list").items.into_iter().next();
        let runs = |pod: &Pod| {
            pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
        };
        if let Some(pod) = found.filter(runs) {
            return pod;
        }
        assert!(Instant::now() < deadline, "there is no pod with {labels}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Disruption {
    fn strikes_agent(self) -> bool {
        match self {
            Disruption::AgentDeleted | Disruption::AgentEvicted | Disruption::PluginKilled => true,
            Disruption::PodDeleted
            | Disruption::PodEvicted
            | Disruption::ExecutorKilled
            | Disruption::OutOfMemory
            | Disruption::ControllerKilled
            | Disruption::ApiServerAway => false,
        }
    }

    /// Whether the container that runs the engine ends by it, so that the run goes on in another pod.
    fn ends_run(self) -> bool {
        match self {
            Disruption::PodDeleted
            | Disruption::PodEvicted
            | Disruption::ExecutorKilled
            | Disruption::OutOfMemory => true,
            Disruption::ControllerKilled
            | Disruption::ApiServerAway
            | Disruption::AgentDeleted
            | Disruption::AgentEvicted
            | Disruption::PluginKilled => false,
        }
    }

    /// Whether there was still something to strike: the run may have been quicker.
    async fn strike(self, world: &World, pod: &Pod) -> bool {
        let pods: Api<Pod> = Api::namespaced(world.client.clone(), "tiphys");
        let name = pod.name_any();
        let processes = executors(pod);
        if processes.is_empty() {
            return false;
        }
        match self {
            Disruption::PodDeleted | Disruption::AgentDeleted => {
                pods.delete(&name, &DeleteParams::default()).await.is_ok()
            }
            Disruption::PodEvicted | Disruption::AgentEvicted => {
                pods.evict(&name, &EvictParams::default()).await.is_ok()
            }
            Disruption::ExecutorKilled | Disruption::PluginKilled => {
                let kill = |process: &Process| {
                    let mut kill = Command::new("kill");
                    kill.args(["-9", &process.pid]).status().expect("kill can be started").success()
                };
                processes.iter().all(kill)
            }
            Disruption::OutOfMemory => {
                for process in &processes {
                    process.run_out_of_memory().await;
                }
                was_killed(&pods, &name).await
            }
            Disruption::ControllerKilled => {
                replace_controller(world).await;
                true
            }
            Disruption::ApiServerAway => {
                silence(Duration::from_secs(15)).await;
                true
            }
        }
    }
}

/// Ends the workflow controller without a last word; its Deployment makes another one.
async fn replace_controller(world: &World) {
    let controllers: Api<Pod> = Api::namespaced(world.client.clone(), "argo");
    let list = ListParams::default().labels("app=workflow-controller");
    let now = DeleteParams::default().grace_period(0);
    controllers.delete_collection(&now, &list).await.expect("it can be deleted");
}

/// A process of the program in a pod, on this machine: the node is one of its own.
struct Process {
    pid: String,
    /// In the control group of its container: the limit of its memory.
    memory: PathBuf,
}

/// Those of a pod, found by the ids of its containers.
fn executors(pod: &Pod) -> Vec<Process> {
    let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let ids: Vec<&str> = status
        .into_iter()
        .flatten()
        .filter_map(|container| container.container_id.as_deref()?.strip_prefix("containerd://"))
        .collect();
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let of_pod = processes.filter_map(|process| {
        let command = fs::read(process.path().join("cmdline")).ok()?;
        let groups = fs::read_to_string(process.path().join("cgroup")).ok()?;
        let group = |controller: &str| groups.lines().find_map(|line| line.split_once(controller));
        // Version 1 has a hierarchy for memory, version 2 one for all.
        let memory = match (group(":memory:"), group("0::")) {
            (Some((_, group)), _) => format!("/sys/fs/cgroup/memory{group}/memory.limit_in_bytes"),
            (None, Some((_, group))) => format!("/sys/fs/cgroup{group}/memory.max"),
            (None, None) => return None,
        };
        let ours = command.starts_with(b"/tiphys\0") && ids.iter().any(|id| memory.contains(id));
        let pid = process.file_name().to_string_lossy().into_owned();
        ours.then(|| Process { pid, memory: memory.into() })
    });
    of_pod.collect()
}

impl Process {
    /// Has the kernel end it because its container has no memory left. Another process in the container's
    /// control group takes all there is; of the two, the kernel ends the one of the pod first.
    async fn run_out_of_memory(&self) {
        let group = self.memory.with_file_name("cgroup.procs");
        let mut hog = Command::new("sh");
        hog.args(["-c", "echo $$ > \"$0\" && exec tail /dev/zero"]).arg(group);
        let mut hog = hog.spawn().expect("sh can be started");
        let deadline = Instant::now() + Duration::from_secs(10);
        while Path::new("/proc").join(&self.pid).exists() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        hog.kill().ok();
        hog.wait().expect("it has ended");
    }
}

/// Whether a container of a pod whose process has ended was killed.
async fn was_killed(pods: &Api<Pod>, name: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let Ok(pod) = pods.get(name).await else { return false };
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        let main = statuses.into_iter().find(|container| container.name == "main");
        let ended = main.and_then(|container| container.state?.terminated);
        if let Some(ended) = ended {
            return ended.exit_code == 137;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    false
}
