//! Server-side apply of rendered objects: what is as it should be is not changed, and nobody's
//! fields are taken unless that is said.

use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::time::Instant;

use super::render::{kind, name, namespace};
use crate::configure::Outcome;
use tiphys_cluster::names::BOOTSTRAP_MANAGER;
use tiphys_cluster::{Cause, FieldConflict, Kinds, ObjectName, RequestError};
use tiphys_model::{Exit, Explain, Explanation};

/// How long to wait before an object is offered again to an API server that cannot take it now.
const PAUSE: Duration = Duration::from_secs(1);

/// How objects are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// A field that somebody else manages is an error.
    Refused,
    /// Fields of others become ours.
    Allowed,
}

/// One object, and what became of it or would become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub object: ObjectName,
    pub outcome: Outcome,
}

/// An object that is not in the cluster as it should be.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum ApplyError {
    /// The cluster does not know objects of its kind.
    UnknownKind {
        object: ObjectName,
    },
    Conflict(#[source] FieldConflict),
    /// The API server does not take it.
    Write(#[source] RequestError),
    Request(#[from] RequestError),
}

impl Explain for ApplyError {
    fn explain(&self) -> Explanation {
        match self {
            ApplyError::UnknownKind { object } => Explanation::new(
                Exit::Failed,
                not_applied(object),
                format!("unknown kind `{}` in the API group `{}`", object.kind, object.group),
            )
            .hint("add the CRD of this kind to the manifests"),
            ApplyError::Conflict(conflict) => conflict
                .explain()
                .hint("remove the other manager, or take the fields over with `--adopt`"),
            ApplyError::Write(error) => {
                let said = error.explain();
                if said.why.contains("webhook") {
                    said.hint(
                        "check the pods of the webhook, or remove its configuration if they are \
                         gone for good; then run this command again",
                    )
                } else if error.cause() == Cause::Other {
                    said.hint(
                        "fix what the API server reports, then run this command again: it \
                         continues where it stopped",
                    )
                } else {
                    said
                }
            }
            ApplyError::Request(error) => error.explain(),
        }
    }
}

fn not_applied(object: &ObjectName) -> String {
    format!("cannot apply {object}")
}

pub(super) struct Applier<'a> {
    pub(super) client: &'a Client,
    pub(super) adoption: Adoption,
    pub(super) dry_run: bool,
    /// Until when a server that is not able to answer is asked again.
    pub(super) deadline: Instant,
}

impl Applier<'_> {
    /// Applies objects one after the other: the order means something.
    pub(super) async fn apply(&self, objects: &[Value]) -> Result<Vec<Applied>, ApplyError> {
        let kinds = Kinds::discover(self.client).await?;
        let mut applied = Vec::new();
        for object in objects {
            let known = object_name(object);
            let outcome = self.apply_one(&kinds, object, &known).await?;
            applied.push(Applied { object: known, outcome });
        }
        Ok(applied)
    }

    async fn apply_one(
        &self,
        kinds: &Kinds,
        object: &Value,
        known: &ObjectName,
    ) -> Result<Outcome, ApplyError> {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let version = version.rsplit_once('/').map_or(version, |(_, version)| version);
        let Some(api) = kinds.api_in(known, version) else {
            // A dry run has not brought the CRD that would bring the kind.
            if self.dry_run {
                return Ok(Outcome::Created);
            }
            return Err(ApplyError::UnknownKind { object: known.clone() });
        };
        let what = format!("cannot read {known}");
        let before =
            api.get_metadata_opt(name(object)).await.map_err(RequestError::because(what))?;
        let mut params = PatchParams::apply(BOOTSTRAP_MANAGER);
        params.dry_run = self.dry_run;
        params.force = self.adoption == Adoption::Allowed;
        loop {
            let sent: Result<DynamicObject, kube::Error> =
                api.patch(name(object), &params, &Patch::Apply(object)).await;
            let error = match sent {
                Ok(after) => {
                    return Ok(match before {
                        None => Outcome::Created,
                        Some(before) if before.resource_version() == after.resource_version() => {
                            Outcome::Unchanged
                        }
                        Some(_) => Outcome::Changed,
                    });
                }
                // The namespace does not exist yet, and a dry run does not make it.
                Err(kube::Error::Api(status)) if self.dry_run && status.code == 404 => {
                    return self.try_elsewhere(kinds, object, known, version).await;
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    let conflict = FieldConflict::new(&known.to_string(), object, *status);
                    return Err(ApplyError::Conflict(conflict));
                }
                Err(error) => error,
            };
            if !passes(&error) || Instant::now() + PAUSE > self.deadline {
                let error = RequestError::because(not_applied(known))(error);
                return Err(ApplyError::Write(error));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Lets the API server judge an object in a namespace that always exists.
    async fn try_elsewhere(
        &self,
        kinds: &Kinds,
        object: &Value,
        known: &ObjectName,
        version: &str,
    ) -> Result<Outcome, ApplyError> {
        let there = ObjectName { namespace: "default".to_owned(), ..known.clone() };
        let Some(api) = kinds.api_in(&there, version) else { return Ok(Outcome::Created) };
        let mut moved = object.clone();
        moved["metadata"]["namespace"] = "default".into();
        let mut params = PatchParams::apply(BOOTSTRAP_MANAGER).force();
        params.dry_run = true;
        let tried = api.patch(name(object), &params, &Patch::Apply(&moved)).await;
        tried.map_err(RequestError::because(not_applied(known))).map_err(ApplyError::Write)?;
        Ok(Outcome::Created)
    }
}

/// Whether another attempt may do better: a server that is busy or starting, or a webhook whose
/// pods are.
fn passes(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::Auth(_) | kube::Error::SerdeError(_) => false,
        _ => true,
    }
}

pub(super) fn object_name(object: &Value) -> ObjectName {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    ObjectName {
        group: version.rsplit_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: kind(object).to_owned(),
        namespace: namespace(object).to_owned(),
        name: name(object).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_known_by_group_and_not_by_version() {
        let object = |version: &str| {
            object_name(&json!({
                "apiVersion": version, "kind": "K", "metadata": { "name": "n", "namespace": "s" },
            }))
        };
        assert_eq!(object("apps/v1").group, "apps");
        assert_eq!(object("v1").group, "");
        assert_eq!(object("v1").to_string(), "K/s/n");
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let api = |code: u16| kube::Error::Api(Status::failure("m", "r").with_code(code).boxed());
        for (code, again) in [(400, false), (403, false), (422, false), (429, true), (500, true)] {
            assert_eq!(passes(&api(code)), again, "{code}");
        }
    }

    #[test]
    fn advice_is_about_what_the_api_server_has_said() {
        let next = |code: u16, message: &str| {
            let status = Status::failure(message, "r").with_code(code).boxed();
            let error = RequestError::because("w")(kube::Error::Api(status));
            ApplyError::Write(error).explain().next.unwrap()
        };
        assert!(next(500, "failed calling webhook").starts_with("check the pods of the webhook"));
        assert!(next(503, "failed calling webhook").starts_with("check the pods of the webhook"));
        assert!(next(422, "invalid").starts_with("fix what the API server reports"));
        assert!(next(403, "forbidden").contains("credentials"));
    }
}
