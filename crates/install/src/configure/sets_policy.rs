//! A policy of the API server: the account that deploys changes nothing of an ApplicationSet but the
//! annotation with which its controller is asked for a refresh.
//!
//! Argo CD's own API has no such refresh, RBAC can only give `patch` on the whole object, and who may
//! change all of an ApplicationSet can have any Application made.

use serde_json::Value;
use tiphys_model::Platform;

use super::hold_policy::{policy_and_binding, same_fields};
use tiphys_argocd::application_set::REFRESH;
use tiphys_cluster::names::{self, Account};

/// Shown to a client whose request is denied.
const MESSAGE: &str =
    "a run's account may only request a refresh of an ApplicationSet, not change it";

/// The policy, and that it is enforced.
pub(super) fn objects(platform: &Platform) -> [Value; 2] {
    let validations = same_but_for(&[REFRESH]);
    let name = names::sets_policy(platform);
    let accounts = [Account::Deploy];
    policy_and_binding(platform, &name, "applicationsets", &accounts, &validations, MESSAGE)
}

/// Nothing has changed but these annotations.
pub(super) fn same_but_for(annotations: &[&str]) -> [String; 4] {
    [
        same_fields("object", "oldObject", &["metadata"]),
        "['labels', 'finalizers', 'ownerReferences'].all(field, \
         (field in object.metadata) == (field in oldObject.metadata) && \
         (!(field in object.metadata) || object.metadata[field] == oldObject.metadata[field]))"
            .to_owned(),
        same_annotations("object", "oldObject", annotations),
        same_annotations("oldObject", "object", annotations),
    ]
}

/// All of one are in the other, but for ours.
fn same_annotations(one: &str, other: &str, ours: &[&str]) -> String {
    let (one, other) = (format!("{one}.metadata"), format!("{other}.metadata"));
    let ours = ours.join("', '");
    format!(
        "!has({one}.annotations) || {one}.annotations.all(name, name in ['{ours}'] || \
         (has({other}.annotations) && name in {other}.annotations && \
         {one}.annotations[name] == {other}.annotations[name]))"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::configure::hold_policy::tests::allows;
    use crate::configure::objects::tests::platform;

    fn set(annotations: &Value) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": { "name": "set", "resourceVersion": "1", "annotations": annotations },
            "spec": { "generators": [] },
        })
    }

    #[test]
    fn only_the_refresh_comes_and_goes() {
        let is_allowed =
            |old: &Value, new: &Value| allows(&objects(&platform("prod"))[0], old, new);
        let other = set(&json!({ "team": "a" }));
        let asked = set(&json!({ "team": "a", REFRESH: "true" }));
        let mut none = set(&json!({}));
        none["metadata"].as_object_mut().unwrap().remove("annotations");
        let only = set(&json!({ REFRESH: "true" }));
        for (old, new) in [(&other, &asked), (&asked, &other), (&none, &only), (&only, &none)] {
            assert!(is_allowed(old, new), "{old}\n{new}");
        }
        let mut spec = asked.clone();
        spec["spec"]["generators"] = json!([{ "list": {} }]);
        let mut owned = asked.clone();
        owned["metadata"]["ownerReferences"] = json!([]);
        for new in [&spec, &owned, &none, &only, &set(&json!({ "team": "b" }))] {
            assert!(!is_allowed(&other, new), "{new}");
        }
        assert!(!is_allowed(&none, &other));
    }
}
