//! What goes wrong is told with its cause, and repaired by running again.

use std::fs;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::Ground;
use tiphys_e2e::inventory::difference;

use crate::start::{Start, look, objects};

/// Nothing is written when something cannot be.
pub(crate) async fn before_anything(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot").await;
    let before = look(&ground).await;

    let argocd = start.path("argocd.yaml");
    let text = fs::read_to_string(&argocd).expect("manifests");
    fs::write(&argocd, format!("{text}# somebody was here\n")).expect("manifests");
    let said = start.run(&ground, &["bootstrap"], 3).await;
    assert!(
        said.stderr.contains("the manifests of Argo CD do not match the pin"),
        "{}",
        said.stderr
    );
    fs::write(&argocd, text).expect("manifests");

    let said = start.run(&ground, &["bootstrap", "--dry-run", "-o", "json"], 0).await;
    let objects: Vec<Value> = serde_json::from_str(&said.stdout).expect("a list");
    assert!(objects.iter().all(|object| object["result"] == "created"), "{}", said.stdout);
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());

    let namespaces: Api<Namespace> = Api::all(ground.client.clone());
    let foreign =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "argo" } });
    let params = PatchParams::apply("somebody");
    namespaces.patch("argo", &params, &Patch::Apply(&foreign)).await.expect("a namespace");
    let said = start.run(&ground, &["bootstrap"], 3).await;
    assert!(said.stderr.contains("not installed by Tiphys: the namespace argo"), "{}", said.stderr);
    assert!(said.stderr.contains("tiphys bootstrap --adopt"), "{}", said.stderr);
    // Taken over, it is the platform's, and goes with it.
    start.run(&ground, &["bootstrap", "--adopt", "--no-run"], 0).await;
    a_conflict(&ground, &start, &namespaces).await;
    start.run(&ground, &["teardown", "--yes"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}

/// A field that somebody else has taken is named, with who has it, and not taken back.
async fn a_conflict(ground: &Ground, start: &Start, namespaces: &Api<Namespace>) {
    const FIELD: &str = "pod-security.kubernetes.io/enforce";
    let theirs = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "argocd", "labels": { FIELD: "privileged" } },
    });
    let params = PatchParams::apply("somebody").force();
    namespaces.patch("argocd", &params, &Patch::Apply(&theirs)).await.expect("a label");
    let said = start.run(ground, &["bootstrap", "--no-run"], 1).await;
    assert!(said.stderr.contains("is managed by `somebody`"), "{}", said.stderr);
    assert!(said.stderr.contains(FIELD), "{}", said.stderr);
    let label = async || {
        let found = namespaces.get("argocd").await.expect("the namespace");
        found.metadata.labels.unwrap_or_default().remove(FIELD)
    };
    assert_eq!(label().await.as_deref(), Some("privileged"));
    start.run(ground, &["bootstrap", "--adopt", "--no-run"], 0).await;
    assert_eq!(label().await.as_deref(), Some("restricted"));
}

/// A webhook that does not answer, and a CRD whose names are taken.
pub(crate) async fn of_the_cluster(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot").await;
    let before = look(&ground).await;
    start.write(|text| text.replace("timeout: 3m", "timeout: 10s"));
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(ground.client.clone());
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "silent" },
        "webhooks": [{
            "name": "silent.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": { "service": { "namespace": "default", "name": "nobody" } },
            "rules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                "operations": ["*"],
            }],
        }],
    });
    let params = PatchParams::apply("somebody");
    hooks.patch("silent", &params, &Patch::Apply(&hook)).await.expect("a webhook");
    let said = start.run(&ground, &["bootstrap", "--no-run"], 1).await;
    assert!(said.stderr.contains("silent.example.org"), "{}", said.stderr);
    assert!(said.stderr.contains("check the pods of the webhook"), "{}", said.stderr);
    hooks.delete("silent", &DeleteParams::default()).await.expect("it can be deleted");
    start.run(&ground, &["teardown", "--yes"], 0).await;

    let crds: Api<CustomResourceDefinition> = Api::all(ground.client.clone());
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "others.argoproj.io" },
        "spec": {
            "group": "argoproj.io", "scope": "Namespaced",
            "names": { "plural": "others", "singular": "other", "kind": "Application" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    crds.patch("others.argoproj.io", &params, &Patch::Apply(&crd)).await.expect("a CRD");
    let said = start.run(&ground, &["bootstrap", "--no-run"], 1).await;
    let rejected = "the API server rejected CustomResourceDefinition/applications.argoproj.io";
    assert!(said.stderr.contains(rejected), "{}", said.stderr);
    crds.delete("others.argoproj.io", &DeleteParams::default()).await.expect("it can be deleted");
    start.run(&ground, &["teardown", "--yes"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}

/// What one node cannot show is judged by the API server: upstream's manifests for high
/// availability, with replicas.
pub(crate) async fn never_with_high_availability(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot").await;
    let before = look(&ground).await;
    let manifests = tiphys_lab::Home::from_environment().manifests();
    fs::copy(manifests.join("argocd-ha.yaml"), start.path("argocd.yaml")).expect("manifests");
    start.write(|text| text.replace("    timeout: 3m", "    highAvailability: true"));
    let said = start.run(&ground, &["bootstrap", "--dry-run", "-o", "json"], 0).await;
    let objects: Vec<Value> = serde_json::from_str(&said.stdout).expect("a list");
    let is = |object: &&Value| object["name"] == "argocd-redis-ha-server";
    assert!(objects.iter().any(|object| is(&object)), "{}", said.stdout);
    assert!(!said.stderr.contains("only one Redis"), "{}", said.stderr);
    // And what the API server would not take is told.
    let wrong = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: argocd-server }\n\
                 spec: { replicas: -1 }\n";
    fs::write(start.path("wrong.yaml"), wrong).expect("patches");
    start.write(|text| text.replace("    workflows:", "      patches: wrong.yaml\n    workflows:"));
    let said = start.run(&ground, &["bootstrap", "--dry-run"], 1).await;
    assert!(
        said.stderr.contains("cannot apply Deployment/argocd/argocd-server"),
        "{}",
        said.stderr
    );
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}

/// Of all roles that are installed, only those of Argo CD that deploy anything may do anything.
pub(crate) async fn of_too_many_rights(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "wild").await;
    let said = start.run(&ground, &["bootstrap", "--render", "-o", "json"], 0).await;
    let objects = objects(&said.stdout);
    let roles =
        objects.iter().filter(|o| ["Role", "ClusterRole"].map(Value::from).contains(&o["kind"]));
    let all = |rule: &Value| {
        let mut lists = ["apiGroups", "resources", "verbs"].into_iter();
        lists.any(|list| rule[list].as_array().is_some_and(|list| list.contains(&json!("*"))))
    };
    let wide = roles.filter(|role| role["rules"].as_array().is_some_and(|r| r.iter().any(all)));
    let names: Vec<&str> = wide.filter_map(|role| role["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["argocd-application-controller", "argocd-server"]);
}

/// An image that is not there, and a quota that is too small.
pub(crate) async fn of_pods(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot").await;
    let before = look(&ground).await;
    let only_argocd = |text: String| {
        let end = text.find("    workflows:").expect("more primitives");
        let rest = text[end..].find("\n  ").map(|at| end + at);
        let rest = text[rest.expect("more fields")..].to_owned();
        let after = rest.lines().skip_while(|line| line.starts_with("    ") || line.is_empty());
        let after: Vec<&str> = after.collect();
        format!("{}{}\n", &text[..end], after.join("\n")).replace("timeout: 3m", "timeout: 25s")
    };
    let argocd = start.path("argocd.yaml");
    let good = fs::read_to_string(&argocd).expect("manifests");
    fs::write(&argocd, good.replace("argocd:v3.2.6", "argocd:absent")).expect("manifests");
    start.write(only_argocd);
    let said = start.run(&ground, &["bootstrap", "--no-run"], 1).await;
    assert!(said.stderr.contains("argoproj/argocd:absent"), "{}", said.stderr);
    assert!(said.stderr.contains("make the image reachable"), "{}", said.stderr);
    fs::write(&argocd, good).expect("manifests");

    let quotas: Api<ResourceQuota> = Api::namespaced(ground.client.clone(), "argocd");
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "small" },
        "spec": { "hard": { "limits.memory": "64Mi" } },
    });
    let params = PatchParams::apply("somebody");
    quotas.patch("small", &params, &Patch::Apply(&quota)).await.expect("a quota");
    start.write(only_argocd);
    let said = start.run(&ground, &["bootstrap", "--no-run"], 1).await;
    assert!(said.stderr.contains("exceeded quota"), "{}", said.stderr);
    assert!(said.stderr.contains("raise the quota"), "{}", said.stderr);

    quotas.delete("small", &DeleteParams::default()).await.expect("it can be deleted");
    let greedy = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: argocd-redis }\nspec:\n  \
                  template: { spec: { containers: [{ name: redis, resources: \
                  { requests: { cpu: '900' }, limits: { cpu: '900' } } }] } }\n";
    fs::write(start.path("greedy.yaml"), greedy).expect("patches");
    let patched = |text: String| {
        only_argocd(text).replacen(
            "      manifests",
            "      patches: greedy.yaml\n      manifests",
            1,
        )
    };
    start.write(patched);
    let said = start.run(&ground, &["bootstrap", "--no-run"], 1).await;
    assert!(said.stderr.contains("Insufficient cpu"), "{}", said.stderr);
    assert!(said.stderr.contains("add nodes to the cluster"), "{}", said.stderr);

    start.write(|text| only_argocd(text).replace("timeout: 25s", "timeout: 3m"));
    start.run(&ground, &["bootstrap", "--no-run"], 0).await;
    let newer = |text: String| only_argocd(text).replace("version: 3.2.6", "version: 3.2.7");
    start.write(newer);
    let said = start.run(&ground, &["bootstrap", "--no-run", "-o", "json"], 0).await;
    assert!(said.stdout.contains("changed"), "an upgrade is noted: {}", said.stdout);
    start.write(only_argocd);
    let said = start.run(&ground, &["bootstrap", "--no-run"], 3).await;
    assert!(said.stderr.contains("Argo CD would be downgraded"), "{}", said.stderr);
    start.run(&ground, &["teardown", "--yes"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}
