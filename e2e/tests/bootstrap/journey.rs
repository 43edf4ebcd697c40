//! The whole way of a new engineer: nothing, the platform, the same again, nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::inventory::{Inventory, difference};
use tiphys_e2e::{Ground, figure};

use crate::start::{Said, Start, look};
use crate::work;

pub(crate) async fn there_and_back(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot").await;
    let key = preserved_key(&ground).await;
    let before = look(&ground).await;

    let began = Instant::now();
    let said = start.run(&ground, &["deploy", "--allow-uncommitted"], 0).await;
    figure(&format!("empty cluster to platform: {} s", began.elapsed().as_secs()));
    assert!(said.stderr.contains("bootstrap is complete"), "{}", said.stderr);
    assert_eq!(done(&said, "applied"), 43, "{}", said.stdout);
    assert_password_is_new(&ground).await;

    let again = start.run(&ground, &["bootstrap", "--no-run", "-o", "json"], 0).await;
    let objects: Vec<Value> = serde_json::from_str(&again.stdout).expect("a list");
    let changed: Vec<&Value> = objects.iter().filter(|o| o["result"] != "unchanged").collect();
    assert_eq!(changed, Vec::<&Value>::new());
    figure(&format!("bootstrap again: {} objects, none changed", objects.len()));

    // Rotating does not disturb the run that goes on.
    let run = start.begin(&ground, &["deploy", "--allow-uncommitted"]);
    for _ in 0..3 {
        start.run(&ground, &["rotate-credentials"], 0).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let output = tokio::task::spawn_blocking(move || run.wait_with_output());
    let output = output.await.expect("nobody cancels it").expect("it ends");
    let said = Said::of(&output, &["deploy again"], 0);
    assert_eq!(done(&said, "already-current"), 43, "{}", said.stdout);

    compare_with_another_cluster(look(&ground).await);
    work::is_done(&ground).await;
    let began = Instant::now();
    start.run(&ground, &["teardown", "--yes"], 0).await;
    figure(&format!("platform to empty cluster: {} s", began.elapsed().as_secs()));
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
    assert_eq!(preserved_key(&ground).await, key, "the key of sealed secrets is the same");
    let said = start.run(&ground, &["teardown", "--yes"], 0).await;
    assert!(said.stderr.contains("nothing of the platform"), "{}", said.stderr);
}

fn done(said: &Said, how: &str) -> usize {
    said.stdout.lines().filter(|line| line.contains(&format!(" done {how} "))).count()
}

/// A key that was there before stays, whatever happens: it opens what is in Git.
async fn preserved_key(ground: &Ground) -> Option<String> {
    let secrets: Api<Secret> = Api::namespaced(ground.client.clone(), "kube-system");
    let name = "sealed-secrets-key";
    let key = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": name, "labels": { "sealedsecrets.bitnami.com/sealed-secrets-key": "active" },
        },
        "data": { "tls.key": "a2V5" },
    });
    if secrets.get_opt(name).await.expect("an answer").is_none() {
        let applied = secrets.patch(name, &PatchParams::apply("test"), &Patch::Apply(&key)).await;
        applied.expect("the key");
    }
    secrets.get(name).await.expect("the key").metadata.uid
}

async fn assert_password_is_new(ground: &Ground) {
    let secrets: Api<Secret> = Api::namespaced(ground.client.clone(), "argocd");
    let initial = secrets.get_opt("argocd-initial-admin-secret").await.expect("an answer");
    assert!(initial.is_none(), "the initial password is gone");
    let world = tiphys_e2e::World::from_ground(ground, "tiphys-boot-reference-admin").await;
    world.expect("the new password is the one that counts");
}

/// `TIPHYS_E2E_SAME=FILE`: the first cluster is written there, the next is compared with it.
fn compare_with_another_cluster(mut now: Inventory) {
    let Some(file) = env::var_os("TIPHYS_E2E_SAME") else { return };
    // Each lab has a Git server of its own, with a key of its own.
    if let Some(hosts) = now.get_mut("ConfigMap argocd/argocd-ssh-known-hosts-cm") {
        hosts["data"]["ssh_known_hosts"] = "(host keys)".into();
    }
    let now = &now;
    if let Ok(text) = fs::read_to_string(&file) {
        let other: Inventory = serde_json::from_str(&text).expect("an inventory");
        assert_eq!(difference(&other, now), Vec::<String>::new());
        figure(&format!("{} objects, the same in two clusters", now.len()));
    } else {
        fs::write(&file, serde_json::to_string(now).expect("JSON")).expect("the file");
        figure(&format!("{} objects, kept for the next cluster", now.len()));
    }
}
