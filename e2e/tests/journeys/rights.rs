//! The account of a run has the rights that it needs, and none that it does not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tiphys_e2e::{PlatformFile, Site, World, figure, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::configure;

const NAME: &str = "need";
const ROLE: &str = "tiphys.argocd.need.deploy";
const GRAPH: &str = "tiphys-need";

/// What only some runs need: those with ApplicationSets, the first one of a platform, and those
/// that are to be seen in Kubernetes' events.
const NOW_AND_THEN: [&str; 3] =
    ["get,patch applicationsets", "create leases", "create,patch events"];

/// Without any of its rules, a run fails.
pub(crate) async fn each_is_needed(world: Arc<World>) {
    let mut site = Site::new(&world, NAME).await;
    let after = Duration::from_secs(1);
    site.platform.apps = vec![
        AppSource::new("need-db", Behaviour::Healthy { after }),
        AppSource::new("need-api", Behaviour::Healthy { after }).depends_on(&["need-db"]),
    ];
    site.commit("two apps");
    let file = site.platform_file();
    let roles: Api<Role> = Api::namespaced(world.client.clone(), "argocd");
    // What an earlier test has made of it would be in the way.
    roles.delete(ROLE, &DeleteParams::default()).await.ok();
    configure(&world, &file).await;
    let folder = tempfile::tempdir().expect("a folder");
    let account = folder.path().join("kubeconfig");
    let groups =
        ["system:serviceaccounts", "system:serviceaccounts:tiphys", "system:authenticated"];
    let user = format!("system:serviceaccount:tiphys:{ROLE}");
    tiphys::act_as(&world.kubeconfig, &user, &groups, &account);

    assert_eq!(deploy(&file, &account).await, Some(0), "the rights are enough");
    let rules = roles.get(ROLE).await.expect("the role").rules.unwrap_or_default();
    let mut unneeded = BTreeSet::new();
    for (number, rule) in rules.iter().enumerate() {
        let mut fewer = rules.clone();
        fewer.remove(number);
        let patch = Patch::Merge(json!({ "rules": fewer }));
        roles.patch(ROLE, &PatchParams::default(), &patch).await.expect("the role");
        site.platform.app_mut("need-db").expect("an app").generation += 1;
        site.commit("something to deploy");
        forget_the_graph(&world).await;
        if deploy(&file, &account).await == Some(0) {
            unneeded.insert(shown(rule));
        }
    }
    assert_eq!(unneeded, NOW_AND_THEN.map(str::to_owned).into());
    figure(&format!(
        "{} rules, {} of them needed by every run",
        rules.len(),
        rules.len() - NOW_AND_THEN.len()
    ));
    site.close().await;
}

fn shown(rule: &PolicyRule) -> String {
    let resource = rule.resources.as_ref().map_or("", |list| &*list[0]);
    format!("{} {resource}", rule.verbs.join(","))
}

/// So that it has to be made again.
async fn forget_the_graph(world: &World) {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "argocd");
    maps.delete(GRAPH, &DeleteParams::default()).await.ok();
}

async fn deploy(file: &PlatformFile, account: &std::path::Path) -> Option<i32> {
    let args = ["deploy", "-f", file.path(), "--allow-uncommitted", "--timeout", "40s"];
    let output = tiphys::run(&args, account).await;
    output.status.code()
}
