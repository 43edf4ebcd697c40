//! An Application as the API server has it: the fields that a run reads, and no others, so that
//! thousands of them fit in little memory.

mod hydrator;
mod list;
mod observe;

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use list::list;
pub use observe::Unreadable;

/// The annotation that asks Argo CD to compare an Application anew; it removes it afterwards.
pub const REFRESH: &str = "argocd.argoproj.io/refresh";
/// Where an operation carries our id.
pub(crate) const OPERATION_INFO: &str = "tiphys.dev/operation";

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Application {
    pub metadata: ObjectMeta,
    pub spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    #[serde(default)]
    pub status: Status,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(default)]
    pub project: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub source: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub sources: Value,
    /// The dry source and the branch to sync from. Replaces `source` and `sources`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub source_hydrator: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub destination: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub ignore_differences: Value,
    #[serde(default)]
    pub sync_policy: Option<SyncPolicy>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncPolicy {
    #[serde(default)]
    pub automated: Option<Automated>,
    #[serde(default)]
    pub sync_options: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Automated {
    #[serde(default)]
    pub prune: bool,
    /// Since Argo CD 3.1; absent means that it is.
    #[serde(default)]
    pub enabled: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    #[serde(default)]
    pub initiated_by: InitiatedBy,
    #[serde(default)]
    pub info: Option<Vec<Info>>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub struct InitiatedBy {
    #[serde(default)]
    pub username: String,
    #[serde(default)]
    pub automated: bool,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Info {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub value: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    #[serde(default)]
    pub sync: SyncStatus,
    #[serde(default)]
    pub health: HealthStatus,
    #[serde(default)]
    pub resources: Option<Vec<ResourceStatus>>,
    #[serde(default)]
    pub conditions: Option<Vec<ConditionStatus>>,
    #[serde(default)]
    pub reconciled_at: Option<String>,
    #[serde(default)]
    pub operation_state: Option<OperationState>,
    #[serde(default)]
    pub history: Option<Vec<HistoryEntry>>,
    #[serde(default)]
    pub source_hydrator: HydratorStatus,
}

/// A sync that succeeded. That there was one is all that anybody asks, so it takes no memory.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
pub struct HistoryEntry {}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HydratorStatus {
    #[serde(default)]
    pub current_operation: Option<HydrateOperation>,
}

/// The last rendering, which may still be under way.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HydrateOperation {
    #[serde(default)]
    pub phase: String,
    /// What it was made with.
    #[serde(default)]
    pub source_hydrator: Value,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncStatus {
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub revision: String,
    #[serde(default)]
    pub revisions: Option<Vec<String>>,
    #[serde(default)]
    pub compared_to: Option<ComparedTo>,
}

/// What the last comparison was made with.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparedTo {
    #[serde(default)]
    pub source: Value,
    #[serde(default)]
    pub sources: Value,
    #[serde(default)]
    pub destination: Value,
    #[serde(default)]
    pub ignore_differences: Value,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthStatus {
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStatus {
    #[serde(default)]
    pub group: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub sync_wave: i64,
    /// Argo CD deletes it only when somebody has approved that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_deletion_confirmation: bool,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub struct ConditionStatus {
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub message: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationState {
    #[serde(default)]
    pub operation: Operation,
    #[serde(default)]
    pub phase: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub finished_at: Option<String>,
    #[serde(default)]
    pub sync_result: Option<SyncResult>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub struct SyncResult {
    #[serde(default)]
    pub revision: String,
    #[serde(default)]
    pub revisions: Option<Vec<String>>,
    #[serde(default)]
    pub resources: Option<Vec<ResourceResult>>,
}

/// What an operation did with a resource.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ResourceResult {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub status: String,
    pub message: String,
}

impl Application {
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Empty, if whoever has read it does not say.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Its objects are to stay when it is deleted. Argo CD sees to that itself since 3.4.
    #[must_use]
    pub fn keeps_its_objects(&self) -> bool {
        let options =
            self.spec.sync_policy.as_ref().and_then(|policy| policy.sync_options.as_ref());
        options.is_some_and(|options| options.iter().any(|option| option == "Delete=false"))
    }

    /// Whether anybody has ever begun to sync it.
    #[must_use]
    pub fn was_synced(&self) -> bool {
        let history = self.status.history.as_ref();
        self.status.operation_state.is_some() || history.is_some_and(|all| !all.is_empty())
    }

    /// What it is made of: one source, or several.
    pub fn sources(&self) -> impl Iterator<Item = &Value> {
        let several = self.spec.sources.as_array().into_iter().flatten();
        [&self.spec.source].into_iter().filter(|source| !source.is_null()).chain(several)
    }

    /// Argo CD may sync it by itself.
    #[must_use]
    pub fn automated(&self) -> Option<Automated> {
        let automated = self.spec.sync_policy.as_ref()?.automated?;
        (automated.enabled != Some(false)).then_some(automated)
    }
}

impl Resource for Application {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Application".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "argoproj.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "applications".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
