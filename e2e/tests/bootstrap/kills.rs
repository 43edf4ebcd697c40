//! A bootstrap that is killed is run again, and comes to the same end.

use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::Value;
use tiphys_e2e::inventory::{Inventory, difference};
use tiphys_e2e::{Ground, count, figure, seed};
use tiphys_sim::Chance;

use crate::start::{Start, look};

/// Everything but what Argo CD says of the root app, which it does in its own time.
pub(crate) async fn look_at_ours(ground: &Ground) -> Inventory {
    let mut all = look(ground).await;
    if let Some(root) = all.get_mut("argoproj.io/Application argocd/boot-reference-root") {
        root["status"] = Value::Null;
    }
    all
}

async fn delete_a_pod(ground: &Ground, chance: &mut Chance) {
    let pods: Api<Pod> = Api::namespaced(ground.client.clone(), "argocd");
    let listed = pods.list(&ListParams::default()).await.expect("a list");
    if let Some(pod) = chance.pick(&listed.items) {
        // What has gone meanwhile is gone.
        pods.delete(&pod.name_any(), &DeleteParams::default()).await.ok();
    }
}

/// `TIPHYS_E2E_KILLS` times, at moments drawn by lot.
pub(crate) async fn at_any_moment(ground: Arc<Ground>) {
    let kills = count("TIPHYS_E2E_KILLS", 2);
    let mut chance = Chance::new(seed());
    let start = Start::reference(&ground, "boot").await;
    let before = look(&ground).await;
    let began = Instant::now();
    start.run(&ground, &["bootstrap", "--no-run"], 0).await;
    let whole = began.elapsed();
    let expected = look_at_ours(&ground).await;
    start.run(&ground, &["teardown", "--yes"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());

    let mut moments = Vec::new();
    for _ in 0..kills {
        let moment = chance.millis(0, u64::try_from(whole.as_millis()).expect("minutes"));
        let mut run = start.begin(&ground, &["bootstrap", "--no-run"]);
        tokio::time::sleep(moment).await;
        run.kill().expect("it can be killed");
        run.wait().expect("it has ended");
        moments.push(moment.as_secs_f64());
        // And a pod or two with it.
        delete_a_pod(&ground, &mut chance).await;
        // Each kill hits an installation that has come a bit further; every fifth begins anew.
        if moments.len() % 5 == 0 {
            start.run(&ground, &["teardown", "--yes"], 0).await;
        }
    }
    figure(&format!("killed after {moments:.1?} of {:.1} s", whole.as_secs_f64()));
    start.run(&ground, &["bootstrap", "--no-run"], 0).await;
    let again = start.run(&ground, &["bootstrap", "--no-run", "-o", "json"], 0).await;
    let objects: Vec<Value> = serde_json::from_str(&again.stdout).expect("a list");
    assert!(objects.iter().all(|object| object["result"] == "unchanged"), "{}", again.stdout);
    assert_eq!(difference(&expected, &look_at_ours(&ground).await), Vec::<String>::new());
    start.run(&ground, &["teardown", "--yes"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}
