//! Submitting a workflow from one of our templates.

use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use tiphys_cluster::names::{ARGOCD_LABEL, MANAGED_BY, NAMESPACE, PLATFORM_LABEL};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{PlatformName, Scope};

use crate::error::WorkflowsError;
use crate::workflow::{Place, api, creating};

/// Of the chart.
const TEMPLATE: &str = "tiphys-deploy";

/// A deployment to be submitted.
#[derive(Debug, Clone)]
pub struct Submission {
    pub platform: PlatformName,
    /// The namespace of Argo CD.
    pub argocd: String,
    pub scope: Scope,
    /// If it is set, another environment is refused.
    pub environment: Option<String>,
    /// To submit it again under this name changes nothing. Otherwise, each has a new one.
    pub name: Option<String>,
}

impl Submission {
    fn workflow(&self) -> Value {
        let parameters = [
            ("platform", Some(self.platform.to_string())),
            ("scope", Some(self.scope.to_string())),
            ("argocd-namespace", Some(self.argocd.clone())),
            ("environment", self.environment.clone()),
        ];
        let parameter = |(name, value)| Some(json!({ "name": name, "value": value? }));
        let parameters: Vec<Value> =
            parameters.into_iter().filter_map(|(name, value)| parameter((name, value))).collect();
        let mut metadata = json!({
            "labels": {
                MANAGED_BY.0: MANAGED_BY.1,
                PLATFORM_LABEL: self.platform,
                ARGOCD_LABEL: self.argocd,
            },
        });
        match &self.name {
            Some(name) => metadata["name"] = name.clone().into(),
            None => metadata["generateName"] = format!("{TEMPLATE}-").into(),
        }
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": metadata,
            "spec": {
                "workflowTemplateRef": { "name": TEMPLATE, "clusterScope": true },
                "arguments": { "parameters": parameters },
            },
        })
    }
}

/// Submits it; where it is.
pub async fn submit(client: &Client, submission: &Submission) -> Result<Place, WorkflowsError> {
    let workflow: DynamicObject =
        serde_json::from_value(submission.workflow()).map_err(|error| {
            RequestError::because("cannot write a workflow")(kube::Error::SerdeError(error))
        })?;
    let created = api(client, NAMESPACE).create(&creating(), &workflow).await;
    let created = created.map_err(RequestError::because("cannot submit a workflow"));
    match created {
        Ok(created) => Ok(place(created.metadata.name.unwrap_or_default())),
        Err(error) if error.cause() == Cause::NotFound => {
            Err(WorkflowsError::NotInstalled { what: format!("Workflows in `{NAMESPACE}`") })
        }
        Err(error) => match &submission.name {
            Some(name) if error.cause() == Cause::Conflict => Ok(place(name.clone())),
            _ => Err(error.into()),
        },
    }
}

fn place(name: String) -> Place {
    Place { namespace: NAMESPACE.to_owned(), name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stands_in_the_parameters() {
        let submission = Submission {
            platform: PlatformName::parse("prod").unwrap(),
            argocd: "gitops".to_owned(),
            scope: Scope::Platform,
            environment: None,
            name: None,
        };
        let workflow = submission.workflow();
        let parameters = &workflow["spec"]["arguments"]["parameters"];
        assert_eq!(
            *parameters,
            json!([
                { "name": "platform", "value": "prod" },
                { "name": "scope", "value": "platform" },
                { "name": "argocd-namespace", "value": "gitops" },
            ])
        );
        let fields: Vec<&String> = workflow["spec"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["arguments", "workflowTemplateRef"], "all else is the template's");
    }
}
