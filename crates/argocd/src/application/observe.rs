//! From an Application to what the gate may base its verdict on.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tiphys_model::{Health, SyncStatus as Sync};
use tiphys_run::{
    Condition, ConditionKind, Deleting, Drifted, Initiator, LastOperation, Observation,
    Operation as SeenOperation, OperationPhase, Revisions, Stamp,
};

use super::{Application, OPERATION_INFO, Operation, OperationState, Spec, hydrator};

/// An Application that cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the Application `{app}` has an invalid {what}: `{found}`")]
pub struct Unreadable {
    pub app: String,
    pub what: &'static str,
    pub found: String,
}

impl Application {
    /// What the object shows. Generations and extra criteria need other objects: they are for
    /// the engine to add.
    pub fn observe(&self) -> Result<Observation, Unreadable> {
        let status = &self.status;
        let compared_at = revisions(&status.sync.revision, status.sync.revisions.as_deref());
        Ok(Observation {
            version: self.version()?,
            cluster: self.destination().other_cluster,
            deleting: self.deleting(),
            operation: self.operation.as_ref().map(seen_operation),
            last: status.operation_state.as_ref().map(|last| self.last(last)).transpose()?,
            reconciled_at: self.stamp("status.reconciledAt", status.reconciled_at.as_deref())?,
            compared_to_spec: self.is_compared_to_spec(),
            pinned: self.is_pinned(&compared_at),
            revisions: compared_at,
            sync: match status.sync.status.as_str() {
                "Synced" => Sync::Synced,
                "OutOfSync" => Sync::OutOfSync,
                _ => Sync::Unknown,
            },
            drifted: self.drifted(),
            health: status.health.status.parse().unwrap_or(Health::Unknown),
            health_message: text(&status.health.message),
            conditions: self.conditions(),
            lagging: Vec::new(),
            unmet: Vec::new(),
        })
    }

    /// When its health became what it is.
    pub fn health_since(&self) -> Result<Option<Stamp>, Unreadable> {
        let health = &self.status.health;
        self.stamp("status.health.lastTransitionTime", health.last_transition_time.as_deref())
    }

    /// Versions are numbers that grow, since Kubernetes 1.35 by contract and before in practice.
    pub fn version(&self) -> Result<u64, Unreadable> {
        let version = self.metadata.resource_version.as_deref().unwrap_or_default();
        version.parse().map_err(|_| self.unreadable("resourceVersion", version))
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    fn unreadable(&self, what: &'static str, found: &str) -> Unreadable {
        Unreadable { app: self.name().to_owned(), what, found: found.to_owned() }
    }

    fn deleting(&self) -> Option<Deleting> {
        let since = self.metadata.deletion_timestamp.as_ref()?;
        let finalizers = self.metadata.finalizers.iter().flatten();
        Some(Deleting {
            since: Stamp(since.0.as_second()),
            finalizers: finalizers.map(|finalizer| finalizer.as_str().into()).collect(),
        })
    }

    fn last(&self, state: &OperationState) -> Result<LastOperation, Unreadable> {
        let phase = match state.phase.as_str() {
            "Running" => OperationPhase::Running,
            "Terminating" => OperationPhase::Terminating,
            "Succeeded" => OperationPhase::Succeeded,
            "Failed" => OperationPhase::Failed,
            "Error" => OperationPhase::Error,
            other => return Err(self.unreadable("operation phase", other)),
        };
        let result = state.sync_result.as_ref();
        Ok(LastOperation {
            operation: seen_operation(&state.operation),
            phase,
            finished_at: self.stamp("operationState.finishedAt", state.finished_at.as_deref())?,
            revisions: result.map_or_else(Revisions::default, |result| {
                revisions(&result.revision, result.revisions.as_deref())
            }),
            message: message(state).into(),
        })
    }

    fn stamp(&self, what: &'static str, text: Option<&str>) -> Result<Option<Stamp>, Unreadable> {
        let Some(text) = text else { return Ok(None) };
        let stamp: Timestamp = text.parse().map_err(|_| self.unreadable(what, text))?;
        Ok(Some(Stamp(stamp.as_second())))
    }

    fn is_compared_to_spec(&self) -> bool {
        let Some(compared) = &self.status.sync.compared_to else { return false };
        let Spec { source, sources, source_hydrator, destination, ignore_differences, .. } =
            &self.spec;
        let hydrated = hydrator::sync_source(source_hydrator);
        let (source, sources) = match &hydrated {
            Some(_) if !self.is_hydrated() => return false,
            Some(hydrated) => (hydrated, &Value::Null),
            None => (source, sources),
        };
        [
            (source, &compared.source),
            (sources, &compared.sources),
            (destination, &compared.destination),
            (ignore_differences, &compared.ignore_differences),
        ]
        .into_iter()
        .all(|(spec, compared)| essence(spec) == essence(compared))
    }

    /// Whether each source names the revision that it was compared at.
    fn is_pinned(&self, compared_at: &Revisions) -> bool {
        let Spec { source, sources, source_hydrator, .. } = &self.spec;
        let hydrated = hydrator::sync_source(source_hydrator);
        let sources: Vec<&Value> = match (&hydrated, sources.as_array()) {
            (Some(hydrated), _) => vec![hydrated],
            (None, Some(sources)) if !sources.is_empty() => sources.iter().collect(),
            (None, _) => vec![source],
        };
        let named = sources.iter().map(|source| source["targetRevision"].as_str());
        named.eq(compared_at.0.iter().map(|revision| Some(&**revision)))
    }

    fn drifted(&self) -> Vec<Drifted> {
        let resources = self.status.resources.iter().flatten();
        resources
            .filter(|resource| resource.status == "OutOfSync")
            .map(|resource| Drifted {
                resource: format!("{}/{}", resource.kind, resource.name).into(),
                fields: Vec::new(),
            })
            .collect()
    }

    fn conditions(&self) -> Vec<Condition> {
        let conditions = self.status.conditions.iter().flatten();
        conditions
            .filter_map(|condition| {
                let kind = match condition.kind.as_str() {
                    "InvalidSpecError" => ConditionKind::InvalidSpec,
                    "ComparisonError" => ConditionKind::Comparison,
                    "UnknownError" => ConditionKind::Unknown,
                    "SyncError" => ConditionKind::Sync,
                    _ => return None,
                };
                Some(Condition { kind, message: condition.message.as_str().into() })
            })
            .collect()
    }
}

/// What an operation says, and of which resource, where it says only that there is one.
fn message(state: &OperationState) -> String {
    let message = &state.message;
    let results = state.sync_result.iter().flat_map(|result| result.resources.iter().flatten());
    let mut failed = results.filter(|result| result.status == "SyncFailed");
    match failed.next() {
        Some(first) if !message.contains(&first.message) => {
            format!("{message}: {}/{}: {}", first.kind, first.name, first.message)
        }
        Some(_) | None => message.clone(),
    }
}

fn seen_operation(operation: &Operation) -> SeenOperation {
    let infos = operation.info.iter().flatten();
    let id = infos.into_iter().find(|info| info.name == OPERATION_INFO);
    let by = &operation.initiated_by;
    SeenOperation {
        // What does not read as one of ours is somebody else's.
        id: id.and_then(|info| info.value.parse().ok()),
        by: match by.username.as_str() {
            _ if by.automated => Initiator::Automated,
            "" => Initiator::Unnamed,
            name => name.into(),
        },
    }
}

fn revisions(one: &str, several: Option<&[String]>) -> Revisions {
    let several = several.unwrap_or_default();
    if several.is_empty() {
        return Revisions(text(one).into_iter().collect());
    }
    Revisions(several.iter().map(|revision| revision.as_str().into()).collect())
}

fn text(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

/// A value without what Argo CD leaves out when it writes one: nulls, zeros and what is empty.
/// A spec that a person wrote may have them, the copy that it was compared to does not.
pub(super) fn essence(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Bool(true) => Some(Value::Bool(true)),
        Value::Number(number) => (number.as_f64() != Some(0.0)).then(|| value.clone()),
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        Value::Array(items) if items.is_empty() => None,
        // Positions count, so an item stays even if nothing is left of it.
        Value::Array(items) => {
            Some(items.iter().map(|item| essence(item).unwrap_or(Value::Null)).collect())
        }
        Value::Object(fields) => {
            let left: Map<String, Value> = fields
                .iter()
                .filter_map(|(name, field)| Some((name.clone(), essence(field)?)))
                .collect();
            (!left.is_empty()).then_some(Value::Object(left))
        }
    }
}
