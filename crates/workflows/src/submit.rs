//! Submitting a workflow from one of our templates.

use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use tiphys_cluster::names::NAMESPACE;
use tiphys_cluster::{Cause, RequestError, RunWorkflow};

use crate::error::WorkflowsError;
use crate::workflow::{Place, api, creating};

/// A run to be submitted.
#[derive(Debug, Clone)]
pub struct Submission {
    pub run: RunWorkflow,
    /// To submit it again under this name changes nothing. Otherwise, each has a new one.
    pub name: Option<String>,
}

impl Submission {
    fn workflow(&self) -> Value {
        let mut metadata = json!({ "labels": self.run.labels() });
        let (field, name) = match &self.name {
            Some(name) => ("name", name.clone()),
            None => ("generateName", format!("{}-", RunWorkflow::template(self.run.action))),
        };
        metadata[field] = name.into();
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": metadata,
            "spec": self.run.spec(),
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
    use tiphys_model::{PlatformName, Scope, TriggerAction};

    use super::*;

    #[test]
    fn it_has_a_name_of_its_own_unless_it_is_given_one() {
        let run = RunWorkflow {
            action: TriggerAction::Deploy,
            platform: PlatformName::parse("prod").unwrap(),
            argocd: "argocd".to_owned(),
            scope: Scope::Platform,
            environment: None,
            unattended: false,
        };
        let metadata = |name: Option<&str>| {
            let name = name.map(str::to_owned);
            Submission { run: run.clone(), name }.workflow()["metadata"].clone()
        };
        assert_eq!(metadata(None)["generateName"], "tiphys-deploy-");
        assert_eq!(metadata(Some("first"))["name"], "first");
        assert_eq!(metadata(Some("first")).get("generateName"), None);
    }
}
