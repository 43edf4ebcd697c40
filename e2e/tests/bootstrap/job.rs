//! Jobs with the image, variables and mounts, and nothing else: an empty cluster becomes the platform, and is
//! empty again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, LogParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tiphys_e2e::inventory::difference;
use tiphys_e2e::objects::{apply, objects};
use tiphys_e2e::{Ground, figure, image, until};

use crate::start::{Start, look};

/// Of what brings and removes the primitives: not a part of the platform.
const NAMESPACE: &str = "job-run";
/// Its name as an object of the whole cluster.
const CLUSTER_NAME: &str = "tiphys-job-run";
const PLATFORM: &str = "job-reference";
const LONGEST: Duration = Duration::from_secs(600);

pub(crate) async fn there_and_back(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "job").await;
    let files = readable(&start);
    tidy(&ground).await;
    prepare(&ground, &start, files.path()).await;
    let before = look(&ground).await;

    let began = Instant::now();
    let deployed = run(&ground, NAMESPACE, "default", &[("TIPHYS_ACTION", "deploy")]).await;
    let took = began.elapsed().as_secs();
    let done = |line: &&Value| line["kind"] == "step-done" && line["how"] == "applied";
    assert_eq!(deployed.iter().filter(done).count(), 43, "{deployed:#?}");

    // From here on, the accounts that the platform itself has.
    let account = format!("tiphys.argocd.{PLATFORM}.validate");
    run(&ground, "tiphys", &account, &[("TIPHYS_ACTION", "validate")]).await;

    let began = Instant::now();
    let teardown = [("TIPHYS_ACTION", "teardown"), ("TIPHYS_CONFIRM", PLATFORM)];
    run(&ground, NAMESPACE, "default", &teardown).await;
    let gone = began.elapsed().as_secs();
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
    figure(&format!("jobs: empty cluster to platform {took} s, and back {gone} s"));
    tidy(&ground).await;
}

/// The platform file and what it names, where the user of a pod can read it.
fn readable(start: &Start) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), all).expect("permissions");
    let files = fs::read_dir(start.path(".")).expect("the files").flatten();
    for file in files.filter(|file| file.path().extension().is_some_and(|kind| kind == "yaml")) {
        let to = folder.path().join(file.file_name());
        fs::copy(file.path(), &to).expect("a file");
        fs::set_permissions(&to, fs::Permissions::from_mode(0o644)).expect("permissions");
    }
    folder
}

/// A restricted namespace whose account may do everything, as bootstrap must, with the files and the
/// credentials.
async fn prepare(ground: &Ground, start: &Start, files: &Path) {
    let read = |name: &str| fs::read_to_string(start.path("credentials/git").join(name));
    let credentials = json!({
        "ssh-privatekey": read("ssh-privatekey").expect("the key"),
        "known_hosts": read("known_hosts").expect("the host keys"),
    });
    let size = json!({ "storage": "1Gi" });
    for object in [
        json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": NAMESPACE,
                "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
            },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": CLUSTER_NAME },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{ "kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE }],
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": CLUSTER_NAME },
            "spec": {
                "capacity": size, "accessModes": ["ReadOnlyMany"], "storageClassName": "",
                "hostPath": { "path": files },
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": "files", "namespace": NAMESPACE },
            "spec": {
                "accessModes": ["ReadOnlyMany"], "storageClassName": "",
                "volumeName": CLUSTER_NAME, "resources": { "requests": size },
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "git", "namespace": NAMESPACE }, "stringData": credentials,
        }),
    ] {
        apply(&ground.client, &object).await;
    }
    let claims = objects(&ground.client, "v1", "PersistentVolumeClaim", Some(NAMESPACE));
    until("the files are bound", async || {
        claims.get("files").await.expect("the claim").data["status"]["phase"] == "Bound"
    })
    .await;
}

/// Runs a job to its end, which must be a success, and removes it; what it has said.
async fn run(
    ground: &Ground,
    namespace: &str,
    account: &str,
    variables: &[(&str, &str)],
) -> Vec<Value> {
    let mut environment = vec![json!({ "name": "TIPHYS_PLATFORM", "value": PLATFORM })];
    environment
        .extend(variables.iter().map(|(name, value)| json!({ "name": name, "value": value })));
    let (mut mounts, mut volumes) = (Vec::new(), Vec::new());
    if namespace == NAMESPACE {
        let mount = |name: &str, path: &str| {
            let path = format!("/var/run/tiphys/{path}");
            json!({ "name": name, "mountPath": path, "readOnly": true })
        };
        mounts.extend([mount("files", "platform"), mount("git", "credentials/git")]);
        volumes.extend([
            json!({ "name": "files", "persistentVolumeClaim": { "claimName": "files" } }),
            json!({ "name": "git", "secret": { "secretName": "git" } }),
        ]);
    }
    let container = json!({
        "name": "tiphys", "image": image::executor().await, "args": ["executor"],
        "env": environment, "volumeMounts": mounts,
        "securityContext": {
            "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": 65532,
            "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
            "seccompProfile": { "type": "RuntimeDefault" },
        },
    });
    let pod = json!({
        "serviceAccountName": account, "restartPolicy": "Never", "containers": [container],
        "volumes": volumes,
    });
    let name = "tiphys-job";
    apply(
        &ground.client,
        &json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "backoffLimit": 0, "template": { "spec": pod } },
        }),
    )
    .await;
    let jobs: Api<Job> = Api::namespaced(ground.client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(ground.client.clone(), namespace);
    let of_job = ListParams::default().labels("job-name=tiphys-job");
    let began = Instant::now();
    let succeeded = loop {
        let status = jobs.get(name).await.expect("the job").status.unwrap_or_default();
        if status.succeeded.is_some() || status.failed.is_some() {
            break status.succeeded.is_some();
        }
        assert!(began.elapsed() < LONGEST, "the job does not end: {variables:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let mut log = String::new();
    for pod in pods.list(&of_job).await.expect("a list") {
        log += &pods.logs(&pod.name_any(), &LogParams::default()).await.expect("its log");
    }
    assert!(succeeded, "{variables:?}: {log}");
    jobs.delete(name, &DeleteParams::foreground()).await.expect("deleted");
    until("the job is gone", async || {
        jobs.get_opt(name).await.expect("an answer").is_none()
            && pods.list(&of_job).await.expect("a list").items.is_empty()
    })
    .await;
    log.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Removes what is beside the platform, also what a run that failed has left.
async fn tidy(ground: &Ground) {
    for (version, kind, name) in [
        ("v1", "Namespace", NAMESPACE),
        ("v1", "PersistentVolume", CLUSTER_NAME),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", CLUSTER_NAME),
    ] {
        let all = objects(&ground.client, version, kind, None);
        all.delete(name, &DeleteParams::default()).await.ok();
        until(kind, async || all.get_opt(name).await.expect("an answer").is_none()).await;
    }
}
