//! What the deploy loop needs of a platform that is deployed automatically, beside its rights.

use serde_json::{Value, json};
use tiphys_argocd::application::REFRESH;
use tiphys_cluster::names::{
    self, ARGOCD_LABEL, Account, LOOP_LABEL, NAMESPACE, OUTCOME, OUTCOME_MESSAGE, OUTCOME_REVISION,
    VALIDATES_LABEL,
};
use tiphys_model::Platform;

use super::hold_policy::policy_and_binding;
use super::objects::cluster_metadata;
use super::sets_policy::same_but_for;

/// Shown to a client whose request is denied.
const REFUSAL: &str = "the deploy loop and sensors may only request a refresh of a root app and annotate it \
    with the outcome, not change it";

/// The ConfigMap with what is kept of deployments without a person. By its label, the loop finds the
/// platform. What is kept in it is not ours to write.
pub(super) fn kept(platform: &Platform) -> Option<Value> {
    if !names::deploys_unattended(platform) && !Account::Loop.is_wanted(platform) {
        return None;
    }
    let argocd = &platform.argocd.namespace;
    let mut metadata = cluster_metadata(platform, &names::deploy_loop(argocd, &platform.name));
    metadata["namespace"] = NAMESPACE.into();
    metadata["labels"][ARGOCD_LABEL] = argocd.clone().into();
    if Account::Loop.is_wanted(platform) {
        metadata["labels"][LOOP_LABEL] = "true".into();
    }
    if platform.triggers.iter().any(|trigger| trigger.resource().is_some()) {
        metadata["labels"][VALIDATES_LABEL] = "true".into();
    }
    Some(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }))
}

/// RBAC can only give `patch` on the whole root app, and who may change all of it can have anything
/// applied.
pub(super) fn policy(platform: &Platform) -> Option<[Value; 2]> {
    // A push trigger comes only with the loop.
    let wanted = Account::Loop.is_wanted(platform);
    let (name, accounts) = (names::loop_policy(platform), [Account::Loop, Account::Events]);
    let rules = same_but_for(&[REFRESH, OUTCOME, OUTCOME_REVISION, OUTCOME_MESSAGE]);
    wanted.then(|| policy_and_binding(platform, &name, "applications", &accounts, &rules, REFUSAL))
}

#[cfg(test)]
mod tests {
    use tiphys_model::{DeployMode, DeployPolicy};

    use super::*;
    use crate::configure::hold_policy::tests::allows;
    use crate::configure::objects::tests::platform;

    #[test]
    fn a_root_app_is_refreshed_and_annotated_and_not_changed() {
        let deploy = DeployPolicy { mode: DeployMode::Automatic, ..DeployPolicy::default() };
        let platform = Platform { deploy, ..platform("prod") };
        let [policy, _] = policy(&platform).unwrap();
        let root = |annotations: Value| {
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": { "name": "prod-root", "annotations": annotations },
                "spec": { "project": "roots" },
            })
        };
        let before = root(json!({ "team": "a" }));
        let outcome = json!({
            "team": "a", REFRESH: "normal", OUTCOME: "failed", OUTCOME_REVISION: "r",
            OUTCOME_MESSAGE: "m",
        });
        assert!(allows(&policy, &before, &root(outcome)));
        assert!(!allows(&policy, &before, &root(json!({ "team": "b" }))));
        assert!(!allows(&policy, &before, &root(json!({ "team": "a", "other": "" }))));
        let mut moved = before.clone();
        moved["spec"]["project"] = "default".into();
        assert!(!allows(&policy, &before, &moved));
    }
}
