//! Applications whose manifests Argo CD renders into a branch, and syncs from there.

use serde_json::{Value, json};

use super::Application;
use super::observe::essence;

/// The source that such an Application is synced from and compared with, if this is one. What is
/// rendered may be in another repository only if it says so.
pub(super) fn sync_source(hydrator: &Value) -> Option<Value> {
    let sync = hydrator.get("syncSource")?;
    let own = sync["repoURL"].as_str().filter(|url| !url.is_empty());
    let repo_url = own.or(hydrator["drySource"]["repoURL"].as_str());
    Some(json!({
        "repoURL": repo_url,
        "path": sync["path"],
        "targetRevision": sync["targetBranch"],
    }))
}

impl Application {
    /// Whether what the branch holds was rendered as the spec says now.
    pub(super) fn is_hydrated(&self) -> bool {
        let last = self.status.source_hydrator.current_operation.as_ref();
        last.is_some_and(|last| {
            let same = essence(&last.source_hydrator) == essence(&self.spec.source_hydrator);
            last.phase == "Hydrated" && same
        })
    }
}
