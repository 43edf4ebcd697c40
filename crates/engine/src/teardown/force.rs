//! Removing finalizers by force, from objects that a person has named one by one.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::TeardownError;
use tiphys_cluster::{Kinds, ObjectName, RequestError};

const POLL: Duration = Duration::from_secs(1);

/// `KIND/NAMESPACE/NAME`, or `KIND/NAME` for what is cluster-wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForcedFinalizer {
    kind: String,
    namespace: String,
    name: String,
}

impl FromStr for ForcedFinalizer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, namespace, name) = match parts[..] {
            [kind, name] => (kind, "", name),
            [kind, namespace, name] if !namespace.is_empty() => (kind, namespace, name),
            _ => return Err("expected KIND/NAMESPACE/NAME or KIND/NAME".to_owned()),
        };
        if kind.is_empty() || name.is_empty() {
            return Err("expected KIND/NAMESPACE/NAME or KIND/NAME".to_owned());
        }
        let [kind, namespace, name] = [kind, namespace, name].map(str::to_owned);
        Ok(ForcedFinalizer { kind, namespace, name })
    }
}

impl fmt::Display for ForcedFinalizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{}/{}", self.kind, self.name),
            namespace => write!(f, "{}/{namespace}/{}", self.kind, self.name),
        }
    }
}

/// The objects that are meant. A kind that two groups have is not guessed.
pub(super) fn resolve(
    kinds: &Kinds,
    forced: &[ForcedFinalizer],
) -> Result<Vec<ObjectName>, TeardownError> {
    let resolved = forced.iter().map(|wanted| match kinds.groups_of(&wanted.kind)[..] {
        [group] => Ok(ObjectName {
            group: group.to_owned(),
            kind: wanted.kind.clone(),
            namespace: wanted.namespace.clone(),
            name: wanted.name.clone(),
        }),
        ref groups => Err(TeardownError::Forced {
            wanted: wanted.clone(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
        }),
    });
    resolved.collect()
}

/// Goes on until each has lost its finalizers. One that nobody has asked to delete keeps them.
pub(super) async fn remove_finalizers(
    kinds: &Kinds,
    objects: Vec<ObjectName>,
    note: impl Fn(String),
) -> Result<(), RequestError> {
    let mut left: BTreeSet<ObjectName> = objects.into_iter().collect();
    while !left.is_empty() {
        for object in left.clone() {
            let what = format!("cannot remove the finalizers of {object}");
            let found = kinds.get(&object).await.map_err(RequestError::because(&what))?;
            let Some(found) = found.filter(|found| found.metadata.deletion_timestamp.is_some())
            else {
                continue;
            };
            if let Some(api) = kinds.api(&object).filter(|_| !found.finalizers().is_empty()) {
                let names = found.finalizers().join(", ");
                let patch = json!({ "metadata": { "finalizers": null, "uid": found.uid() } });
                let params = PatchParams::default();
                api.patch(&object.name, &params, &Patch::Merge(&patch))
                    .await
                    .map_err(RequestError::because(&what))?;
                note(format!("removed the finalizers of {object} by force: {names}"));
            }
            left.remove(&object);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_with_or_without_a_namespace() {
        for text in ["CephCluster/rook/main", "Namespace/rook"] {
            assert_eq!(text.parse::<ForcedFinalizer>().unwrap().to_string(), text);
        }
        for text in ["", "main", "a//b", "/b", "a/", "a/b/c/d", "a/b/"] {
            assert!(text.parse::<ForcedFinalizer>().is_err(), "{text}");
        }
    }
}
