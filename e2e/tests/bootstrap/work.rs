//! What was installed does its work: somebody calls a webhook, and a workflow succeeds.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;
use tiphys_e2e::objects::{apply, objects};
use tiphys_e2e::{Ground, figure};
use tiphys_lab::NATS_IMAGE;

const WAIT_LIMIT: Duration = Duration::from_secs(120);
const ANSWER: Duration = Duration::from_secs(5);

/// Somebody who may do one thing with one kind in the namespace of workflows.
async fn account(ground: &Ground, name: &str, namespace: &str, kinds: &[&str]) {
    let metadata = json!({ "name": name, "namespace": "argo" });
    let rbac = "rbac.authorization.k8s.io";
    for object in [
        json!({ "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": name, "namespace": namespace } }),
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{
                "apiGroups": ["argoproj.io"], "resources": kinds, "verbs": ["create", "patch"],
            }] }),
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": rbac, "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }] }),
    ] {
        apply(&ground.client, &object).await;
    }
}

/// The image of the executor, which every pod of a workflow has anyway: the lab has no other
/// program that ends.
async fn executor(ground: &Ground) -> String {
    let deployments: Api<Deployment> = Api::namespaced(ground.client.clone(), "argo");
    let controller = deployments.get("workflow-controller").await.expect("the controller");
    let spec = controller.spec.and_then(|spec| spec.template.spec).expect("a pod");
    let image = spec.containers.into_iter().find_map(|container| container.image);
    image.expect("an image").replace("/workflow-controller:", "/argoexec:")
}

/// A bus, a webhook, and what follows from calling it.
async fn arrange(ground: &Ground) {
    let executor = executor(ground).await;
    let named = |name: &str| json!({ "name": name, "namespace": "argo-events" });
    account(ground, "sensor", "argo-events", &["workflows"]).await;
    account(ground, "worker", "argo", &["workflowtaskresults"]).await;
    let workflow = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": { "name": "called", "namespace": "argo" },
        "spec": {
            "serviceAccountName": "worker", "entrypoint": "main",
            "templates": [{ "name": "main", "container": {
                "image": executor, "imagePullPolicy": "Never",
                "command": ["/bin/argoexec", "version"],
            } }],
        },
    });
    let mut labelled = named("nats");
    labelled["labels"] = json!({ "app": "nats" });
    // Argo Events takes any certificate here, but will not do without one.
    let key = rcgen::generate_simple_self_signed(["nats".to_owned()]).expect("a certificate");
    for object in [
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": named("nats"), "stringData": {
            "tls.crt": key.cert.pem(), "tls.key": key.signing_key.serialize_pem(),
        } }),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": labelled, "spec": {
            "containers": [{
                "name": "nats", "image": NATS_IMAGE, "imagePullPolicy": "Never",
                "args": ["-js", "--tls", "--tlscert=/tls/tls.crt", "--tlskey=/tls/tls.key"],
                "volumeMounts": [{ "name": "tls", "mountPath": "/tls" }],
            }],
            "volumes": [{ "name": "tls", "secret": { "secretName": "nats" } }],
        } }),
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": named("nats"), "spec": {
            "selector": { "app": "nats" }, "ports": [{ "port": 4222 }],
        } }),
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "EventBus",
            "metadata": named("default"),
            "spec": { "jetstreamExotic": {
                "url": "nats://nats:4222", "streamConfig": "replicas: 1",
            } } }),
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "EventSource",
            "metadata": named("hook"), "spec": {
                "service": { "ports": [{ "port": 12000, "targetPort": 12000 }] },
                "webhook": { "call": { "port": "12000", "endpoint": "/call", "method": "POST" } },
            } }),
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Sensor",
            "metadata": named("hook"), "spec": {
                "template": { "serviceAccountName": "sensor" },
                "dependencies": [{
                    "name": "call", "eventSourceName": "hook", "eventName": "call",
                }],
                "triggers": [{ "template": {
                    "name": "workflow",
                    "k8s": { "operation": "create", "source": { "resource": workflow } },
                } }],
            } }),
    ] {
        apply(&ground.client, &object).await;
    }
}

/// Through the API server, as somebody without an ingress would.
async fn call(ground: &Ground) -> Result<String, kube::Error> {
    let path = "/api/v1/namespaces/argo-events/services/hook-eventsource-svc:12000/proxy/call";
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(b"{}".to_vec()).expect("a request");
    ground.client.request_text(request).await
}

pub(crate) async fn is_done(ground: &Ground) {
    arrange(ground).await;
    let workflows = objects(&ground.client, "argoproj.io/v1alpha1", "Workflow", Some("argo"));
    let began = Instant::now();
    let mut last = String::new();
    let (mut answered, mut phase) = (false, String::new());
    while phase != "Succeeded" {
        assert!(
            began.elapsed() < WAIT_LIMIT,
            "answered: {answered}, phase: {phase:?}, last: {last}"
        );
        if phase.is_empty() {
            // A sensor that is not there yet misses the call.
            match tokio::time::timeout(ANSWER, call(ground)).await {
                Ok(Ok(text)) => (answered, last) = (true, text),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => "no answer".clone_into(&mut last),
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let found = workflows.get_opt("called").await.expect("an answer");
        phase = found
            .and_then(|found| Some(found.data.pointer("/status/phase")?.as_str()?.to_owned()))
            .unwrap_or_default();
        assert!(!["Failed", "Error"].contains(&&*phase), "the workflow is {phase}");
    }
    figure(&format!("webhook to workflow: {} s from nothing", began.elapsed().as_secs()));
}
