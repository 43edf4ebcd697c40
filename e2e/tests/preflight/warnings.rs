//! What only warns, and what one host can only show by taking its node and its DNS away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::Ground;

use crate::rows::Rows;
use crate::setting::{Row, Setting, with_namespaces, without_namespaces};

/// A node that does not come, and a sealed-secrets controller.
pub(crate) async fn of_a_node_and_a_controller(ground: Arc<Ground>) {
    let setting = Setting::new(&ground, "pre-warn");
    let before = setting.look().await;
    let names = [setting.namespace("sealed")];
    let namespaces = with_namespaces(&ground.client, &names).await;
    let nodes: Api<Node> = Api::all(ground.client.clone());
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "pre-warn" },
    });
    let ours = PatchParams::apply("test");
    nodes.patch("pre-warn", &ours, &Patch::Apply(&node)).await.expect("a node");
    let deployments: Api<Deployment> = Api::namespaced(ground.client.clone(), &names[0]);
    let controller = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "sealed", "labels": { "name": "sealed-secrets-controller" } },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "a", "image": tiphys_lab::PAUSE_IMAGE }] },
            },
        },
    });
    let applied = deployments.patch("sealed", &ours, &Patch::Apply(&controller)).await;
    applied.expect("a Deployment");
    let seen = setting.look().await;
    nodes.delete("pre-warn", &DeleteParams::default()).await.expect("it can be deleted");
    without_namespaces(&namespaces, &names).await;
    assert_eq!(seen.code, before.code, "warnings do not count: {:#}", seen.report);
    assert_eq!(seen.found("cluster nodes"), "not Ready: pre-warn");
    assert_eq!(seen.found("absence sealed-secrets controller"), "pre-warn-sealed/sealed");
    let (now, before) = (seen.rows("warning"), before.rows("warning"));
    let new: Vec<&Row> = now.difference(&before).collect();
    assert_eq!(new, ["absence sealed-secrets controller", "cluster nodes"]);
}

/// All nodes cordoned, and CoreDNS gone.
pub(crate) async fn without_nodes_and_dns(ground: Arc<Ground>) {
    let nodes: Api<Node> = Api::all(ground.client.clone());
    let deployments: Api<Deployment> = Api::namespaced(ground.client.clone(), "kube-system");
    let listed = nodes.list(&ListParams::default()).await.expect("the nodes");
    let names: Vec<String> = listed.into_iter().filter_map(|node| node.metadata.name).collect();
    let dns = deployments.get("coredns").await.expect("CoreDNS");
    let replicas = dns.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let cordon = async |away: bool| {
        let spec = json!({ "spec": { "unschedulable": away } });
        for name in &names {
            let patched = nodes.patch(name, &PatchParams::default(), &Patch::Merge(&spec)).await;
            patched.expect("the node");
        }
        let spec: Value = json!({ "spec": { "replicas": if away { 0 } else { replicas } } });
        let (plain, spec) = (PatchParams::default(), Patch::Merge(&spec));
        deployments.patch("coredns", &plain, &spec).await.expect("CoreDNS");
        until_dns(&ground, !away).await;
    };
    let mut rows = Rows::new(ground.clone(), "pre-nodes").await;
    cordon(true).await;
    let looked = tokio::spawn(async move {
        rows.spoil(3, &["cluster nodes", "cluster DNS"], |_| ()).await.rows("warning")
    });
    let warned = looked.await;
    cordon(false).await;
    let warned = warned.expect("exactly these rows fail");
    for row in ["cluster worker nodes", "cluster resources"] {
        assert!(warned.contains(row), "{warned:?}");
    }
}

/// Until there are pods of CoreDNS, all of them ready, or until there are none.
async fn until_dns(ground: &Ground, there: bool) {
    let pods: Api<Pod> = Api::namespaced(ground.client.clone(), "kube-system");
    let labelled = ListParams::default().labels("k8s-app=kube-dns");
    let began = Instant::now();
    loop {
        let all = pods.list(&labelled).await.expect("the pods").items;
        let ready = |pod: &Pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|c| c.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
        };
        if all.is_empty() != there && all.iter().all(ready) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "CoreDNS does not follow");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
