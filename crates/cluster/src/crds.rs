//! CRDs on their way out.

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::request::RequestError;

const NUDGED: &str = "tiphys.dev/nudged";

/// An API server that has just begun to serve a CRD may not be able to list its objects for a
/// moment. If the CRD is deleted then, it is not tried again until the CRD changes: so it is
/// changed.
pub async fn nudge(client: &Client, crd: &Value) -> Result<(), RequestError> {
    if !is_forgotten(crd) {
        return Ok(());
    }
    let name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let patch = json!({ "metadata": {
        "uid": crd["metadata"]["uid"], "annotations": { NUDGED: Timestamp::now().to_string() },
    } });
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    match crds.patch_metadata(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        // It has gone meanwhile, or another one has come.
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        Err(error) => Err(RequestError::because(format!("cannot write the CRD {name}"))(error)),
    }
}

fn is_forgotten(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    let failed = |condition: &Value| {
        condition["type"] == "Terminating" && condition["reason"] == "InstanceDeletionFailed"
    };
    conditions.is_some_and(|conditions| conditions.iter().any(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_failed_is_nudged() {
        let crd = |reason: &str| {
            let condition = json!({ "type": "Terminating", "status": "True", "reason": reason });
            json!({ "status": { "conditions": [condition] } })
        };
        assert!(is_forgotten(&crd("InstanceDeletionFailed")));
        assert!(!is_forgotten(&crd("InstanceDeletionInProgress")));
        assert!(!is_forgotten(&json!({})));
    }
}
