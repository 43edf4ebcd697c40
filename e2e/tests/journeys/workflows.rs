//! Runs on Argo Workflows, from the templates of the chart.

pub(crate) mod survival;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiphys_e2e::{Site, World, figure, image, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_lab::{Cluster, Home};

use crate::deploy::configure;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/chart");
const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// A platform of two apps that Git has, and the chart.
async fn arrange(world: &Arc<World>, name: &str, after: Duration) -> Site {
    let mut site = Site::new(world, name).await;
    let (database, api) = (format!("{name}-db"), format!("{name}-api"));
    site.platform.apps = vec![
        AppSource::new(&database, Behaviour::Healthy { after }),
        AppSource::new(&api, Behaviour::ConfigOnly).depends_on(&[&database]),
    ];
    site.platform.carries_its_file = true;
    site.commit("two apps");
    configure(world, &site.platform_file()).await;
    install_chart().await;
    site
}

/// As its users do, with the program of this build.
async fn install_chart() {
    let (repository, tag) = image::executor().await.rsplit_once(':').expect("a tag");
    let values = [
        format!("image.repository={repository}"),
        format!("image.tag={tag}"),
        "image.pullPolicy=Never".to_owned(),
    ];
    helm(&["upgrade", "--install", "tiphys", CHART, "--set", &values.join(",")]).await;
}

async fn helm(args: &[&str]) {
    let helm = Cluster::new(Home::from_environment(), |_| {}).helm();
    let mut helm: Command = helm.expect("the lab has helm");
    helm.args(["-n", "tiphys"]).args(args);
    let run = move || helm.output().expect("helm can be started");
    let output = tokio::task::spawn_blocking(run).await.expect("nobody cancels it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Submits a workflow as `argo submit --from` does; it once it has ended.
async fn submit(site: &Site, action: &str, namespace: &str, parameters: &[(&str, &str)]) -> Value {
    let name = format!("{}-{action}", site.platform.name);
    submitted(site, &name, action, namespace, parameters).await
}

async fn submitted(
    site: &Site,
    name: &str,
    action: &str,
    namespace: &str,
    parameters: &[(&str, &str)],
) -> Value {
    let parameters: Vec<Value> =
        parameters.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    site.apply(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "workflowTemplateRef": { "name": format!("tiphys-{action}"), "clusterScope": true },
            "arguments": { "parameters": parameters },
        },
    }))
    .await;
    let workflows = site.objects("argoproj.io/v1alpha1", "Workflow", Some(namespace));
    let began = Instant::now();
    loop {
        // The API server may be away for a moment.
        let found = match workflows.get(name).await {
            Ok(found) => found,
            Err(error) => {
                assert!(began.elapsed() < WAIT_LIMIT, "{name} cannot be read: {error}");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let phase = found.data["status"]["phase"].as_str().unwrap_or_default().to_owned();
        if ["Succeeded", "Failed", "Error"].contains(&&*phase) {
            return found.data["status"].clone();
        }
        assert!(began.elapsed() < WAIT_LIMIT, "{name} does not end: {:#}", found.data["status"]);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

pub(crate) async fn in_one_container(world: Arc<World>) {
    let site = arrange(&world, "wf-one", Duration::from_secs(8)).await;
    let name = site.platform.name.as_str();

    let began = Instant::now();
    let args = ["deploy", "--engine", "workflows", "--platform", name, "-o", "jsonl"];
    let (code, stdout, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    figure(&format!("deployment by a workflow: {} s", began.elapsed().as_secs()));
    let events: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no event is missing");
    assert_eq!(events.last().expect("events")["verdict"], "succeeded", "{stdout}");
    let run = events[0]["run"].as_str().expect("a run").to_owned();

    // Argo Workflows knows how far it was.
    let workflow = stderr.split("submitted as workflow ").nth(1).expect(&stderr);
    let workflow = workflow.split_whitespace().next().expect("a name");
    let workflows = site.objects("argoproj.io/v1alpha1", "Workflow", Some("tiphys"));
    let found = workflows.get(workflow).await.expect("the workflow");
    assert_eq!(found.data["status"]["progress"], "2/2", "{:#}", found.data["status"]);

    // It is recorded, and can be seen again: while its pod is there, and without.
    let (code, stdout, stderr) = said(&world, &["runs", "--platform", name, "-o", "json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let runs: Vec<Value> = serde_json::from_str(&stdout).expect("a list");
    assert_eq!((&runs[0]["run"], &runs[0]["state"]), (&json!(run), &json!("succeeded")));
    let (code, by_workflow, _) = said(&world, &["attach", workflow, "-o", "jsonl"]).await;
    assert_eq!(code, Some(0), "{by_workflow}");
    workflows.delete(workflow, &kube::api::DeleteParams::background()).await.expect("deleted");
    tiphys_e2e::until("the workflow is gone", async || {
        workflows.get_opt(workflow).await.expect("an answer").is_none()
    })
    .await;
    let (code, by_record, _) = said(&world, &["attach", &run, "-o", "jsonl"]).await;
    assert_eq!(code, Some(0), "{by_record}");
    assert_eq!(by_workflow, by_record, "what was recorded is what was said");

    let valid = submit(&site, "validate", "tiphys", &[("platform", name)]).await;
    assert_eq!(valid["phase"], "Succeeded", "{valid:#}");
    // In the wrong namespace there is no account for it, and without consent nothing goes.
    let parameters = [("platform", name), ("confirm", name)];
    let misplaced = submit(&site, "teardown", "tiphys", &parameters).await;
    assert_ne!(misplaced["phase"], "Succeeded", "{misplaced:#}");
    site.until_healthy(&format!("{name}-db")).await;
    let gone = submit(&site, "teardown", "tiphys-teardown", &parameters).await;
    assert_eq!(gone["phase"], "Succeeded", "{gone:#}");
    site.close().await;
}

async fn said(world: &World, args: &[&str]) -> (Option<i32>, String, String) {
    tiphys::said(&tiphys::run(args, &world.kubeconfig).await)
}
