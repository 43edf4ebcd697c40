//! What Argo CD makes of an ApplicationSet: its Applications as they should be.

use http::Method;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CallError, RENDER_TIMEOUT, RestClient};
use crate::application_set::REFRESH;

/// The name of every ApplicationSet that is sent to be rendered. To render one, Argo CD wants the
/// right to create it. Kubernetes refuses this name, so who has that right for this name alone can
/// render, and create nothing.
pub const RENDER_NAME: &str = "tiphys_render";

/// An Application that an ApplicationSet should make.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedApplication {
    pub name: String,
    pub spec: Value,
}

#[derive(Deserialize)]
struct Rendered {
    /// Absent if there are none.
    #[serde(default)]
    applications: Option<Vec<Value>>,
}

impl RestClient {
    /// The Applications of an ApplicationSet, as if its template were in this project. Argo CD
    /// renders no set whose project is a template itself.
    pub async fn render(
        &self,
        set: &DynamicObject,
        project: &str,
    ) -> Result<Vec<RenderedApplication>, CallError> {
        let path = "applicationsets/generate";
        let body = body(set, project);
        let rendered: Rendered = self.call(Method::POST, path, Some(&body), RENDER_TIMEOUT).await?;
        Ok(applications(rendered))
    }
}

fn body(set: &DynamicObject, project: &str) -> Value {
    let mut spec = set.data["spec"].clone();
    spec["template"]["spec"]["project"] = project.into();
    json!({ "applicationSet": {
        "metadata": {
            "name": RENDER_NAME,
            "namespace": set.namespace(),
            // Of Git, the newest commit and not one that is remembered.
            "annotations": { REFRESH: "true" },
        },
        "spec": spec,
    } })
}

fn applications(rendered: Rendered) -> Vec<RenderedApplication> {
    let applications = rendered.applications.into_iter().flatten();
    applications
        .map(|mut application| RenderedApplication {
            name: application["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            spec: application["spec"].take(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_sent_under_a_name_that_kubernetes_refuses() {
        let set: DynamicObject = serde_json::from_value(json!({
            "metadata": { "name": "stacks", "namespace": "argocd", "labels": { "a": "b" } },
            "spec": {
                "goTemplate": true,
                "template": { "metadata": { "name": "{{.name}}" }, "spec": { "project": "{{.p}}" } },
            },
            "status": { "conditions": [] },
        }))
        .unwrap();
        let expected = json!({ "applicationSet": {
            "metadata": {
                "name": "tiphys_render",
                "namespace": "argocd",
                "annotations": { "argocd.argoproj.io/application-set-refresh": "true" },
            },
            "spec": {
                "goTemplate": true,
                "template": { "metadata": { "name": "{{.name}}" }, "spec": { "project": "apps" } },
            },
        } });
        assert_eq!(body(&set, "apps"), expected);
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        assert!(!RENDER_NAME.chars().all(allowed), "Kubernetes would create it");
    }

    #[test]
    fn each_application_has_its_name_and_spec() {
        let read = |answer: Value| applications(serde_json::from_value(answer).unwrap());
        let vault = json!({ "metadata": { "name": "vault" }, "spec": { "project": "apps" } });
        let [one] = &read(json!({ "applications": [vault] }))[..] else { panic!("one") };
        assert_eq!((&*one.name, &one.spec), ("vault", &json!({ "project": "apps" })));
        assert_eq!(read(json!({})), []);
        assert_eq!(read(json!({ "applications": null })), []);
    }
}
