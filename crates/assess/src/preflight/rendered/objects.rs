//! What matters of the objects that an app renders, so that all of them need not be kept.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// What one app renders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The Namespaces that it applies itself.
    pub namespaces: BTreeSet<String>,
    pub kinds: BTreeSet<Kind>,
    /// The kinds that its CRDs bring.
    pub brought: BTreeSet<Kind>,
    /// The images of its pods.
    pub images: BTreeSet<String>,
}

/// A kind of objects in one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Empty for Kubernetes' core.
    pub group: String,
    pub version: String,
    pub kind: String,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kind { group, version, kind } = self;
        match &**group {
            "" => write!(f, "{version} {kind}"),
            group => write!(f, "{group}/{version} {kind}"),
        }
    }
}

impl Rendered {
    #[must_use]
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut rendered = Rendered::default();
        for object in objects {
            rendered.add(object);
        }
        rendered
    }

    fn add(&mut self, object: &Value) {
        let kind = kind(object);
        let (group, name) = (&*kind.group, &*kind.kind);
        if (group, name) == ("", "Namespace") {
            self.namespaces.insert(text(&object["metadata"]["name"]));
        }
        if (group, name) == ("apiextensions.k8s.io", "CustomResourceDefinition") {
            self.brought.extend(brought(object));
        }
        self.images.extend(images(object, group, name));
        self.kinds.insert(kind);
    }
}

fn kind(object: &Value) -> Kind {
    let version = text(&object["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    Kind { group: group.to_owned(), version: version.to_owned(), kind: text(&object["kind"]) }
}

fn brought(crd: &Value) -> impl Iterator<Item = Kind> {
    let spec = &crd["spec"];
    let versions = spec["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] != false);
    served.map(|version| Kind {
        group: text(&spec["group"]),
        version: text(&version["name"]),
        kind: text(&spec["names"]["kind"]),
    })
}

/// The images of Kubernetes' own kinds that make pods. What operators make of theirs, no manifest shows.
fn images(object: &Value, group: &str, kind: &str) -> Vec<String> {
    let pod = match (group, kind) {
        ("", "Pod") => "/spec",
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
            "/spec/template/spec"
        }
        ("batch", "CronJob") => "/spec/jobTemplate/spec/template/spec",
        _ => return Vec::new(),
    };
    let Some(pod) = object.pointer(pod) else { return Vec::new() };
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let containers = lists.iter().filter_map(|list| pod[list].as_array()).flatten();
    let images = containers.filter_map(|container| container["image"].as_str());
    images.filter(|image| !image.is_empty()).map(str::to_owned).collect()
}

/// What is not there, or no text, is empty: the API server refuses such an object, not we.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn images_of(api_version: &str, kind: &str, spec: &Value) -> Vec<String> {
        let object = json!({ "apiVersion": api_version, "kind": kind, "spec": spec });
        Rendered::of([&object]).images.into_iter().collect()
    }

    #[test]
    fn images_are_found_wherever_kubernetes_makes_pods() {
        let pod = json!({
            "containers": [{ "image": "a:1" }, { "name": "without" }],
            "initContainers": [{ "image": "b:1" }],
            "ephemeralContainers": [{ "image": "c:1" }],
        });
        let all = ["a:1", "b:1", "c:1"];
        let template = json!({ "template": { "spec": pod } });
        assert_eq!(images_of("v1", "Pod", &pod), all);
        for kind in ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] {
            assert_eq!(images_of("apps/v1", kind, &template), all, "{kind}");
        }
        assert_eq!(images_of("batch/v1", "Job", &template), all);
        let cron = json!({ "jobTemplate": { "spec": template } });
        assert_eq!(images_of("batch/v1", "CronJob", &cron), all);
        let none: [&str; 0] = [];
        assert_eq!(images_of("batch.volcano.sh/v1alpha1", "Job", &template), none);
        assert_eq!(images_of("apps/v1", "Deployment", &Value::Null), none);
    }

    #[test]
    fn a_crd_brings_its_kind_in_the_versions_that_it_serves() {
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {
                "group": "example.org", "names": { "kind": "Shop" },
                "versions": [
                    { "name": "v1", "served": true }, { "name": "v1alpha1", "served": false },
                ],
            },
        });
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
        let rendered = Rendered::of([&crd, &namespace]);
        let shown = |kinds: BTreeSet<Kind>| -> Vec<String> {
            kinds.iter().map(ToString::to_string).collect()
        };
        assert_eq!(shown(rendered.brought), ["example.org/v1 Shop"]);
        assert_eq!(
            shown(rendered.kinds),
            ["v1 Namespace", "apiextensions.k8s.io/v1 CustomResourceDefinition"]
        );
        assert_eq!(rendered.namespaces, BTreeSet::from(["shop".to_owned()]));
    }
}
