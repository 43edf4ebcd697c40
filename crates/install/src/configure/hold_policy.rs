//! A policy of the API server: the accounts of runs change nothing of an AppProject but their hold.
//!
//! RBAC can only give `patch` on the whole object, and who may change all of a project may let its
//! apps come from anywhere.

use serde_json::{Value, json};
use tiphys_model::Platform;

use super::objects::cluster_metadata;
use tiphys_cluster::names::{self, Account, HOLD};

/// The accounts that may change projects at all.
const CHANGING: [Account; 2] = [Account::Deploy, Account::Teardown];
/// Shown to a client whose request is denied.
const MESSAGE: &str =
    "a run's account may only change sync windows called `tiphys hold` of an AppProject";

/// The policy, and that it is enforced.
pub(super) fn objects(platform: &Platform) -> [Value; 2] {
    let validations = [
        same_fields("object", "oldObject", &["metadata", "spec"]),
        same_fields("object.spec", "oldObject.spec", &["syncWindows"]),
        format!("{} == {}", windows_of_others("object"), windows_of_others("oldObject")),
        "['labels', 'annotations', 'finalizers', 'ownerReferences'].all(field, \
         (field in object.metadata) == (field in oldObject.metadata) && \
         (!(field in object.metadata) || object.metadata[field] == oldObject.metadata[field]))"
            .to_owned(),
    ];
    let name = names::hold_policy(platform);
    policy_and_binding(platform, &name, "appprojects", &CHANGING, &validations, MESSAGE)
}

/// Updates of a resource of Argo CD's by the accounts of runs have to be valid in all these ways.
pub(super) fn policy_and_binding(
    platform: &Platform,
    name: &str,
    resource: &str,
    accounts: &[Account],
    validations: &[String],
    message: &str,
) -> [Value; 2] {
    let accounts: Vec<String> = accounts.iter().map(|account| account.user(platform)).collect();
    let validation = |expression: &String| json!({ "expression": expression, "message": message, "reason": "Forbidden" });
    let version = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": cluster_metadata(platform, name),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["argoproj.io"], "apiVersions": ["*"], "resources": [resource],
                "operations": ["UPDATE"],
            }] },
            "matchConditions": [{
                "name": "account-of-a-run",
                "expression": format!("request.userInfo.username in {}", json!(accounts)),
            }],
            "validations": validations.iter().map(validation).collect::<Vec<_>>(),
        },
    });
    let binding = json!({
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": cluster_metadata(platform, name),
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    [policy, binding]
}

/// All fields but these are the same, and none has come or gone.
pub(super) fn same_fields(new: &str, old: &str, but: &[&str]) -> String {
    let but = json!(but);
    format!(
        "{new}.all(field, field in {but} || (field in {old} && {new}[field] == {old}[field])) && \
         {old}.all(field, field in {but} || field in {new})"
    )
}

/// In order. A window without a description is somebody else's.
fn windows_of_others(of: &str) -> String {
    let windows = format!("{of}.spec.syncWindows");
    format!(
        "(has({windows}) && {windows} != null ? {windows}.filter(window, \
         !(has(window.description) && window.description.startsWith('{HOLD}'))) : [])"
    )
}

#[cfg(test)]
pub(super) mod tests {
    use cel::{Context, Program};

    use super::*;
    use crate::configure::objects::tests::platform;

    fn is_allowed(old: &Value, new: &Value) -> bool {
        allows(&objects(&platform("prod"))[0], old, new)
    }

    /// Whether the account of a run may make one of the other.
    pub(crate) fn allows(policy: &Value, old: &Value, new: &Value) -> bool {
        let validations = policy["spec"]["validations"].as_array().unwrap();
        validations.iter().all(|validation| {
            let program = Program::compile(validation["expression"].as_str().unwrap()).unwrap();
            let mut context = Context::default();
            context.add_variable("object", new).unwrap();
            context.add_variable("oldObject", old).unwrap();
            program.execute(&context).unwrap() == true.into()
        })
    }

    fn project(windows: &Value) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {
                "name": "apps", "resourceVersion": "1", "labels": { "team": "a" },
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            },
            "spec": { "sourceRepos": ["https://git"], "roles": [], "syncWindows": windows },
        })
    }

    #[test]
    fn the_hold_comes_and_goes_and_all_else_stays() {
        let hold = |apps: &[&str]| json!({ "kind": "deny", "description": "tiphys hold run-1", "applications": apps });
        let freeze = json!({ "kind": "deny", "schedule": "0 0 * * *", "duration": "1h" });
        let named = json!({ "kind": "deny", "description": "not a tiphys hold" });
        let mut free = project(&Value::Null);
        free["spec"].as_object_mut().unwrap().remove("syncWindows");
        let held = project(&json!([hold(&["a"])]));
        let both = project(&json!([freeze, hold(&["a"]), named]));
        for (old, new) in [
            (&free, &held),
            (&held, &project(&json!([hold(&["b"])]))),
            (&held, &free),
            (&held, &project(&Value::Null)),
            (&held, &project(&json!([]))),
            (&both, &project(&json!([freeze, named, hold(&["a", "b"])]))),
            (&project(&json!([freeze, named])), &both),
        ] {
            assert!(is_allowed(old, new), "{old}\n{new}");
        }
        for windows in [
            json!([hold(&["a"])]),
            json!([hold(&["a"]), named]),
            json!([named, freeze, hold(&["a"])]),
            json!([freeze, hold(&["a"]), named, { "kind": "allow" }]),
            Value::Null,
        ] {
            assert!(!is_allowed(&both, &project(&windows)), "{windows}");
        }
    }

    #[test]
    fn no_other_field_of_a_project_changes() {
        let old = project(&json!([]));
        assert!(is_allowed(&old, &old));
        for (pointer, value) in [
            ("/spec/sourceRepos", json!(["*"])),
            ("/spec/roles", json!([{ "name": "admin" }])),
            ("/metadata/labels/team", json!("b")),
            ("/metadata/labels", json!({})),
            ("/metadata/finalizers", json!([])),
        ] {
            let mut new = old.clone();
            *new.pointer_mut(pointer).unwrap() = value;
            assert!(!is_allowed(&old, &new), "{pointer}");
        }
        // What comes, and what goes.
        for (parent, field) in [
            ("", "status"),
            ("/spec", "destinations"),
            ("/metadata", "annotations"),
            ("/metadata", "ownerReferences"),
        ] {
            let mut new = old.clone();
            new.pointer_mut(parent).unwrap()[field] = json!({ "a": "b" });
            assert!(!is_allowed(&old, &new), "{field} comes");
            assert!(!is_allowed(&new, &old), "{field} goes");
        }
        let mut bookkeeping = old.clone();
        bookkeeping["metadata"]["resourceVersion"] = "2".into();
        bookkeeping["metadata"]["managedFields"] = json!([{ "manager": "tiphys" }]);
        assert!(is_allowed(&old, &bookkeeping));
    }

    #[test]
    fn it_concerns_the_accounts_of_runs_and_nobody_else() {
        let [policy, binding] = objects(&platform("prod"));
        let conditions = policy["spec"]["matchConditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 1);
        assert_eq!(
            conditions[0]["expression"],
            "request.userInfo.username in \
             [\"system:serviceaccount:tiphys:tiphys.argocd.prod.deploy\",\
             \"system:serviceaccount:tiphys-teardown:tiphys.argocd.prod.teardown\"]"
        );
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        assert_eq!(policy["metadata"]["name"], "tiphys.argocd.prod.hold");
    }
}
