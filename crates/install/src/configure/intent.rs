//! One object: what is there, what the API server would make of it, and what is done about it.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;

use super::objects::Desired;
use super::{Change, Outcome};
use tiphys_cluster::names::PLATFORM_LABEL;
use tiphys_cluster::{FieldConflict, RequestError, dynamic};
use tiphys_model::{Exit, Explain, Explanation};

/// A change that the API server has tried out and not made.
pub(super) struct Intent {
    objects: Api<DynamicObject>,
    desired: Desired,
    how: How,
    /// The fields that are already in the name of who writes.
    owned: Option<Value>,
    change: Change,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Server-side apply: fields that somebody else manages are not taken.
    Apply,
    /// A merge that carries the version it was made for, for what others write as a whole.
    Merge,
}

/// An object that is not, or cannot be made, what it should be.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum IntentError {
    OtherPlatform {
        /// The object, in words.
        object: String,
        platform: String,
    },
    Conflict(#[from] FieldConflict),
    Request(#[from] RequestError),
}

impl Explain for IntentError {
    fn explain(&self) -> Explanation {
        match self {
            IntentError::OtherPlatform { object, platform } => Explanation::new(
                Exit::Configuration,
                format!("{object} belongs to another platform"),
                format!("its label {PLATFORM_LABEL} says `{platform}`"),
            )
            .hint("choose a platform name and `spec.argocd` projects that no other platform uses"),
            IntentError::Conflict(conflict) => conflict.explain(),
            IntentError::Request(error) => error.explain(),
        }
    }
}

impl Intent {
    /// Tries it out.
    pub(super) async fn new(
        client: &Client,
        desired: Desired,
        how: How,
    ) -> Result<Self, IntentError> {
        let mut intent = Self::read(client, desired, how).await?;
        intent.check_owner()?;
        let tried = intent.send(true).await?;
        intent.judge(&tried);
        Ok(intent)
    }

    /// Something in a namespace that another intent is about to make: nothing can be tried out there.
    pub(super) async fn in_new_namespace(
        client: &Client,
        desired: Desired,
    ) -> Result<Self, IntentError> {
        let mut intent = Self::read(client, desired, How::Apply).await?;
        intent.change.outcome = Outcome::Created;
        intent.change.after = intent.desired.object.clone();
        intent.change.hide_secrets();
        Ok(intent)
    }

    /// What is there.
    async fn read(client: &Client, desired: Desired, how: How) -> Result<Self, IntentError> {
        let text = |pointer: &str| {
            desired.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
        let objects = dynamic(client, desired.namespace(), &version, &kind);
        let what = format!("cannot read {kind} {name}");
        let live = objects.get_opt(&name).await.map_err(RequestError::because(what))?;
        let owned = live.as_ref().and_then(|live| fields_of(live, &desired.manager));
        let before = live.as_ref().map(essence);
        let change = Change {
            kind,
            name,
            namespace,
            outcome: Outcome::Unchanged,
            before,
            after: Value::Null,
        };
        Ok(Intent { objects, desired, how, owned, change })
    }

    /// What the API server would make of it, compared with what is there.
    fn judge(&mut self, tried: &DynamicObject) {
        let owns = fields_of(tried, &self.desired.manager);
        let change = &mut self.change;
        change.after = essence(tried);
        change.hide_secrets();
        let is_same = |change: &Change| change.before.as_ref() == Some(&change.after);
        // What others have set alike is not ours yet, and would go when they let go of it.
        if self.how == How::Apply && self.owned != owns && is_same(change) {
            change.after["metadata"]["managedFields"] =
                format!("(new for {})", self.desired.manager).into();
        }
        change.outcome = match &change.before {
            None => Outcome::Created,
            Some(_) if is_same(change) => Outcome::Unchanged,
            Some(_) => Outcome::Changed,
        };
    }

    /// Makes the change, if there is one to make.
    pub(super) async fn carry_out(&self) -> Result<(), IntentError> {
        if self.change.outcome != Outcome::Unchanged {
            self.send(false).await?;
        }
        Ok(())
    }

    pub(super) fn change(&self) -> &Change {
        &self.change
    }

    pub(super) fn into_change(self) -> Change {
        self.change
    }

    async fn send(&self, dry_run: bool) -> Result<DynamicObject, IntentError> {
        let mut params = PatchParams::apply(&self.desired.manager);
        params.dry_run = dry_run;
        let object = &self.desired.object;
        let name = &self.change.name;
        let sent = match self.how {
            How::Apply => self.objects.patch(name, &params, &Patch::Apply(object)).await,
            How::Merge => self.objects.patch(name, &params, &Patch::Merge(object)).await,
        };
        match sent {
            Ok(object) => Ok(object),
            Err(kube::Error::Api(status)) if status.code == 409 && self.how == How::Apply => {
                Err(FieldConflict::new(&self.change.to_string(), object, *status).into())
            }
            Err(error) => {
                let what = format!("cannot write {}", self.change);
                Err(RequestError::because(what)(error).into())
            }
        }
    }

    /// Two platforms that write to one object would undo each other for ever.
    fn check_owner(&self) -> Result<(), IntentError> {
        let pointer = format!("/metadata/labels/{}", PLATFORM_LABEL.replace('/', "~1"));
        let label = |object: &Value| object.pointer(&pointer)?.as_str().map(str::to_owned);
        let ours = label(&self.desired.object);
        let theirs = self.change.before.as_ref().and_then(label);
        match (ours, theirs) {
            (Some(ours), Some(theirs)) if ours != theirs => Err(IntentError::OtherPlatform {
                object: self.change.to_string(),
                platform: theirs,
            }),
            _ => Ok(()),
        }
    }
}

/// The fields that a manager has applied.
fn fields_of(object: &DynamicObject, manager: &str) -> Option<Value> {
    let mut entries = object.metadata.managed_fields.iter().flatten();
    let ours = entries.find(|entry| {
        entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply")
    });
    ours?.fields_v1.as_ref().map(|fields| fields.0.clone())
}

/// What of an object is somebody's intention. The rest is the API server's bookkeeping and the
/// controllers' work, which go on meanwhile.
pub(super) fn essence(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    strip(&mut value);
    value
}

fn strip(object: &mut Value) {
    const BOOKKEEPING: [&str; 6] =
        ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| name != "status" && name != "operation");
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|name, _| !BOOKKEEPING.contains(&name.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        // A copy of the object, with everything that is secret in it.
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

impl Change {
    /// People see it.
    pub(super) fn hide_secrets(&mut self) {
        if self.kind == "Secret" {
            hide(self.before.as_mut(), &mut self.after);
        }
    }
}

/// Replaces the values of a Secret by what becomes of them.
fn hide(before: Option<&mut Value>, after: &mut Value) {
    let empty = serde_json::Map::new();
    let old =
        before.as_ref().and_then(|before| before["data"].as_object()).unwrap_or(&empty).clone();
    if let Some(data) = after.get_mut("data").and_then(Value::as_object_mut) {
        for (name, value) in data.iter_mut() {
            let kept = old.get(name) == Some(value);
            *value = if kept { "(kept)" } else { "(new)" }.into();
        }
    }
    let new = after["data"].as_object().unwrap_or(&empty).clone();
    if let Some(data) = before.and_then(|b| b.get_mut("data")).and_then(Value::as_object_mut) {
        for (name, value) in data.iter_mut() {
            let kept = new.get(name).is_some_and(|value| value == "(kept)");
            *value = if kept { "(kept)" } else { "(old)" }.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_values_of_secrets_are_replaced_by_what_becomes_of_them() {
        let mut before = json!({ "data": { "same": "YQ==", "other": "Yg==", "gone": "Yw==" } });
        let mut after = json!({ "data": { "same": "YQ==", "other": "ZA==", "token": "ZQ==" } });
        hide(Some(&mut before), &mut after);
        assert_eq!(
            before,
            json!({ "data": { "same": "(kept)", "other": "(old)", "gone": "(old)" } })
        );
        assert_eq!(
            after,
            json!({ "data": { "same": "(kept)", "other": "(new)", "token": "(new)" } })
        );
        let mut created = json!({ "data": { "token": "ZQ==" } });
        hide(None, &mut created);
        assert_eq!(created, json!({ "data": { "token": "(new)" } }));
        let mut same = (json!({ "data": { "a": "x" } }), json!({ "data": { "a": "x" } }));
        hide(Some(&mut same.0), &mut same.1);
        assert_eq!(same.0, same.1);
    }

    #[test]
    fn copies_of_secrets_and_bookkeeping_are_left_out() {
        let mut secret = json!({
            "metadata": {
                "name": "argocd-secret", "uid": "1", "resourceVersion": "2",
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "the password", "a": "b",
                },
            },
            "status": {},
        });
        strip(&mut secret);
        let left = json!({ "metadata": { "name": "argocd-secret", "annotations": { "a": "b" } } });
        assert_eq!(secret, left);
    }
}
