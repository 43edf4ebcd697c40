//! Objects of the platform that its file does not call for any more.

use kube::api::DynamicObject;
use kube::{Api, ResourceExt};
use serde_json::Value;
use tiphys_cluster::{RequestError, delete};

use super::intent::essence;
use super::{Change, Outcome};

/// An object that goes.
pub(super) struct Removal {
    objects: Api<DynamicObject>,
    uid: Option<String>,
    change: Change,
}

impl Removal {
    pub(super) fn new(
        objects: Api<DynamicObject>,
        (kind, namespace): (&str, &str),
        found: &DynamicObject,
    ) -> Self {
        let mut change = Change {
            kind: kind.to_owned(),
            name: found.name_any(),
            namespace: namespace.to_owned(),
            outcome: Outcome::Removed,
            before: Some(essence(found)),
            after: Value::Null,
        };
        change.hide_secrets();
        Removal { objects, uid: found.uid(), change }
    }

    pub(super) async fn carry_out(&self) -> Result<(), RequestError> {
        let what = format!("cannot delete {}", self.change);
        let only = delete::only(self.uid.clone());
        delete::delete(&self.objects, &self.change.name, &only, what).await
    }

    #[cfg(test)]
    pub(super) fn change(&self) -> &Change {
        &self.change
    }

    pub(super) fn into_change(self) -> Change {
        self.change
    }
}
