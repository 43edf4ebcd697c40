//! The health of an object, from the first rule to the last.

use serde_json::Value as Json;
use tiphys_model::Health;

use crate::{Decider, EvaluationError, Evaluator, GroupKind, Lookup, Verdict};

/// What Argo CD would say of an object, and why.
#[derive(Debug)]
pub struct Assessment<'l> {
    pub kind: GroupKind,
    /// The object is being deleted: that comes before every check.
    pub deleting: bool,
    pub decider: Decider<'l>,
    /// None: the verdict is not a script's. Argo CD has a check of its own, or the object has no
    /// health.
    pub verdict: Option<Result<Verdict, EvaluationError>>,
}

/// Argo CD waits for hooks by this finalizer, so their deletion is not news.
const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";

/// `object` must have `apiVersion` and `kind`.
pub fn assess<'l>(
    lookup: &'l Lookup,
    evaluator: &mut Evaluator,
    object: &Json,
) -> Option<Assessment<'l>> {
    let kind = GroupKind::of(object)?;
    let decider = lookup.decider(&kind);
    if deleting(object) {
        let message = "Pending deletion".to_owned();
        let verdict = Verdict { status: Some(Health::Progressing), message };
        return Some(Assessment { kind, deleting: true, decider, verdict: Some(Ok(verdict)) });
    }
    let verdict = decider.script().map(|script| evaluator.evaluate(script, object));
    Some(Assessment { kind, deleting: false, decider, verdict })
}

fn deleting(object: &Json) -> bool {
    let metadata = &object["metadata"];
    let hook = metadata["finalizers"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one.as_str() == Some(HOOK_FINALIZER)));
    metadata["deletionTimestamp"].is_string() && !hook
}
