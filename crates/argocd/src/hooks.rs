//! Hooks: objects that Argo CD creates at a moment of an app's life, and not as a part of it.

use kube::api::ObjectMeta;

const ANNOTATION: &str = "argocd.argoproj.io/hook";
const HELM: &str = "helm.sh/hook";

/// Whether Argo CD takes an object for a hook. By its default policy it deletes one only before it
/// creates it anew, so a hook that runs when its app is deleted stays.
#[must_use]
pub fn is_hook(metadata: &ObjectMeta) -> bool {
    let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).map(String::as_str);
    match annotation(ANNOTATION) {
        Some(hook) => hook.trim() != "Skip",
        // Helm marks definitions so, too.
        None => annotation(HELM).is_some_and(|hook| hook != "crd-install"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_are_told_by_their_annotations() {
        for (annotations, hook) in [
            (json!({}), false),
            (json!({ ANNOTATION: "PostDelete" }), true),
            (json!({ ANNOTATION: "PreSync,PostDelete" }), true),
            (json!({ ANNOTATION: "Skip" }), false),
            (json!({ ANNOTATION: "Skip", HELM: "post-delete" }), false),
            (json!({ HELM: "post-delete" }), true),
            (json!({ HELM: "crd-install" }), false),
        ] {
            let metadata = serde_json::from_value(json!({ "annotations": annotations })).unwrap();
            assert_eq!(is_hook(&metadata), hook, "{annotations}");
        }
    }
}
