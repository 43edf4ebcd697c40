//! What runs may do in Argo CD, and no more.

use serde_json::{Map, Value};
use tiphys_model::Platform;

use tiphys_argocd::rest::RENDER_NAME;
use tiphys_cluster::names::{self, Purpose};

/// What an account may do with the Applications of the platform. A refresh is a `get`, and to
/// terminate an operation is a `sync`; before an app is deleted, its operation is ended.
fn actions(purpose: Purpose) -> &'static [&'static str] {
    match purpose {
        Purpose::Deploy => &["get", "sync"],
        Purpose::Teardown => &["get", "sync", "delete"],
    }
}

/// A key of `argocd-rbac-cm`. Argo CD reads all that are called `policy.*.csv`, so nobody else's
/// policy is touched.
pub(super) fn policy(platform: &Platform) -> Map<String, Value> {
    let argocd = &platform.argocd;
    let mut lines = Vec::new();
    for purpose in Purpose::ALL {
        let role = purpose.role(platform);
        for project in argocd.all_projects() {
            // An Application outside Argo CD's namespace is `PROJECT/NAMESPACE/NAME`.
            let others = argocd.application_namespaces.iter();
            let others = others.map(|namespace| format!("{project}/{namespace}"));
            for place in [project.to_owned()].into_iter().chain(others) {
                for action in actions(purpose) {
                    lines.push(format!("p, {role}, applications, {action}, {place}/*, allow\n"));
                }
            }
            if purpose == Purpose::Deploy {
                // To render ApplicationSets, and no more: no set can have this name.
                let render = format!("{project}/{RENDER_NAME}");
                lines.push(format!("p, {role}, applicationsets, create, {render}, allow\n"));
            }
        }
        lines.push(format!("g, {}, {role}\n", purpose.account()));
    }
    Map::from_iter([(format!("policy.{}.csv", names::own(platform)), lines.concat().into())])
}

#[cfg(test)]
mod tests {
    use tiphys_model::NamespaceName;

    use super::*;
    use crate::configure::objects::tests::platform;

    #[test]
    fn who_deploys_cannot_delete() {
        let policy = policy(&platform("prod"));
        let expected = "\
p, role:tiphys-prod-deploy, applications, get, apps/*, allow
p, role:tiphys-prod-deploy, applications, sync, apps/*, allow
p, role:tiphys-prod-deploy, applicationsets, create, apps/tiphys_render, allow
p, role:tiphys-prod-deploy, applications, get, roots/*, allow
p, role:tiphys-prod-deploy, applications, sync, roots/*, allow
p, role:tiphys-prod-deploy, applicationsets, create, roots/tiphys_render, allow
g, tiphys, role:tiphys-prod-deploy
p, role:tiphys-prod-teardown, applications, get, apps/*, allow
p, role:tiphys-prod-teardown, applications, sync, apps/*, allow
p, role:tiphys-prod-teardown, applications, delete, apps/*, allow
p, role:tiphys-prod-teardown, applications, get, roots/*, allow
p, role:tiphys-prod-teardown, applications, sync, roots/*, allow
p, role:tiphys-prod-teardown, applications, delete, roots/*, allow
g, tiphys-teardown, role:tiphys-prod-teardown
";
        assert_eq!(policy["policy.tiphys-prod.csv"], expected);
        assert_eq!(policy.len(), 1);
    }

    #[test]
    fn applications_in_other_namespaces_are_named_with_them() {
        let mut platform = platform("prod");
        platform.argocd.application_namespaces = vec![NamespaceName::parse("team").unwrap()];
        let policy = policy(&platform);
        let policy = policy["policy.tiphys-prod.csv"].as_str().unwrap();
        let there: Vec<&str> = policy.lines().filter(|line| line.contains("/team/")).collect();
        assert_eq!(
            there,
            [
                "p, role:tiphys-prod-deploy, applications, get, apps/team/*, allow",
                "p, role:tiphys-prod-deploy, applications, sync, apps/team/*, allow",
                "p, role:tiphys-prod-deploy, applications, get, roots/team/*, allow",
                "p, role:tiphys-prod-deploy, applications, sync, roots/team/*, allow",
                "p, role:tiphys-prod-teardown, applications, get, apps/team/*, allow",
                "p, role:tiphys-prod-teardown, applications, sync, apps/team/*, allow",
                "p, role:tiphys-prod-teardown, applications, delete, apps/team/*, allow",
                "p, role:tiphys-prod-teardown, applications, get, roots/team/*, allow",
                "p, role:tiphys-prod-teardown, applications, sync, roots/team/*, allow",
                "p, role:tiphys-prod-teardown, applications, delete, roots/team/*, allow",
            ]
        );
    }
}
