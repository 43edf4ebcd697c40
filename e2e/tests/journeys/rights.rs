//! The account of a run has the rights that it needs, and none that it does not.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tiphys_e2e::{PlatformFile, Site, World, figure, tiphys};
use tiphys_lab::audit::Record;
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::Mark;
use crate::deploy::configure;

const NAME: &str = "need";
const ROLE: &str = "tiphys-need";

/// Rights that a run needs only now and then, and which situation that is.
const NOW_AND_THEN: [(&str, &str); 3] = [
    // The graph of a very large platform has more than one ConfigMap.
    ("configmaps", "update"),
    ("configmaps", "patch"),
    // Newer API servers ask for the one, older ones for the other.
    ("pods/portforward", "create"),
];

/// Every rule is used by a request that the API server has recorded, and without it a run fails.
pub(crate) async fn each_is_needed(world: Arc<World>) {
    let mut site = Site::new(&world, NAME).await;
    let after = Duration::from_secs(1);
    site.platform.apps = vec![
        AppSource::new("need-db", Behaviour::Healthy { after }),
        AppSource::new("need-api", Behaviour::Healthy { after }).depends_on(&["need-db"]),
    ];
    site.commit("two apps");
    let file = site.platform_file();
    configure(&world, &file).await;
    let folder = tempfile::tempdir().expect("a folder");
    let account = folder.path().join("kubeconfig");
    let groups =
        ["system:serviceaccounts", "system:serviceaccounts:argocd", "system:authenticated"];
    let user = format!("system:serviceaccount:argocd:{ROLE}");
    tiphys::act_as(&world.kubeconfig, &user, &groups, &account);

    let mark = Mark::now(&world);
    assert_eq!(deploy(&file, &account).await, Some(0), "the rights are enough");
    let records = mark.records_of(&user);
    let roles: Api<Role> = Api::namespaced(world.client.clone(), "argocd");
    let rules = roles.get(ROLE).await.expect("the role").rules.unwrap_or_default();
    let mut unused = Vec::new();
    for rule in &rules {
        let resource = &rule.resources.as_ref().expect("resources")[0];
        for verb in rule.verbs.iter().filter(|verb| !records.iter().any(|r| uses(r, rule, verb))) {
            if !NOW_AND_THEN.contains(&(resource, verb)) {
                unused.push(format!("{verb} {resource}"));
            }
        }
    }
    assert_eq!(unused, Vec::<String>::new());

    let mut needed = 0;
    for (number, rule) in rules.iter().enumerate() {
        let mut fewer = rules.clone();
        fewer.remove(number);
        let patch = Patch::Merge(json!({ "rules": fewer }));
        roles.patch(ROLE, &PatchParams::default(), &patch).await.expect("the role");
        site.platform.app_mut("need-db").expect("an app").generation += 1;
        site.commit("something to deploy");
        let code = deploy(&file, &account).await;
        if code != Some(0) {
            needed += 1;
        }
        assert!(code != Some(0) || is_optional(rule), "a run does without {rule:?}");
    }
    figure(&format!("{} rules, {needed} of them stop a run by their absence", rules.len()));
    site.close().await;
}

/// Without these a run works, but says less: events, and what is only asked of large platforms.
fn is_optional(rule: &PolicyRule) -> bool {
    let resource = rule.resources.as_ref().is_some_and(|list| list[0] == "events");
    resource || rule.verbs == ["create"]
}

async fn deploy(file: &PlatformFile, account: &std::path::Path) -> Option<i32> {
    let args = ["deploy", "-f", file.path(), "--allow-uncommitted", "--timeout", "60s"];
    let output = tiphys::run(&args, account).await;
    output.status.code()
}

fn uses(record: &Record, rule: &PolicyRule, verb: &str) -> bool {
    let Some(object) = &record.object_ref else { return false };
    let resource = match &*object.subresource {
        "" => object.resource.clone(),
        part => format!("{}/{part}", object.resource),
    };
    let has = |list: &Option<Vec<String>>, item: &str| {
        list.as_ref().is_none_or(|list| list.iter().any(|one| one == item))
    };
    record.verb == verb
        && has(&rule.api_groups, &object.api_group)
        && has(&rule.resources, &resource)
        && has(&rule.resource_names, &object.name)
}
