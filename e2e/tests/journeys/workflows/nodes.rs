//! Runs on Argo Workflows with a node for each app.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, ResourceExt};
use serde_json::Value;
use tiphys_e2e::{Site, World, count, figure};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::{Retry, WorkflowMode};

use super::{argo, ended, install_chart, said};
use crate::audit::Mark;
use crate::deploy::configure;
use crate::scale::many_apps;
use crate::teardown::teardown;

/// Each app is a node that shows how it stands; one that fails keeps back what depends on it, and no
/// workflow outlives its run.
pub(crate) async fn show_each_app(world: Arc<World>) {
    let name = "wf-nodes";
    let mut site = Site::new(&world, name).await;
    let app = |app: &str| format!("{name}-{app}");
    let (database, api, broken, tail) = (app("db"), app("api"), app("broken"), app("tail"));
    let mut fails = AppSource::new(&broken, Behaviour::FailsToSync);
    fails.retry = Some(Retry { limit: 0, ..Retry::default() });
    site.platform.apps = vec![
        AppSource::new(&database, Behaviour::Healthy { after: Duration::from_secs(8) }),
        AppSource::new(&api, Behaviour::ConfigOnly).depends_on(&[&database]),
        fails,
        AppSource::new(&tail, Behaviour::ConfigOnly).depends_on(&[&broken]),
    ];
    site.platform.carries_its_file = true;
    site.platform.workflows = WorkflowMode::Nodes;
    site.commit("four apps");
    configure(&world, &site.platform_file()).await;
    install_chart().await;

    let args = ["deploy", "--engine", "workflows", "--platform", name, "-o", "jsonl"];
    let seen = async { until_a_node_says(&site, "converging").await };
    let ((code, stdout, stderr), ()) = futures::join!(said(&world, &args), seen);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    let first: Value = serde_json::from_str(stdout.lines().next().expect("events")).expect("JSON");
    assert_eq!(first["engine"], "workflows", "{first}");
    let failed = newest(&site).await;
    let told = nodes(&failed);
    assert_eq!(told[&database], "Succeeded: applied");
    assert_eq!(told[&api], "Succeeded: applied");
    assert!(told[&broken].starts_with("Failed: the sync failed"), "{told:#?}");
    assert!(told[&tail].starts_with("Omitted"), "{told:#?}");

    // What is done is found done, and shown as such.
    site.platform.app_mut(&broken).expect("an app").behaviour = Behaviour::ConfigOnly;
    site.commit("mended");
    let before = Mark::now(&world);
    let (code, stdout, stderr) = said(&world, &args).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let synced: Vec<String> = before.writes(&site).operations().into_keys().collect();
    assert_eq!(synced, [broken.clone(), tail.clone()], "nothing else has changed");
    let succeeded = newest(&site).await;
    assert_eq!(succeeded.data["status"]["phase"], "Succeeded", "{:#}", succeeded.data["status"]);
    assert_eq!(nodes(&succeeded)[&database], "Succeeded: already-current");

    // Whoever retries the nodes of a run that is over deploys nothing.
    let before = Mark::now(&world);
    argo(&["retry", &failed.name_any()]).await;
    let retried = ended(&site, &failed.name_any(), "tiphys").await;
    assert_eq!(retried["phase"], "Failed", "{retried:#}");
    assert!(retried.to_string().contains("the run of this workflow has ended"), "{retried:#}");
    let synced = before.writes(&site).operations();
    assert!(synced.is_empty(), "nothing is synced: {synced:?}");
    tiphys_e2e::until("no pod is left", async || agents(&world, &site).await == 0).await;
    site.close().await;
}

/// As many nodes as `TIPHYS_E2E_APPS` says: how large the workflow gets, what an edge costs, and what the
/// pod of the agent needs.
pub(crate) async fn of_hundreds(world: Arc<World>) {
    let apps = count("TIPHYS_E2E_APPS", 100);
    let name = format!("nodes{apps}");
    let mut site = many_apps(&world, &name, apps).await;
    site.platform.carries_its_file = true;
    site.platform.workflows = WorkflowMode::Nodes;
    site.commit("many apps");
    configure(&world, &site.platform_file()).await;
    install_chart().await;
    let args = ["deploy", "--engine", "workflows", "--platform", &name, "-o", "jsonl"];
    let mut deployment = Box::pin(said(&world, &args));
    let (mut agent, mut plugin, mut size) = (0, 0, 0);
    let (code, stdout, stderr) = loop {
        tokio::select! {
            ended = &mut deployment => break ended,
            () = tokio::time::sleep(Duration::from_secs(2)) => {
                agent = agent.max(resident("argoexec\0agent\0main"));
                plugin = plugin.max(resident("/tiphys\0executor\0plugin"));
                size = size.max(bytes(&site).await);
            }
        }
    };
    assert_eq!(code, Some(0), "{stderr}");
    let events: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let last = events.last().expect("events");
    // From the end of what an app waits for to its start.
    let mut ended: BTreeMap<&str, u64> = BTreeMap::new();
    let mut edges: Vec<u64> = Vec::new();
    let depends_on: BTreeMap<&str, &str> = site
        .platform
        .apps
        .iter()
        .filter_map(|app| Some((&*app.name, &**app.depends_on.first()?)))
        .collect();
    for event in &events {
        let (Some(app), Some(at)) = (event["app"].as_str(), event["elapsedMs"].as_u64()) else {
            continue;
        };
        match event["kind"].as_str() {
            Some("step-done") => {
                ended.insert(app, at);
            }
            Some("step-syncing") => {
                let before = depends_on.get(app).and_then(|before| ended.get(before));
                edges.extend(before.map(|before| at - before));
            }
            _ => {}
        }
    }
    edges.sort_unstable();
    let newest = newest(&site).await;
    assert_eq!(
        newest.data["status"]["phase"], "Succeeded",
        "{:#}",
        newest.data["status"]["message"]
    );
    figure(&format!(
        "{apps} nodes: {size} bytes, makespan {} s, from the end of an app to the start of the next \
         {} ms for the quickest tenth, {} ms in the middle and {} ms at most, with limits; agent {agent} KiB, \
         plugin {plugin} KiB",
        last["makespanMs"].as_u64().unwrap_or_default() / 1000,
        edges.get(edges.len() / 10).copied().unwrap_or_default(),
        edges.get(edges.len() / 2).copied().unwrap_or_default(),
        edges.last().copied().unwrap_or_default(),
    ));
    teardown(&world, &site.platform_file(), &[], 0).await;
    site.close().await;
}

/// How large the newest workflow is, as the API server keeps it.
async fn bytes(site: &Site) -> usize {
    let newest = listed(site).await.into_iter().max_by_key(ResourceExt::creation_timestamp);
    newest.map_or(0, |mut workflow| {
        workflow.metadata.managed_fields = None;
        serde_json::to_vec(&workflow).expect("JSON").len()
    })
}

/// What processes with this command line have in memory on this machine, in KiB: the node is one of
/// its own.
fn resident(command: &str) -> u64 {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let of = |process: fs::DirEntry| -> Option<u64> {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        if !line.starts_with(command.as_bytes()) {
            return None;
        }
        let status = fs::read_to_string(process.path().join("status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    processes.filter_map(of).sum()
}

fn workflows(site: &Site) -> Api<DynamicObject> {
    site.objects("argoproj.io/v1alpha1", "Workflow", Some("tiphys"))
}

/// The workflows with nodes of the platform.
pub(super) async fn listed(site: &Site) -> Vec<DynamicObject> {
    let ours = format!("tiphys.dev/nodes=true,tiphys.dev/platform={}", site.platform.name);
    workflows(site).list(&ListParams::default().labels(&ours)).await.expect("a list").items
}

async fn newest(site: &Site) -> DynamicObject {
    let newest = listed(site).await.into_iter().max_by_key(ResourceExt::creation_timestamp);
    newest.expect("a workflow with nodes")
}

/// What the node of each app says: its phase and its message.
fn nodes(workflow: &DynamicObject) -> BTreeMap<String, String> {
    let nodes = workflow.data["status"]["nodes"].as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    nodes
        .filter(|(_, node)| node["type"] != "DAG")
        .map(|(_, node)| {
            let told = format!("{}: {}", text(&node["phase"]), text(&node["message"]));
            (text(&node["displayName"]), told)
        })
        .collect()
}

async fn until_a_node_says(site: &Site, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let all = listed(site).await;
        let told: Vec<String> = all.iter().flat_map(|one| nodes(one).into_values()).collect();
        if told.iter().any(|told| told.contains(&format!("Pending: {what}"))) {
            return;
        }
        assert!(Instant::now() < deadline, "no node says {what}: {told:#?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// How many pods keep nodes of the platform open.
async fn agents(world: &World, site: &Site) -> usize {
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "tiphys");
    let agents = ListParams::default().labels("workflows.argoproj.io/component=agent");
    let agents = pods.list(&agents).await.expect("a list").items;
    let ours: Vec<String> = listed(site).await.iter().map(ResourceExt::name_any).collect();
    let of = |pod: &&Pod| {
        let workflow = pod.labels().get("workflows.argoproj.io/workflow");
        let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        workflow.is_some_and(|workflow| ours.contains(workflow)) && ended == Some("Running")
    };
    agents.iter().filter(of).count()
}
