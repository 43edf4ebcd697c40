//! Server-side apply of rendered objects: what is as it should be is not changed, and nobody's
//! fields are taken unless that is said.

use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::time::Instant;

use super::render::{kind, name, namespace};
use crate::configure::Outcome;
use tiphys_cluster::conflict;
use tiphys_cluster::names::BOOTSTRAP_MANAGER;
use tiphys_cluster::{ClusterError, Kind};
use tiphys_cluster::{Kinds, ObjectName};

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

pub(super) struct Applier<'a> {
    pub(super) client: &'a Client,
    pub(super) adoption: Adoption,
    pub(super) dry_run: bool,
    /// Until when a server that is not able to answer is asked again.
    pub(super) deadline: Instant,
}

impl Applier<'_> {
    /// Applies objects one after the other: the order means something.
    pub(super) async fn apply(&self, objects: &[Value]) -> Result<Vec<Applied>, ClusterError> {
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
    ) -> Result<Outcome, ClusterError> {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let version = version.rsplit_once('/').map_or(version, |(_, version)| version);
        let Some(api) = kinds.api_in(known, version) else {
            // A dry run has not brought the CRD that would bring the kind.
            if self.dry_run {
                return Ok(Outcome::Created);
            }
            let why = format!("the cluster does not have this kind in `{}`", known.group);
            return Err(ClusterError::new(Kind::Failed, cannot_be_written(known), why)
                .hint("its CRD is not among the manifests: check what they are for"));
        };
        let what = format!("{known} cannot be read");
        let before = api.get_metadata_opt(name(object)).await.map_err(ClusterError::kube(what))?;
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
                    return Err(conflict(&known.to_string(), object, &status)
                        .hint("let whoever manages it go, or take the fields over with --adopt"));
                }
                Err(error) => error,
            };
            let passing = passes(&error);
            let error = ClusterError::kube(cannot_be_written(known))(error);
            if !passing || Instant::now() + PAUSE > self.deadline {
                return Err(explained(error));
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
    ) -> Result<Outcome, ClusterError> {
        let there = ObjectName { namespace: "default".to_owned(), ..known.clone() };
        let Some(api) = kinds.api_in(&there, version) else { return Ok(Outcome::Created) };
        let mut moved = object.clone();
        moved["metadata"]["namespace"] = "default".into();
        let mut params = PatchParams::apply(BOOTSTRAP_MANAGER).force();
        params.dry_run = true;
        match api.patch(name(object), &params, &Patch::Apply(&moved)).await {
            Ok(_) => Ok(Outcome::Created),
            Err(error) => Err(explained(ClusterError::kube(cannot_be_written(known))(error))),
        }
    }
}

fn cannot_be_written(object: &ObjectName) -> String {
    format!("{object} could not be applied")
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

/// What to do about what the API server has said.
fn explained(error: ClusterError) -> ClusterError {
    let next = if error.why.contains("webhook") {
        "a webhook has to answer before anything can be written: see its pods, or remove its \
         configuration if they are gone for good; then run this again"
    } else if error.kind == Kind::Failed {
        "correct what the API server names, and run this again: it goes on where it stopped"
    } else {
        return error;
    };
    error.hint(next)
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
}
