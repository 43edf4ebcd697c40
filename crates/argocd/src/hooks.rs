//! Hooks: objects that Argo CD creates at a moment of an app's life, and not as a part of it.

use kube::api::ObjectMeta;
use serde_json::Value;

const ANNOTATION: &str = "argocd.argoproj.io/hook";
const HELM: &str = "helm.sh/hook";
/// Such an object is rendered and never applied.
const SKIP: &str = "Skip";

/// Whether Argo CD takes an object for a hook. By its default policy it deletes one only before it
/// creates it anew, so a hook that runs when its app is deleted stays.
#[must_use]
pub fn is_hook(metadata: &ObjectMeta) -> bool {
    let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).map(String::as_str);
    match annotation(ANNOTATION) {
        Some(hook) => hook.trim() != SKIP,
        // Helm marks definitions so, too.
        None => annotation(HELM).is_some_and(|hook| hook != "crd-install"),
    }
}

/// Whether Argo CD renders an object and applies it never.
#[must_use]
pub fn is_skipped(object: &Value) -> bool {
    let hook = object["metadata"]["annotations"][ANNOTATION].as_str();
    hook.is_some_and(|hook| hook.trim() == SKIP)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_are_told_by_their_annotations() {
        for (annotations, hook, skipped) in [
            (json!({}), false, false),
            (json!({ ANNOTATION: "PostDelete" }), true, false),
            (json!({ ANNOTATION: "PreSync,PostDelete" }), true, false),
            (json!({ ANNOTATION: "Skip" }), false, true),
            (json!({ ANNOTATION: "Skip", HELM: "post-delete" }), false, true),
            (json!({ HELM: "post-delete" }), true, false),
            (json!({ HELM: "crd-install" }), false, false),
        ] {
            let object = json!({ "metadata": { "annotations": annotations } });
            let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
            assert_eq!((is_hook(&metadata), is_skipped(&object)), (hook, skipped), "{annotations}");
        }
    }
}
