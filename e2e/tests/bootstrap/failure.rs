//! What goes wrong is told with its cause, and repaired by running again.

use std::fs;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::Ground;
use tiphys_e2e::inventory::difference;

use crate::start::{Start, look};

/// Nothing is written when something cannot be.
pub(crate) async fn before_anything(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot");
    let before = look(&ground).await;

    let argocd = start.path("argocd.yaml");
    let text = fs::read_to_string(&argocd).expect("manifests");
    fs::write(&argocd, format!("{text}# somebody was here\n")).expect("manifests");
    let said = start.run(&ground, &["bootstrap"], 3).await;
    assert!(
        said.stderr.contains("the manifests of Argo CD are not the pinned ones"),
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
    assert!(said.stderr.contains("somebody else's: the namespace argo"), "{}", said.stderr);
    assert!(said.stderr.contains("tiphys bootstrap --adopt"), "{}", said.stderr);
    namespaces.delete("argo", &DeleteParams::default()).await.expect("it can be deleted");
    until_gone(&namespaces, "argo").await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}

/// An image that is not there, and a quota that is too small.
pub(crate) async fn of_pods(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot");
    let before = look(&ground).await;
    let only_argocd = |text: String| {
        let end = text.find("    workflows:").expect("more primitives");
        let rest = text[end..].find("\n  ").map(|at| end + at);
        let rest = text[rest.expect("more fields")..].to_owned();
        let after = rest.lines().skip_while(|line| line.starts_with("    ") || line.is_empty());
        let after: Vec<&str> = after.collect();
        format!("{}{}\n", &text[..end], after.join("\n")).replace("timeout: 3m", "timeout: 25s")
    };
    let absent = "    images: [{ from: quay.io, to: absent.example }]\n";
    start.write(|text| {
        only_argocd(text).replacen("    timeout", &format!("{absent}    timeout"), 1)
    });
    let said = start.run(&ground, &["bootstrap", "--no-run"], 1).await;
    assert!(said.stderr.contains("absent.example/argoproj/argocd"), "{}", said.stderr);
    assert!(said.stderr.contains("make the image reachable"), "{}", said.stderr);

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
    start.write(|text| only_argocd(text).replace("timeout: 25s", "timeout: 3m"));
    start.run(&ground, &["bootstrap", "--no-run"], 0).await;
    start.write(|text| only_argocd(text).replace("version: 3.2.6", "version: 3.2.5"));
    let said = start.run(&ground, &["bootstrap", "--no-run"], 3).await;
    assert!(said.stderr.contains("Argo CD would be downgraded"), "{}", said.stderr);
    start.run(&ground, &["teardown"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}

async fn until_gone(namespaces: &Api<Namespace>, name: &str) {
    for _ in 0..60 {
        if namespaces.get_opt(name).await.expect("an answer").is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    unreachable!("{name} does not go");
}
