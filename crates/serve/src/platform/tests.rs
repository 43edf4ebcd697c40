//! A platform in an API server by script.

use std::cell::RefCell;

use http::Method;
use serde_json::{Value, json};
use tiphys_argocd::application::REFRESH;
use tiphys_cluster::names::{ARGOCD_LABEL, LOOP_LABEL, PLATFORM_LABEL};
use tiphys_cluster::scripted::{Answer, Server};
use tiphys_model::{Platform, PlatformName, Scope};
use tiphys_run::{Counts, Evidence};
use tiphys_spec::{Source, Sources};
use tiphys_state::graph::{DeployedGraph, GraphStore};

use super::*;

const MAP: &str = "/api/v1/namespaces/tiphys/configmaps/tiphys.argocd.prod.deploy-loop";
const ROOT: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/prod-root";
const WORKFLOWS: &str = "/apis/argoproj.io/v1alpha1/namespaces/tiphys/workflows";

fn platform() -> Platform {
    let file = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: prod }
spec:
  source: { repoURL: https://git.example/team/platform.git, path: root }
  deploy: { mode: automatic, commitStatus: { provider: github } }
  stacks: [{ name: s, apps: [{ name: a }] }]
";
    let source = Source::new("platform.yaml", file.into()).unwrap();
    tiphys_spec::platform(&Sources::new(vec![source])).unwrap()
}

/// A platform that is deployed at a revision, and what the loop says of it.
struct Cluster {
    server: Server,
    watched: Watched,
    said: RefCell<Vec<Said>>,
}

impl Cluster {
    async fn deployed_at(revision: &str) -> Self {
        let server = Server::default();
        let labels = json!({ PLATFORM_LABEL: "prod", ARGOCD_LABEL: "argocd", LOOP_LABEL: "true" });
        server.put(MAP, json!({ "metadata": { "labels": labels } }));
        let cluster = Cluster { server, watched: Watched::default(), said: RefCell::default() };
        cluster.is_deployed_at(revision).await;
        cluster
    }

    async fn is_deployed_at(&self, revision: &str) {
        let platform = platform();
        let plan = tiphys_plan::plan(&platform, &Scope::Platform).unwrap();
        let mut graph = DeployedGraph::new(&platform, None);
        graph.plan(&platform, &plan, None);
        graph.deployed = Some(revision.to_owned());
        self.store().write(&graph).await.unwrap();
    }

    fn store(&self) -> GraphStore {
        GraphStore::new(&self.server.client(), "argocd", &PlatformName::parse("prod").unwrap())
    }

    fn git_has(&self, revision: &str, compared: Timestamp) {
        let sync = json!({ "status": "OutOfSync", "revision": revision });
        let status = json!({ "sync": sync, "reconciledAt": format!("{compared:.0}") });
        let spec = json!({ "project": "roots", "source": {} });
        self.server.put(ROOT, json!({ "spec": spec, "status": status }));
    }

    /// One look of the loop; which workflows there are then.
    async fn look(&mut self) -> Vec<String> {
        let client = self.server.client();
        let states = LoopStore::new(&client).list().await.unwrap();
        for state in &states {
            let tell = |said| self.said.borrow_mut().push(said);
            let changes = tiphys_state::changes::noted(&client).await.unwrap();
            self.watched.attend(&client, "us", (state, &changes), &tell).await;
        }
        let posts = self.server.asked().into_iter().filter(|one| one.method == Method::POST);
        posts.map(|post| post.body["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The annotations about deployments: outcome, revision, message.
    fn shown(&self) -> [Value; 3] {
        let annotations = &self.server.get(ROOT).unwrap()["metadata"]["annotations"];
        ["", "-revision", "-message"]
            .map(|end| annotations[format!("tiphys.dev/deployment{end}")].clone())
    }

    /// An attempt at a revision has ended, and has left a record.
    fn has_failed_at(&self, revision: &str) {
        self.server.change(|objects| {
            let mut map = objects.get(MAP).unwrap();
            let attempts = json!({
                "revision": revision, "count": 1, "workflow": "w", "at": Timestamp::now(),
            });
            map["data"]["attempts"] = attempts.to_string().into();
            objects.put(MAP, map);
        });
        let head = json!({
            "run": "abc-7", "platform": "prod", "argocd": "argocd", "action": "deploy",
            "engine": "local", "scope": "platform", "plan": format!("sha256:{}", "0".repeat(64)),
            "by": "somebody", "started": Timestamp::now(), "segments": 1, "verdict": "failed",
            "exit": 1, "makespanMs": 5, "criticalPathMs": 4, "counts": Counts::default(),
        });
        let failed = json!({
            "seq": 1, "at": Timestamp::now(), "elapsedMs": 0, "kind": "step-failed", "app": "a",
            "state": "failed", "cause": "no such image", "evidence": Evidence::default(), "hint": "",
        });
        let lines = format!("{{\"kind\":\"progress\"}}\n{failed}\n");
        let maps = "/api/v1/namespaces/tiphys/configmaps";
        let name = "argocd.prod.20261119-120000-000.abc-7";
        let record = json!({ "data": { "run.json": head.to_string() } });
        self.server.put(&format!("{maps}/{name}"), record);
        self.server.put(&format!("{maps}/{name}.1"), json!({ "data": { "events.jsonl": lines } }));
    }

    fn last_said(&self) -> String {
        match self.said.borrow().last() {
            Some(Said::Note(text) | Said::Warning(text)) => text.clone(),
            None => String::new(),
        }
    }

    fn kept(&self, key: &str) -> Value {
        let map = self.server.get(MAP).unwrap();
        serde_json::from_str(map["data"][key].as_str().unwrap_or("null")).unwrap()
    }
}

#[tokio::test]
async fn news_are_deployed_once() {
    let mut cluster = Cluster::deployed_at("old").await;
    cluster.git_has("old", Timestamp::now());
    assert!(cluster.look().await.is_empty());
    assert_eq!(cluster.last_said(), "prod: old is deployed");
    cluster.git_has("new", Timestamp::now());
    let submitted = cluster.look().await;
    assert_eq!(submitted.len(), 1);
    let workflow = cluster.server.get(&format!("{WORKFLOWS}/{}", submitted[0])).unwrap();
    assert_eq!(workflow["spec"]["workflowTemplateRef"]["name"], "tiphys-deploy");
    assert_eq!(cluster.last_said(), format!("prod: deploying new: workflow {}", submitted[0]));
    assert_eq!(cluster.look().await, submitted, "it is being deployed");
    let busy = format!("prod: new is not deployed yet; in progress: workflow {}", submitted[0]);
    assert_eq!(cluster.last_said(), busy);
    cluster.is_deployed_at("new").await;
    assert_eq!(cluster.look().await, submitted);
    assert_eq!(cluster.kept("seen")["next"], json!({ "state": "up-to-date", "revision": "new" }));
    assert_eq!(cluster.kept("seen")["by"], "us");
}

#[tokio::test]
async fn an_attempt_that_could_not_be_noted_is_the_same_attempt() {
    let mut cluster = Cluster::deployed_at("old").await;
    cluster.git_has("new", Timestamp::now());
    cluster.server.next(Method::PATCH, "deploy-loop", Answer::refused(500, "no"));
    let first = cluster.look().await;
    assert_eq!((first.len(), cluster.kept("attempts")), (1, Value::Null));
    // Its run is over before the loop looks again.
    cluster.server.change(|objects| {
        let path = format!("{WORKFLOWS}/{}", first[0]);
        let mut workflow = objects.get(&path).unwrap();
        workflow["status"] = json!({ "phase": "Failed", "finishedAt": "2026-11-19T12:00:00Z" });
        objects.put(&path, workflow);
    });
    // The list is not filtered here, so it counts as in progress; the next look submits it again.
    cluster.server.next(Method::GET, "workflows?", Answer::Object(json!({ "items": [] })));
    let again = cluster.look().await;
    assert_eq!(again, [first[0].clone(), first[0].clone()], "the API server refuses the second");
    assert_eq!(cluster.kept("attempts")["count"], 1);
    assert_eq!(cluster.kept("attempts")["workflow"], first[0].as_str());
}

#[tokio::test]
async fn nothing_is_deployed_that_somebody_removes() {
    let mut cluster = Cluster::deployed_at("old").await;
    let mut graph = cluster.store().read().await.unwrap().unwrap();
    graph.removing = true;
    cluster.store().write(&graph).await.unwrap();
    cluster.git_has("new", Timestamp::now());
    assert!(cluster.look().await.is_empty());
    assert!(cluster.last_said().contains("waiting for the first deployment"));
}

#[tokio::test]
async fn a_root_app_that_nobody_compares_is_refreshed() {
    let mut cluster = Cluster::deployed_at("old").await;
    let server = cluster.server.clone();
    let refreshed = || server.get(ROOT).unwrap()["metadata"]["annotations"][REFRESH].clone();
    cluster.git_has("old", Timestamp::now() - Duration::from_secs(230));
    cluster.look().await;
    assert_eq!(refreshed(), Value::Null);
    cluster.git_has("old", Timestamp::now() - COMPARED);
    cluster.look().await;
    assert_eq!(refreshed(), "normal");
    cluster.git_has("old", Timestamp::now() - COMPARED);
    cluster.look().await;
    assert_eq!(refreshed(), Value::Null, "not with every look");
}

#[tokio::test]
async fn the_root_app_shows_what_deployments_have_come_to() {
    let mut cluster = Cluster::deployed_at("old").await;
    cluster.git_has("old", Timestamp::now());
    cluster.look().await;
    assert_eq!(cluster.shown(), ["succeeded", "old", "old is deployed"]);
    let writes = |cluster: &Cluster| {
        let asked = cluster.server.asked().into_iter();
        asked.filter(|one| one.method == Method::PATCH && one.path.starts_with(ROOT)).count()
    };
    let before = writes(&cluster);
    cluster.look().await;
    assert_eq!(writes(&cluster), before, "it is written once");

    let annotations = cluster.server.get(ROOT).unwrap()["metadata"]["annotations"].clone();
    let sync = json!({ "status": "OutOfSync", "revision": "new" });
    let status = json!({ "sync": sync, "reconciledAt": format!("{:.0}", Timestamp::now()) });
    let root = json!({
        "metadata": { "annotations": annotations }, "spec": { "project": "roots", "source": {} },
        "status": status,
    });
    cluster.server.put(ROOT, root);
    cluster.has_failed_at("new");
    cluster.look().await;
    assert_eq!(cluster.shown(), ["failed", "new", "new is not deployed: a: no such image"]);
    cluster.is_deployed_at("new").await;
    cluster.look().await;
    assert_eq!(cluster.shown(), ["recovered", "new", "new is deployed"]);
}

#[tokio::test(start_paused = true)]
async fn a_git_server_that_cannot_be_told_holds_nothing_up() {
    let (old, new) = ("0".repeat(40), "1".repeat(40));
    let mut cluster = Cluster::deployed_at(&old).await;
    cluster.git_has(&new, Timestamp::now());
    assert_eq!(cluster.look().await.len(), 1);
    let token = "/api/v1/namespaces/tiphys-system/secrets/tiphys.argocd.prod.commit-status";
    let tries = |cluster: &Cluster| {
        cluster.server.asked().iter().filter(|asked| asked.path.starts_with(token)).count()
    };
    let told = cluster.kept("told");
    assert_eq!((&told["revision"], &told["state"]), (&json!(new), &json!("pending")));
    let why = told["refused"].as_str().unwrap();
    assert!(why.contains("cannot read the Secret tiphys.argocd.prod.commit-status"), "{why}");
    cluster.look().await;
    assert_eq!(tries(&cluster), 1, "not with every look");
    tokio::time::advance(Duration::from_secs(61)).await;
    cluster.look().await;
    assert_eq!(tries(&cluster), 2);
    cluster.is_deployed_at(&new).await;
    tokio::time::advance(Duration::from_secs(61)).await;
    cluster.look().await;
    assert_eq!(cluster.kept("told")["state"], "succeeded");
    assert_eq!(cluster.shown()[0], "succeeded");
}

#[tokio::test]
async fn changes_of_objects_have_the_platform_validated_once() {
    let mut cluster = Cluster::deployed_at("old").await;
    cluster.git_has("old", Timestamp::now());
    let change = |cluster: &Cluster, event: &str| {
        let labels = json!({
            PLATFORM_LABEL: "prod", ARGOCD_LABEL: "argocd", "tiphys.dev/trigger": "certificates",
            "tiphys.dev/validates": "true",
        });
        let metadata = json!({ "labels": labels, "annotations": { "tiphys.dev/scope": "app:a" } });
        let data = json!({ "last": "2026-11-19T03:00:00Z", "call": event });
        let path = "/api/v1/namespaces/tiphys-events/configmaps/prod-certificates-01234";
        cluster.server.put(path, json!({ "metadata": metadata, "data": data }));
    };
    assert!(cluster.look().await.is_empty());
    change(&cluster, "0a1b");
    let submitted = cluster.look().await;
    let [workflow] = &submitted[..] else { panic!("one: {submitted:?}") };
    let spec = cluster.server.get(&format!("{WORKFLOWS}/{workflow}")).unwrap()["spec"].clone();
    assert_eq!(spec["workflowTemplateRef"]["name"], "tiphys-validate");
    assert_eq!(spec["arguments"]["parameters"][1], json!({ "name": "scope", "value": "app:a" }));
    let said = format!("prod: certificates changed, validating: workflow {workflow}");
    assert_eq!(cluster.last_said(), said);
    assert_eq!(cluster.kept("validated")["certificates"]["change"], "0a1b");
    assert_eq!(cluster.look().await, submitted, "it is the same change");
    change(&cluster, "2c3d");
    assert_eq!(cluster.look().await, submitted, "it rests for a while");

    let mut graph = cluster.store().read().await.unwrap().unwrap();
    graph.removing = true;
    cluster.store().write(&graph).await.unwrap();
    cluster.git_has("new", Timestamp::now());
    cluster.server.change(|objects| {
        let mut map = objects.get(MAP).unwrap();
        map["data"]["validated"] = "{}".into();
        objects.put(MAP, map);
    });
    assert_eq!(cluster.look().await, submitted, "nobody wants a platform validated that goes");
}

#[tokio::test]
async fn trouble_is_said_once() {
    let mut cluster = Cluster::deployed_at("old").await;
    cluster.look().await;
    cluster.look().await;
    let why = "cannot tell what Git has: the root app `prod-root` does not exist";
    assert_eq!(*cluster.said.borrow(), [Said::Note(format!("prod: {why}"))]);
}

#[test]
fn an_attempt_has_one_name_and_no_other_has_it() {
    let mut state = LoopState {
        is_watched: true,
        validates: false,
        platform: PlatformName::parse("prod").unwrap(),
        argocd: "argocd".to_owned(),
        pause: None,
        attempts: None,
        seen: None,
        told: None,
        validated: std::collections::BTreeMap::new(),
    };
    let first = name_of_attempt(&state, "a", 1);
    assert_eq!(first, name_of_attempt(&state, "a", 1));
    assert_ne!(first, name_of_attempt(&state, "b", 1));
    assert_ne!(first, name_of_attempt(&state, "a", 2));
    let at = Timestamp::UNIX_EPOCH;
    let revision = "b".to_owned();
    state.attempts = Some(Attempts { revision, count: 1, workflow: "w".to_owned(), at });
    assert_ne!(first, name_of_attempt(&state, "a", 1), "it comes back after another one");
}
