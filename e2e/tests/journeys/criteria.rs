//! The extra health criteria: each kind on a real server that refuses, hangs, answers wrongly and
//! recovers, and all of them in the gate of a run.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_argocd::Application;
use tiphys_argocd::Destination;
use tiphys_cluster::Place;
use tiphys_e2e::pod::{FILE, PodEnd, ProgramPod};
use tiphys_e2e::servers::{self, Server};
use tiphys_e2e::{PlatformFile, Site, World, tiphys};
use tiphys_evidence::Prober;
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::Criterion;
use tiphys_model::criterion::{HttpCriterion, ResourceCriterion, ServiceCriterion};
use tiphys_model::platform::{Retry, Timeouts};

use crate::audit::Mark;
use crate::deploy::{arguments, configure, deploy};

/// The longest that an attempt may take, and what asking takes besides.
const HANGS: Duration = Duration::from_secs(8);

/// Asks one criterion at a time, with what was found.
struct Asked {
    prober: Prober,
    namespace: String,
}

impl Asked {
    async fn found(&self, criterion: &Criterion) -> String {
        let began = Instant::now();
        let here = json!({ "name": "in-cluster", "namespace": self.namespace });
        let here = Destination::from(&here);
        let unmet = self.prober.probe(std::slice::from_ref(criterion), &here).await;
        assert!(began.elapsed() < HANGS, "{criterion} took {:?}", began.elapsed());
        unmet.first().map_or_else(String::new, |unmet| {
            let text = format!("{criterion}: ");
            unmet.strip_prefix(&text).unwrap_or(unmet).to_owned()
        })
    }

    /// A server takes its time to start, and a busy machine to answer.
    async fn until(&self, criterion: &Criterion, wanted: &str) {
        let began = Instant::now();
        loop {
            let found = self.found(criterion).await;
            if found == wanted {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{criterion}: {found}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn at(port: u16) -> ServiceCriterion {
    ServiceCriterion { namespace: None, port, service: "here".to_owned() }
}

fn http(port: u16, path: &str, tls: bool) -> Criterion {
    Criterion::Http(HttpCriterion {
        expect: 200,
        namespace: None,
        path: path.to_owned(),
        port,
        service: "here".to_owned(),
        tls,
    })
}

pub(crate) async fn of_every_kind(world: Arc<World>) {
    servers::install();
    let site = Site::new(&world, "crit-kind").await;
    let namespace = "crit-kind-servers".to_owned();
    let [web, tls, database, cache] = [(); 4].map(|()| servers::free_port());
    servers::service(&site, &namespace, &[web, tls, database, cache]).await;
    let prober = Prober::new(world.client.clone(), Place::Outside);
    let asked = Asked { prober, namespace };
    let (tcp, postgres, redis) =
        (Criterion::Tcp(at(web)), Criterion::Postgres(at(database)), Criterion::Redis(at(cache)));
    let (plain, encrypted) = (http(web, "/", false), http(tls, "/", true));
    for criterion in [&tcp, &postgres, &redis, &plain, &encrypted] {
        asked.until(criterion, "connection refused").await;
    }

    let nginx = Server::nginx(web, tls);
    asked.until(&plain, "").await;
    for criterion in [&tcp, &encrypted] {
        asked.until(criterion, "").await;
    }
    asked.until(&http(web, "/down", false), "it answers 503, expected 200").await;
    asked.until(&http(tls, "/down", true), "it answers 503, expected 200").await;
    let other = asked.found(&Criterion::Redis(at(web))).await;
    assert!(other.starts_with("it answers \"HTTP/1.1 400"), "{other}");
    let other = asked.found(&Criterion::Postgres(at(web))).await;
    assert!(!other.is_empty() && !other.contains("no answer"), "{other}");
    let other = asked.found(&http(web, "/", true)).await;
    assert!(!other.is_empty() && !other.contains("no answer"), "{other}");
    nginx.freeze();
    for criterion in [&plain, &encrypted] {
        assert_eq!(asked.found(criterion).await, "no answer within 5 s", "{criterion}");
    }
    nginx.thaw();
    asked.until(&plain, "").await;

    let standby = Server::postgres(database, true);
    asked.until(&postgres, "the database system is not accepting connections (57P03)").await;
    drop(standby);
    asked.until(&postgres, "connection refused").await;
    let server = Server::postgres(database, false);
    asked.until(&postgres, "").await;
    server.freeze();
    assert_eq!(asked.found(&postgres).await, "no answer within 5 s");
    server.thaw();
    asked.until(&postgres, "").await;

    let wrong = Server::redis(cache, &["--rename-command", "PING", ""]);
    let unknown = "it answers \"-ERR unknown command 'PING', with args beginning with: \"";
    asked.until(&redis, unknown).await;
    drop(wrong);
    let server = Server::redis(cache, &["--requirepass", "secret"]);
    asked.until(&redis, "").await;
    server.freeze();
    assert_eq!(asked.found(&redis).await, "no answer within 5 s");
    server.thaw();
    asked.until(&redis, "").await;
    drop((server, nginx));

    of_a_resource(&site, &asked).await;
    site.close().await;
}

async fn of_a_resource(site: &Site, asked: &Asked) {
    let resource = |kind: &str, expression: &str| {
        Criterion::Resource(ResourceCriterion {
            api_version: "v1".to_owned(),
            expression: expression.to_owned(),
            kind: kind.to_owned(),
            name: "state".to_owned(),
            namespace: None,
        })
    };
    let ready = resource("ConfigMap", "obj.data.phase == 'Ready'");
    let absent = format!("not found yet in {}", asked.namespace);
    assert_eq!(asked.found(&ready).await, absent);
    let unknown = asked.found(&resource("Nothing", "true")).await;
    assert_eq!(unknown, "the cluster does not have the kind Nothing of v1 yet");
    let write = async |data: Value| {
        let metadata = json!({ "name": "state", "namespace": asked.namespace });
        site.apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data,
        }))
        .await;
    };
    write(json!({ "other": "a" })).await;
    assert_eq!(asked.found(&ready).await, "there is no field `phase` yet");
    write(json!({ "phase": "Creating" })).await;
    assert_eq!(asked.found(&ready).await, "obj.data.phase is \"Creating\"");
    write(json!({ "phase": "Ready" })).await;
    assert_eq!(asked.found(&ready).await, "");
}

/// A run waits for them, and for controllers that have not seen what was applied.
pub(crate) async fn in_a_run(world: Arc<World>) {
    servers::install();
    let mut site = Site::new(&world, "crit-run").await;
    let port = servers::free_port();
    let elsewhere = "crit-run-servers";
    servers::service(&site, elsewhere, &[port]).await;
    lagging_kind(&site).await;
    let mut database = app("crit-run-db", Behaviour::ConfigOnly);
    let redis = ServiceCriterion { namespace: Some(elsewhere.to_owned()), ..at(port) };
    database.health = vec![Criterion::Redis(redis)];
    let manifests = "apiVersion: lab.tiphys.dev/v1\nkind: Slow\nmetadata: { name: slow }\n\
                     spec: { size: 1 }\nstatus: { observedGeneration: 0 }\n";
    let slow = Behaviour::Resource { manifests: manifests.to_owned() };
    site.platform.apps = vec![
        database,
        app("crit-run-slow", slow),
        app("crit-run-web", Behaviour::ConfigOnly).depends_on(&["crit-run-db", "crit-run-slow"]),
    ];
    site.commit("an app with a criterion");
    let file = site.platform_file();
    configure(&world, &file).await;

    let mut command = tiphys::command(&arguments(&file), &world.kubeconfig);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut run = tokio::task::spawn_blocking(move || run.wait_with_output().expect("it ends"));
    for name in ["crit-run-db", "crit-run-slow"] {
        tokio::select! {
            _ = site.until_within(HURRY, name, "Synced and Healthy", is_well) => {}
            ended = &mut run => {
                unreachable!("it did not wait: {:?}", tiphys::said(&ended.expect("an end")))
            }
        }
    }
    // Long enough for a run that would not wait.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(site.application("crit-run-web").await.status.sync.status, "OutOfSync");
    let why = said(&world, &["why", "crit-run-db", "-f", file.path()]).await;
    let found = format!("redis here:{port}: connection refused");
    assert!(why.contains(&format!("crit-run-db is converging: {found}")), "{why}");
    assert!(why.contains("are the platform's own health criteria met?"), "{why}");
    let own = "are the platform's own health criteria met?";
    let name = site.platform.name.as_str();
    let alone = said(&world, &["why", "crit-run-db", "--platform", name]).await;
    assert!(alone.contains(&format!("crit-run-db is converging: {found}")), "{alone}");
    let answer = alone.lines().find(|line| line.contains(own)).unwrap_or_default();
    assert!(answer.contains(" no ") && answer.contains(&found), "{alone}");
    let why = said(&world, &["why", "crit-run-slow", "-f", file.path()]).await;
    assert!(why.contains("not for Slow/slow"), "{why}");

    // From inside the cluster it is reached by the address of the machine.
    let server = Server::redis(port, &["--bind", "0.0.0.0", "--protected-mode", "no"]);
    let slow = site.objects("lab.tiphys.dev/v1", "Slow", Some("crit-run-slow"));
    // Without a subresource for its status, writing one makes another generation.
    let caught_up = Patch::Merge(json!({ "status": { "observedGeneration": 2 } }));
    slow.patch("slow", &PatchParams::default(), &caught_up).await.expect("a patch");
    let output = run.await.expect("nobody cancels it");
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stderr}\n{stdout}");

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    assert_eq!(events.last().expect("events")["counts"]["alreadyCurrent"], 3, "{events:#?}");
    assert!(before.writes(&site).operations().is_empty(), "nothing is synced again");
    expect(&world, &file, 0, "").await;
    let inside = from_inside(&site, &file, elsewhere).await;
    assert_eq!(inside.code, 0, "{}", inside.log);
    drop(server);
    let inside = from_inside(&site, &file, elsewhere).await;
    assert!(inside.code == 1 && inside.log.contains(&found), "{}", inside.log);
    expect(&world, &file, 1, &found).await;
    let bindings = site.objects("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", None);
    bindings.delete(elsewhere, &DeleteParams::default()).await.expect("it was made here");
    site.close().await;
}

/// On a machine that has much else to do.
const HURRY: Duration = Duration::from_secs(240);

fn is_well(application: &Application) -> bool {
    let status = &application.status;
    status.sync.status == "Synced" && status.health.status == "Healthy"
}

fn app(name: &str, behaviour: Behaviour) -> AppSource {
    let mut app = AppSource::new(name, behaviour);
    let limit = HURRY;
    app.timeouts = Some(Timeouts { sync: limit, health: limit });
    app.retry = Some(Retry { limit: 0, ..Retry::default() });
    app
}

/// What `validate` says in a pod, with no kubeconfig.
async fn from_inside(site: &Site, file: &PlatformFile, namespace: &str) -> PodEnd {
    let account = json!({ "name": "inside", "namespace": namespace });
    site.apply(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": account })).await;
    site.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": namespace },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{ "kind": "ServiceAccount", "name": "inside", "namespace": namespace }],
    }))
    .await;
    let text = std::fs::read_to_string(file.path()).expect("the platform file");
    let pod = ProgramPod {
        name: "inside",
        namespace,
        account: "inside",
        args: &["validate", "-f", FILE],
        variables: &[],
        file: Some(&text),
    };
    pod.run(site).await
}

/// A kind that Argo CD has no health check for, with a status that anybody may write.
async fn lagging_kind(site: &Site) {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    site.apply(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "slows.lab.tiphys.dev" },
        "spec": {
            "group": "lab.tiphys.dev", "scope": "Namespaced",
            "names": { "kind": "Slow", "plural": "slows" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": open },
                "subresources": {},
            }],
        },
    }))
    .await;
}

async fn said(world: &World, args: &[&str]) -> String {
    let output = tiphys::run(args, &world.kubeconfig).await;
    let (_, stdout, stderr) = tiphys::said(&output);
    format!("{stdout}{stderr}")
}

/// What `validate` says.
async fn expect(world: &World, file: &PlatformFile, code: i32, text: &str) {
    let output = tiphys::run(&["validate", "-f", file.path()], &world.kubeconfig).await;
    let (found, stdout, stderr) = tiphys::said(&output);
    assert_eq!(found, Some(code), "{stdout}{stderr}");
    assert!(stdout.contains(text), "{stdout}{stderr}");
}
