//! Our health definitions in a real Argo CD: it judges by them as we do, and they are installed
//! without taking anything from anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use tiphys_argocd::rest::REQUEST_TIMEOUT;
use tiphys_argocd::{AppAddress, Application};
use tiphys_e2e::{PlatformFile, Site, World, figure, tiphys};
use tiphys_health::{Evaluator, Limits, Script, definitions, objects};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::configure;

/// An object of a case file, made fit for a cluster.
struct Case {
    kind: String,
    object: Value,
    expected: (String, String),
}

/// All cases of our definitions. Generations are the API server's: what was seen of the newest
/// one stays so, and what was not, too.
fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/health/definitions");
    let mut all = Vec::new();
    for definition in definitions() {
        let kind = definition.kind.to_string();
        let folder = root.join(&kind);
        let text = read(&folder.join("health_test.yaml"));
        let cases: Value = serde_saphyr::from_str(&text).expect("cases are YAML");
        for case in cases["tests"].as_array().expect("a list of tests") {
            let input = case["inputPath"].as_str().expect("a path");
            let mut object = objects(&read(&folder.join(input))).expect("an object").remove(0);
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
            seen_generations(&mut object, generation);
            let name = input.trim_start_matches("testdata/").trim_end_matches(".yaml");
            let lower = definition.kind.kind.to_lowercase();
            let name = format!("{lower}-{}", name.replace('_', "-"));
            let mut metadata = json!({ "name": name });
            if let Some(annotations) = object["metadata"].get("annotations") {
                metadata["annotations"] = annotations.clone();
            }
            object["metadata"] = metadata;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let expected = &case["healthStatus"];
            let expected = (text(&expected["status"]), text(&expected["message"]));
            all.push(Case { kind: kind.clone(), object, expected });
        }
    }
    all
}

fn read(path: &PathBuf) -> String {
    std::fs::read_to_string(path).expect("our own files are there")
}

fn seen_generations(value: &mut Value, generation: i64) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_i64().filter(|_| name == "observedGeneration") {
                    Some(seen) => *field = i64::from(seen >= generation).into(),
                    None => seen_generations(field, generation),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                seen_generations(item, generation);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The kind of an object without a controller; whoever applies it may write its status.
fn crd(object: &Value) -> Value {
    let version = object["apiVersion"].as_str().expect("a version");
    let (group, version) = version.rsplit_once('/').expect("a group");
    let kind = object["kind"].as_str().expect("a kind");
    let plural = format!("{}s", kind.to_lowercase());
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": { "openAPIV3Schema": open },
            }],
        },
    })
}

pub(crate) async fn as_argo_cd_judges(world: Arc<World>) {
    let mut site = Site::new(&world, "def").await;
    let app = "def-cases";
    let cases = cases();
    // Applications have a kind already, and elsewhere than in Argo CD's namespace no controller.
    let mut made = BTreeSet::new();
    for case in cases.iter().filter(|case| case.object["kind"] != "Application") {
        let crd = crd(&case.object);
        if made.insert(crd["metadata"]["name"].as_str().unwrap_or_default().to_owned()) {
            site.apply(crd).await;
        }
    }
    let manifests: String = cases.iter().map(|case| format!("---\n{}\n", case.object)).collect();
    site.platform.apps = vec![AppSource::new(app, Behaviour::Resource { manifests })];
    let revision = site.commit("an object for each case");
    let file = site.platform_file();
    configure(&world, &file).await;
    site.create_application(app, revision.as_str(), false).await;
    world.argocd.refresh(&AppAddress::own(app, &site.platform.project)).await.expect("a refresh");
    site.sync(app, revision.as_str(), 1).await.expect("the sync is taken");
    // Each object is applied on its own, so a busy machine takes minutes.
    let patience = Duration::from_secs(300);
    let synced = |application: &Application| application.status.sync.status == "Synced";
    site.until_within(patience, app, "synced", synced).await;

    let began = Instant::now();
    let differences = loop {
        let tree = tree(&world, &site, app).await;
        let mut live = Vec::new();
        for case in &cases {
            live.push(case.live(&site, app).await);
        }
        let differences = differences(&cases, &live, &tree);
        if differences.is_empty() || began.elapsed() > Duration::from_secs(60) {
            break differences;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    };
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let kinds: BTreeSet<&str> = cases.iter().map(|case| &*case.kind).collect();
    figure(&format!("{} objects of {} kinds judged alike", cases.len(), kinds.len()));
    let crds = site.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    for crd in made {
        crds.delete(&crd, &DeleteParams::default()).await.expect("it was made here");
    }
    site.close().await;
}

impl Case {
    fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).expect("every object has it")
    }

    async fn live(&self, site: &Site, namespace: &str) -> Value {
        let objects = site.objects(self.text("/apiVersion"), self.text("/kind"), Some(namespace));
        let live = objects.get(self.text("/metadata/name")).await.expect("it was synced");
        serde_json::to_value(live).expect("an object")
    }
}

/// Where Argo CD's verdict, ours on the same object, and the case file are not the same.
fn differences(cases: &[Case], live: &[Value], tree: &[Value]) -> Vec<String> {
    let mut evaluator = Evaluator::new(Limits::default());
    let scripts: BTreeMap<String, Script> = definitions()
        .into_iter()
        .map(|definition| (definition.kind.to_string(), definition.script))
        .collect();
    let mut found = Vec::new();
    for (case, live) in cases.iter().zip(live) {
        let Case { kind, expected, .. } = case;
        let name = case.text("/metadata/name");
        let ours = evaluator.evaluate(&scripts[kind], live).expect("a verdict");
        let status = ours.status.map(|status| status.to_string()).unwrap_or_default();
        let ours = (status, ours.message);
        let node =
            tree.iter().find(|node| node["name"] == name && node["kind"] == case.text("/kind"));
        let health = node.map_or(&Value::Null, |node| &node["health"]);
        let text = |field: &str| health[field].as_str().unwrap_or_default().to_owned();
        let theirs = (text("status"), text("message"));
        if ours != theirs || ours != *expected {
            found.push(format!(
                "{kind} {name}: Argo CD {theirs:?}, ours {ours:?}, expected {expected:?}"
            ));
        }
    }
    found
}

async fn tree(world: &World, site: &Site, app: &str) -> Vec<Value> {
    let path = format!("applications/{app}/resource-tree?project={}", site.platform.project);
    let tree: Value =
        world.argocd.call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT).await.expect("a tree");
    tree["nodes"].as_array().cloned().unwrap_or_default()
}

const CEPH: &str = "resource.customizations.health.ceph.rook.io_CephCluster";

/// An Argo CD of which there is nothing but its settings, so that nobody minds what happens to
/// them.
pub(crate) async fn nothing_of_others_is_taken(world: Arc<World>) {
    let mut site = Site::new(&world, "clash").await;
    let namespace = "clash-argocd";
    site.platform.apps = vec![AppSource::new("clash-app", Behaviour::ConfigOnly)];
    site.commit("an app");
    let theirs = "    namespace: argocd\n";
    let file = site.platform_file_with(|text| {
        assert!(text.contains(theirs), "{text}");
        text.replace(theirs, &format!("    namespace: {namespace}\n"))
    });
    let object = |kind: &str, name: &str, field: &str, data: Value| {
        let metadata = json!({ "name": name, "namespace": namespace });
        json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata, field: data })
    };
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
    }))
    .await;
    let insecure = json!({ "server.insecure": "true" });
    site.apply(object("ConfigMap", "argocd-cmd-params-cm", "data", insecure)).await;
    site.apply(object("ConfigMap", "argocd-rbac-cm", "data", json!({ "theirs": "" }))).await;
    let key = json!({ "server.secretkey": "a key of their own" });
    site.apply(object("Secret", "argocd-secret", "stringData", key)).await;
    let settings = async |script: &str| {
        site.apply(object("ConfigMap", "argocd-cm", "data", json!({ CEPH: script }))).await;
    };

    settings("return { status = 'Healthy' }\n").await;
    let (code, said) = run(&world, "configure", &file).await;
    assert_eq!(code, Some(1), "{said}");
    for text in [CEPH, "is managed by `tiphys-e2e`, and Tiphys needs another text"] {
        assert!(said.contains(text), "no `{text}` in:\n{said}");
    }
    let ceph = definitions().into_iter().find(|one| one.kind.kind == "CephCluster");
    let ours = ceph.expect("we have one").script.text;
    settings(&ours).await;
    for _ in 0..2 {
        let (code, said) = run(&world, "configure", &file).await;
        assert_eq!(code, Some(0), "{said}");
    }

    settings(&ours.replace("\"HEALTH_OK\" then", "\"HEALTH_FINE\" then")).await;
    let (code, said) = run(&world, "deploy", &file).await;
    assert_eq!(code, Some(3), "{said}");
    for text in [
        "Argo CD's health definitions differ from the plan's",
        "- if ceph.health == \"HEALTH_FINE\" then",
        "+ if ceph.health == \"HEALTH_OK\" then",
        "run `tiphys configure` to install the plan's definitions",
    ] {
        assert!(said.contains(text), "no `{text}` in:\n{said}");
    }
    let all = site.objects("v1", "ConfigMap", Some(namespace));
    all.delete("argocd-cm", &DeleteParams::default()).await.expect("it is there");
    site.apply(object("ConfigMap", "argocd-cm", "data", json!({ "theirs": "" }))).await;
    let (code, said) = run(&world, "deploy", &file).await;
    assert_eq!(
        (code, said.contains(&format!("missing in argocd-cm: {FIRST}"))),
        (Some(3), true),
        "{said}"
    );
    // Nothing was begun: there is no Lease.
    let leases = site.objects("coordination.k8s.io/v1", "Lease", Some(namespace));
    assert!(leases.list(&ListParams::default()).await.expect("a list").items.is_empty());
    site.close().await;
}

/// The first of all keys.
const FIRST: &str = "resource.customizations.health.acid.zalan.do_postgresql";

async fn run(world: &World, action: &str, file: &PlatformFile) -> (Option<i32>, String) {
    let mut args = vec![action, "-f", file.path()];
    if action == "deploy" {
        args.push("--allow-uncommitted");
    }
    let output = tiphys::run(&args, &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    (code, format!("{stdout}{stderr}"))
}
