//! One meaning, several engines: the same random platforms with the same faults, rehearsed and on the
//! cluster, end alike, app by app.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_e2e::{Site, World, count, figure, seed, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::{Retry, Timeouts, WorkflowMode};
use tiphys_sim::Chance;

use crate::deploy::configure;
use crate::workflows::install_chart;

/// What the platform of a way to deploy is called, the engine, and what a run on workflows has.
const ENGINES: [(&str, &str, WorkflowMode); 3] = [
    ("conf-local", "local", WorkflowMode::Single),
    ("conf-single", "workflows", WorkflowMode::Single),
    ("conf-nodes", "workflows", WorkflowMode::Nodes),
];

/// What is wrong with an app.
#[derive(Debug, Clone, PartialEq)]
struct Fault {
    /// In a rehearsal.
    name: &'static str,
    /// In the cluster.
    behaviour: Behaviour,
    /// How its step ends.
    ends: &'static str,
}

const FAULTS: [Fault; 5] = [
    Fault { name: "refuse", behaviour: Behaviour::FailsToSync, ends: "failed" },
    Fault {
        name: "degraded",
        behaviour: Behaviour::Degrades { after: Duration::from_secs(1) },
        ends: "failed",
    },
    Fault { name: "never-healthy", behaviour: Behaviour::NeverHealthy, ends: "timed-out" },
    Fault { name: "comparison-error", behaviour: Behaviour::InvalidManifest, ends: "failed" },
    Fault { name: "out-of-sync", behaviour: Behaviour::StaysOutOfSync, ends: "failed" },
];

/// A soak sets `TIPHYS_E2E_REHEARSALS=200` and `TIPHYS_E2E_GRAPHS=30`.
pub(crate) async fn of_engines(world: Arc<World>) {
    let mut chance = Chance::new(seed());
    let rehearsals = count("TIPHYS_E2E_REHEARSALS", 10);
    for _ in 0..rehearsals {
        let graph = Graph::random(&mut chance);
        assert_eq!(graph.rehearse(&world).await, graph.expected(), "{graph:#?}");
    }
    figure(&format!("{rehearsals} random platforms rehearsed: each app ends as the graph says"));
    install_chart().await;
    let graphs = count("TIPHYS_E2E_GRAPHS", 1);
    let (mut apps, mut failed) = (0, 0);
    for _ in 0..graphs {
        let graph = Graph::random(&mut chance);
        let rehearsed = graph.rehearse(&world).await;
        assert_eq!(rehearsed, graph.expected(), "rehearsed: {graph:#?}");
        let deployments = ENGINES.map(|engine| graph.deploy(&world, engine));
        let deployed = futures::future::join_all(deployments).await;
        for ((name, ..), deployed) in ENGINES.iter().zip(deployed) {
            assert_eq!(deployed, rehearsed, "{name}: {graph:#?}");
        }
        apps += graph.apps.len();
        failed += rehearsed.apps.values().filter(|state| *state != "done").count();
    }
    figure(&format!(
        "{graphs} random platforms of {apps} apps, {failed} of which fail or are skipped: rehearsed, \
         local, on workflows and with nodes alike"
    ));
}

#[derive(Debug)]
struct Graph {
    apps: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    depends_on: Vec<usize>,
    fault: Option<&'static Fault>,
}

/// What came of a run, whatever its apps are called.
#[derive(Debug, PartialEq)]
struct Outcome {
    exit: Option<i32>,
    verdict: String,
    /// By position: done, the state of a failure, or skipped and because of whom.
    apps: BTreeMap<usize, String>,
}

impl Graph {
    fn random(chance: &mut Chance) -> Graph {
        let size = usize::try_from(chance.between(4, 9)).expect("a few");
        let node = |at: usize| {
            let depends_on = (0..at).filter(|_| chance.once_in(3)).collect();
            let fault = chance.once_in(4).then(|| chance.pick(&FAULTS)).flatten();
            Node { depends_on, fault }
        };
        Graph { apps: (0..size).map(node).collect() }
    }

    /// What follows from the graph and the faults alone.
    fn expected(&self) -> Outcome {
        let mut apps: BTreeMap<usize, String> = BTreeMap::new();
        for (at, node) in self.apps.iter().enumerate() {
            let ends = if node.depends_on.iter().any(|on| apps[on] != "done") {
                "skipped"
            } else {
                node.fault.map_or("done", |fault| fault.ends)
            };
            apps.insert(at, ends.to_owned());
        }
        let (exit, verdict) =
            if apps.values().all(|ends| ends == "done") { (0, "succeeded") } else { (1, "failed") };
        Outcome { exit: Some(exit), verdict: verdict.to_owned(), apps }
    }

    /// The platform of one engine, with names of its own.
    fn fill(&self, site: &mut Site) {
        let name = site.platform.name.clone();
        site.platform.carries_its_file = true;
        let apps = self.apps.iter().enumerate().map(|(at, node)| {
            let behaviour =
                node.fault.map_or(Behaviour::ConfigOnly, |fault| fault.behaviour.clone());
            let mut app = AppSource::new(&format!("{name}-{at}"), behaviour);
            app.depends_on = node.depends_on.iter().map(|on| format!("{name}-{on}")).collect();
            let never = node.fault.is_some_and(|fault| fault.name == "never-healthy");
            let health = Duration::from_secs(if never { 20 } else { 200 });
            app.timeouts = Some(Timeouts { sync: Duration::from_secs(200), health });
            app.retry = Some(Retry { limit: 0, ..Retry::default() });
            app
        });
        site.platform.apps = apps.collect();
    }

    async fn rehearse(&self, world: &Arc<World>) -> Outcome {
        let mut site = Site::new(world, "conf-rehearsed").await;
        self.fill(&mut site);
        let file = site.platform_file();
        let faults = self.apps.iter().enumerate().filter_map(|(at, node)| {
            Some(format!("--fault=conf-rehearsed-{at}={}", node.fault?.name))
        });
        let faults: Vec<String> = faults.collect();
        let mut args = vec!["rehearse", "-f", file.path(), "--speed", "max", "-o", "jsonl"];
        args.extend(faults.iter().map(String::as_str));
        let outcome = outcome(&site, &tiphys::said(&tiphys::run(&args, &world.kubeconfig).await));
        site.close().await;
        outcome
    }

    async fn deploy(
        &self,
        world: &Arc<World>,
        (name, engine, mode): (&str, &str, WorkflowMode),
    ) -> Outcome {
        let mut site = Site::new(world, name).await;
        self.fill(&mut site);
        site.platform.workflows = mode;
        site.commit("a random platform");
        configure(world, &site.platform_file()).await;
        let args = ["deploy", "--engine", engine, "--platform", name, "-o", "jsonl"];
        let outcome = outcome(&site, &tiphys::said(&tiphys::run(&args, &world.kubeconfig).await));
        site.close().await;
        outcome
    }
}

fn outcome(site: &Site, (exit, stdout, stderr): &(Option<i32>, String, String)) -> Outcome {
    let name = &site.platform.name;
    let events: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let position = |app: &Value| -> usize {
        let app = app.as_str().expect("a name");
        let number = app.strip_prefix(&format!("{name}-")).expect("one of ours");
        number.parse().expect("a number")
    };
    let mut apps = BTreeMap::new();
    let mut done: Vec<usize> = Vec::new();
    for event in &events {
        let state = match event["kind"].as_str().unwrap_or_default() {
            "step-syncing" => {
                let at = position(&event["app"]);
                for on in &site.platform.apps[at].depends_on {
                    let on = position(&on.as_str().into());
                    assert!(done.contains(&on), "{at} starts before {on} is done: {stdout}");
                }
                continue;
            }
            "step-done" => {
                done.push(position(&event["app"]));
                "done".to_owned()
            }
            "step-failed" => event["state"].as_str().unwrap_or_default().to_owned(),
            "step-skipped" => {
                let chain = event["because"].as_array().expect("a chain");
                // Which of several ways to the failure is named may differ; that it failed may not.
                let cause = chain.last().expect("whoever failed");
                assert_ne!(apps.get(&position(cause)), Some(&"done".to_owned()), "{event}");
                "skipped".to_owned()
            }
            _ => continue,
        };
        apps.insert(position(&event["app"]), state);
    }
    let last = events.last().expect(stderr);
    let verdict = last["verdict"].as_str().unwrap_or_default().to_owned();
    Outcome { exit: *exit, verdict, apps }
}
