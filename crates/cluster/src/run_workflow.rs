//! A workflow of Argo Workflows that does a run, from one of the chart's templates.

use serde_json::{Value, json};
use tiphys_model::{PlatformName, Scope, TriggerAction};

use crate::names::{ARGOCD_LABEL, MANAGED_BY, PLATFORM_LABEL};

/// What the run is to do.
#[derive(Debug, Clone)]
pub struct RunWorkflow {
    pub action: TriggerAction,
    pub platform: PlatformName,
    /// The namespace of Argo CD.
    pub argocd: String,
    pub scope: Scope,
    /// If it is set, another environment is refused.
    pub environment: Option<String>,
    /// No person asks for it, so a pause counts, and what was never deployed or was taken down stays so.
    pub unattended: bool,
}

impl RunWorkflow {
    /// Name of the ClusterWorkflowTemplate.
    #[must_use]
    pub fn template(action: TriggerAction) -> String {
        format!("tiphys-{action}")
    }

    #[must_use]
    pub fn labels(&self) -> Value {
        json!({
            MANAGED_BY.0: MANAGED_BY.1,
            PLATFORM_LABEL: self.platform,
            ARGOCD_LABEL: self.argocd,
        })
    }

    /// The template, and its parameters; all else is the template's.
    #[must_use]
    pub fn spec(&self) -> Value {
        let unattended = self.unattended && self.action == TriggerAction::Deploy;
        let parameters = [
            ("platform", Some(self.platform.to_string())),
            ("scope", Some(self.scope.to_string())),
            ("argocd-namespace", Some(self.argocd.clone())),
            ("environment", self.environment.clone()),
            ("unattended", unattended.then(|| true.to_string())),
        ];
        let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let given = given.map(|(name, value)| json!({ "name": name, "value": value }));
        json!({
            "workflowTemplateRef": { "name": Self::template(self.action), "clusterScope": true },
            "arguments": { "parameters": given.collect::<Vec<_>>() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(action: TriggerAction, unattended: bool) -> Value {
        let run = RunWorkflow {
            action,
            platform: PlatformName::parse("prod").unwrap(),
            argocd: "gitops".to_owned(),
            scope: "stack:data,app:web".parse().unwrap(),
            environment: None,
            unattended,
        };
        let spec = run.spec();
        let fields: Vec<&String> = spec.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["arguments", "workflowTemplateRef"], "all else is the template's");
        assert_eq!(spec["workflowTemplateRef"]["name"], format!("tiphys-{action}"));
        spec["arguments"]["parameters"].clone()
    }

    #[test]
    fn parameters_say_what_to_do() {
        let scope = "app:web,stack:data";
        let expected = json!([
            { "name": "platform", "value": "prod" },
            { "name": "scope", "value": scope },
            { "name": "argocd-namespace", "value": "gitops" },
        ]);
        assert_eq!(parameters(TriggerAction::Deploy, false), expected);
        assert_eq!(parameters(TriggerAction::Validate, true), expected, "it changes nothing");
        let last = json!({ "name": "unattended", "value": "true" });
        assert_eq!(parameters(TriggerAction::Deploy, true)[3], last);
    }
}
