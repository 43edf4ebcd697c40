//! Looking at the cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node as KubeNode, Pod, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ListParams;
use kube::{Api, Client};
use tiphys_assess::preflight::cluster::{
    Inventory, Node, judge_authentication, judge_dns, judge_nodes, judge_rights, no_rights_needed,
    out_of_reach, reached,
};
use tiphys_assess::preflight::quantity::{thousandths, units};
use tiphys_assess::preflight::resources::{Resources, needed};
use tiphys_assess::preflight::{Findings, Problem, Trouble, credentials};

use super::{Preflight, absence, argocd, in_time, nodes as workflow_nodes, rights, within};

pub(super) async fn look(preflight: &Preflight<'_>) -> Findings {
    let mut findings = Findings::default();
    let works = match in_time(preflight.access.client()).await {
        Ok(client) => Box::pin(ask(preflight, &client, &mut findings)).await,
        // The API server was not even asked.
        Err(problem) => Err(Problem { trouble: Trouble::Missing, ..problem }),
    };
    if let Err(problem) = &works {
        findings.checks.extend(out_of_reach(problem, needed(preflight.bootstrap())));
        findings.checks.push(argocd::out_of_reach(preflight.platform));
        findings.checks.extend(workflow_nodes::out_of_reach(preflight.platform));
        findings.checks.extend(absence::out_of_reach(preflight.bootstrap()));
    }
    let (checks, credential) = credentials::kubeconfig(&works);
    findings.checks.extend(checks);
    findings.credentials.push(credential);
    findings
}

/// Everything that only a cluster that answers can tell; why it does not, otherwise.
async fn ask(
    preflight: &Preflight<'_>,
    client: &Client,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let version = within("cannot read the version of the API server", client.apiserver_version())
        .await?
        .git_version;
    let installs = preflight.bootstrap().is_some() || preflight.strict;
    let (may, missing, nodes, dns, argocd, workflows, there) = tokio::join!(
        rights::may(client, "create", "", "namespaces"),
        async { if installs { Some(rights::missing(client).await) } else { None } },
        nodes(client),
        dns(client),
        argocd::look(client, preflight.platform),
        workflow_nodes::look(client, preflight.platform),
        absence::look(client, preflight.bootstrap()),
    );
    if let Err(problem) = &may
        && problem.trouble != Trouble::Missing
    {
        return Err(problem.clone());
    }
    findings.checks.extend(reached(&version));
    findings.checks.push(judge_authentication(&may, installs));
    findings.checks.push(match missing {
        Some(missing) => judge_rights(&missing, rights::count()),
        None => no_rights_needed("nothing to install: the platform file has no `spec.bootstrap`"),
    });
    findings.checks.push(judge_dns(&dns));
    findings.checks.extend(judge_nodes(&nodes, needed(preflight.bootstrap())));
    findings.checks.push(argocd);
    findings.checks.extend(workflows);
    findings.checks.extend(there);
    findings.inventory = nodes.ok().map(|nodes| Inventory::new(version, nodes));
    Ok(())
}

async fn nodes(client: &Client) -> Result<Vec<Node>, Problem> {
    let nodes: Api<KubeNode> = Api::all(client.clone());
    let listed = within("cannot list the nodes", nodes.list(&ListParams::default())).await?;
    Ok(listed.items.into_iter().map(node).collect())
}

fn node(node: KubeNode) -> Node {
    let spec = node.spec.unwrap_or_default();
    let status = node.status.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let info = status.node_info.unwrap_or_default();
    let taints = spec.taints.unwrap_or_default();
    Node {
        name: node.metadata.name.unwrap_or_default(),
        ready: conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True"),
        worker: spec.unschedulable != Some(true) && !taints.iter().any(keeps_pods_away),
        kubelet: info.kubelet_version,
        runtime: info.container_runtime_version,
        capacity: resources(status.capacity.as_ref()),
        allocatable: resources(status.allocatable.as_ref()),
    }
}

/// Of a node that is not Ready these taints say nothing new.
fn keeps_pods_away(taint: &Taint) -> bool {
    let known = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    taint.effect != "PreferNoSchedule" && !known.contains(&taint.key.as_str())
}

/// What a node does not say counts as nothing.
fn resources(all: Option<&BTreeMap<String, Quantity>>) -> Resources {
    let read = |name: &str, unit: fn(&str) -> Option<u64>| {
        all.and_then(|all| unit(&all.get(name)?.0)).unwrap_or_default()
    };
    Resources {
        cpu_millis: read("cpu", thousandths),
        memory_bytes: read("memory", units),
        pods: read("pods", units),
    }
}

/// How many pods of CoreDNS are ready, and how many there are.
async fn dns(client: &Client) -> Result<(usize, usize), Problem> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let labelled = ListParams::default().labels("k8s-app=kube-dns");
    let listed = within("cannot list the pods of CoreDNS", pods.list(&labelled)).await?;
    let ready = |pod: &&Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    };
    Ok((listed.items.iter().filter(ready).count(), listed.items.len()))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{NodeSpec, NodeStatus};

    use super::*;

    fn tainted(key: &str, effect: &str) -> KubeNode {
        let taint = Taint { key: key.to_owned(), effect: effect.to_owned(), ..Taint::default() };
        let spec = NodeSpec { taints: Some(vec![taint]), ..NodeSpec::default() };
        KubeNode { spec: Some(spec), ..KubeNode::default() }
    }

    #[test]
    fn a_worker_takes_any_pod() {
        let cordoned = NodeSpec { unschedulable: Some(true), ..NodeSpec::default() };
        let cases = [
            (KubeNode::default(), true),
            (KubeNode { spec: Some(cordoned), ..KubeNode::default() }, false),
            (tainted("node-role.kubernetes.io/control-plane", "NoSchedule"), false),
            (tainted("gpu", "NoExecute"), false),
            (tainted("spot", "PreferNoSchedule"), true),
            (tainted("node.kubernetes.io/not-ready", "NoSchedule"), true),
        ];
        for (seen, worker) in cases {
            assert_eq!(node(seen.clone()).worker, worker, "{seen:?}");
        }
    }

    #[test]
    fn capacity_is_read_in_units_of_ours() {
        let quantity = |text: &str| Quantity(text.to_owned());
        let capacity = [
            ("cpu".to_owned(), quantity("2")),
            ("memory".to_owned(), quantity("24564232Ki")),
            ("pods".to_owned(), quantity("110")),
        ];
        let status = NodeStatus { capacity: Some(capacity.into()), ..NodeStatus::default() };
        let seen = node(KubeNode { status: Some(status), ..KubeNode::default() });
        let expected = Resources { cpu_millis: 2_000, memory_bytes: 24_564_232 * 1_024, pods: 110 };
        assert_eq!((seen.capacity, seen.allocatable), (expected, Resources::default()));
    }
}
