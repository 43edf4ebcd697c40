//! An Argo CD behind the API server for tests: it refreshes and syncs at once, and all goes well. What
//! it syncs by itself, a window freezes.

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_cluster::scripted::Asked;
use tiphys_install::definitions;

use tiphys_cluster::scripted::{Objects, Server};
use tiphys_state::hold::windows;

pub(crate) const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
pub(crate) const PROJECT: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/apps";
const SETTINGS: &str = "/api/v1/namespaces/argocd/configmaps/argocd-cm";
const REFRESH: &str = "argocd.argoproj.io/refresh";
pub(crate) const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases/tiphys-prod";
/// The root app of the test platform.
pub(crate) const ROOT: &str = "prod-root";

/// `NAME`, or `NAMESPACE/NAME` for one that is not in Argo CD's own.
pub(crate) fn application(name: &str) -> String {
    match name.split_once('/') {
        None => format!("{APPLICATIONS}/{name}"),
        Some((namespace, name)) => {
            format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications/{name}")
        }
    }
}

/// With the platform's project, its root app, and our health definitions. The root app creates
/// these Applications when it is synced.
pub(crate) fn server(creates: &'static [&'static str]) -> Server {
    let server = Server::default();
    server.put(SETTINGS, json!({ "data": definitions::keys() }));
    server.put(PROJECT, json!({ "spec": {} }));
    server.put(&application(ROOT), unsynced("roots"));
    server.control(move |objects, path| {
        if path.contains("/applications/") {
            reconcile(objects, path, creates);
        }
    });
    server
}

/// Created, and never synced.
pub(crate) fn unsynced(project: &str) -> Value {
    let source = json!({ "repoURL": "https://git", "path": "." });
    json!({
        "spec": { "project": project, "source": source, "destination": { "name": "in-cluster" } },
        "status": { "sync": { "status": "OutOfSync" }, "health": { "status": "Missing" } },
    })
}

/// What was asked of the cluster, in order, without events, renewals and repetitions.
pub(crate) fn steps(server: &Server) -> Vec<String> {
    let mut steps: Vec<String> = server.asked().iter().filter_map(step).collect();
    steps.dedup();
    steps
}

fn step(asked: &Asked) -> Option<String> {
    let summary = asked.summary();
    let (method, object) = summary.split_once(' ')?;
    let (kind, name) = object.split_once('/').unwrap_or((object, ""));
    let body = &asked.body;
    Some(match (method, kind) {
        ("POST", "leases") => "take the Lease".to_owned(),
        ("PUT", "leases") if body["spec"]["holderIdentity"].is_null() => {
            "give up the Lease".to_owned()
        }
        ("GET", _) | (_, "events") | ("PUT", "leases") => return None,
        ("PATCH", "appprojects") => match &body["spec"]["syncWindows"][0]["applications"] {
            Value::Null => "hold nothing".to_owned(),
            apps => format!("hold {apps}"),
        },
        ("DELETE", "leases") => "remove the Lease".to_owned(),
        ("PATCH", "configmaps") => "keep the graph".to_owned(),
        ("DELETE", "configmaps") => "forget the graph".to_owned(),
        ("DELETE", "applications") => format!("delete {name}"),
        ("PATCH", "applications") if !body["metadata"]["finalizers"].is_null() => {
            format!("delete {name}")
        }
        ("PATCH", "applications") if !body["operation"].is_null() => format!("sync {name}"),
        ("PATCH", "applications") if !body["metadata"]["annotations"].is_null() => {
            format!("refresh {name}")
        }
        _ => summary,
    })
}

/// Who holds the platform's Lease.
pub(crate) fn holder(server: &Server) -> Option<String> {
    server.get(LEASE)?["spec"]["holderIdentity"].as_str().map(str::to_owned)
}

fn reconcile(objects: &mut Objects<'_>, path: &str, creates: &[&str]) {
    let Some(mut object) = objects.get(path) else { return };
    let refreshed = object["metadata"]["annotations"]
        .as_object_mut()
        .is_some_and(|annotations| annotations.remove(REFRESH).is_some());
    if is_frozen(objects, path, &object) {
        if refreshed {
            objects.put(path, object);
        }
        return;
    }
    let operation = object.as_object_mut().and_then(|object| object.remove("operation"));
    let version = i64::try_from(objects.version()).unwrap();
    if object["status"]["operationState"]["phase"] == "Terminating" {
        object["status"]["operationState"]["phase"] = "Failed".into();
    } else if let Some(operation) = &operation {
        sync(&mut object["status"], operation, &stamp(version));
        if let Some(namespace) = object["spec"]["destination"]["namespace"].as_str() {
            create(objects, &format!("/api/v1/namespaces/{namespace}"));
        }
        if path == application(ROOT) {
            let resource = |given: &&str| {
                let (namespace, name) = given.split_once('/').unwrap_or(("", *given));
                json!({
                    "group": "argoproj.io", "kind": "Application",
                    "namespace": namespace, "name": name,
                })
            };
            object["status"]["resources"] = creates.iter().map(resource).collect();
            for name in creates {
                objects.put(&application(name), unsynced("apps"));
            }
        }
    }
    if !object["metadata"]["deletionTimestamp"].is_null() {
        objects.remove(path);
    } else if refreshed || operation.is_some() {
        object["status"]["reconciledAt"] = stamp(version + 2).into();
        object["status"]["sync"]["revision"] = "r1".into();
        let Value::Object(spec) = &object["spec"] else { return };
        object["status"]["sync"]["comparedTo"] =
            json!({ "source": spec["source"], "destination": spec["destination"] });
        objects.put(path, object);
    }
}

/// A window keeps an automated operation from going on and from ending.
fn is_frozen(objects: &Objects<'_>, path: &str, application: &Value) -> bool {
    let windows = objects.get(PROJECT).map(|project| project["spec"]["syncWindows"].clone());
    let windows = windows.and_then(|windows| windows.as_array().cloned()).unwrap_or_default();
    let held = windows::held(&windows).iter().any(|name| path == self::application(name));
    held && application["operation"]["initiatedBy"]["automated"] == true
}

/// An automated operation that did not end before its app was held.
pub(crate) fn freeze(server: &Server, app: &str) {
    server.change(|objects| {
        let mut object = objects.get(&application(app)).unwrap();
        object["operation"] = json!({ "initiatedBy": { "automated": true } });
        let (phase, message) = ("Running", "Sync operation blocked by sync window");
        object["status"]["operationState"] =
            json!({ "phase": phase, "message": message, "operation": object["operation"] });
        objects.put(&application(app), object);
    });
}

/// As with `CreateNamespace=true`.
fn create(objects: &mut Objects<'_>, namespace: &str) {
    if objects.get(namespace).is_none() {
        objects.put(namespace, json!({}));
    }
}

fn sync(status: &mut Value, operation: &Value, finished_at: &str) {
    status["operationState"] = json!({
        "phase": "Succeeded",
        "operation": operation,
        "finishedAt": finished_at,
        "syncResult": { "revision": "r1" },
    });
    status["sync"]["status"] = "Synced".into();
    status["health"]["status"] = "Healthy".into();
}

/// Later with every write.
fn stamp(version: i64) -> String {
    Timestamp::from_second(1_800_000_000 + version).unwrap().to_string()
}
