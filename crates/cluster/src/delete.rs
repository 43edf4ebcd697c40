//! Deleting what was seen, and nothing else.

use std::fmt::Debug;

use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use serde::de::DeserializeOwned;

use crate::request::RequestError;

/// Parameters that fit the object with this uid only: another one of the same name is not ours.
#[must_use]
pub fn only(uid: Option<String>) -> DeleteParams {
    let preconditions = Some(Preconditions { uid, resource_version: None });
    DeleteParams { preconditions, ..DeleteParams::default() }
}

/// How often a deletion is tried that meets somebody else's change.
const ATTEMPTS: u32 = 3;

/// Deletes an object. One that has gone by itself, or was replaced by another of the same name, is
/// as it should be. `what` says what cannot be done, if it cannot.
pub async fn delete<K>(
    objects: &Api<K>,
    name: &str,
    params: &DeleteParams,
    what: impl Into<String>,
) -> Result<(), RequestError>
where
    K: Clone + DeserializeOwned + Debug,
{
    let what = what.into();
    let meant = params.preconditions.as_ref().and_then(|only| only.uid.as_ref());
    for attempt in 1.. {
        match objects.delete(name, params).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {
                let there = objects.get_metadata_opt(name).await;
                let there = there.map_err(RequestError::because(what.clone()))?;
                if there.and_then(|there| there.metadata.uid).as_ref() != meant {
                    return Ok(());
                }
            }
            Err(error) => return Err(RequestError::because(what)(error)),
        }
    }
    unreachable!("the loop ends by returning")
}

#[cfg(test)]
mod tests {
    use http::Method;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::*;
    use crate::scripted::{self, Answer};

    /// Whether it ends well if the object has this uid, and deletion meets so many conflicts.
    async fn ends_well(uid: Option<&'static str>, conflicts: usize) -> bool {
        let mut left = conflicts;
        let client = scripted::client(move |asked| {
            if asked.method == Method::GET {
                return match uid {
                    Some(uid) => Answer::Object(json!({ "metadata": { "name": "a", "uid": uid } })),
                    None => Answer::refused(404, "not found"),
                };
            }
            match left.checked_sub(1) {
                Some(fewer) => left = fewer,
                None => return Answer::Object(json!({ "kind": "Status", "status": "Success" })),
            }
            Answer::refused(409, "conflict")
        });
        let secrets: Api<Secret> = Api::namespaced(client, "default");
        delete(&secrets, "a", &only(Some("1".to_owned())), "no").await.is_ok()
    }

    #[tokio::test]
    async fn a_conflict_is_the_end_only_if_the_object_is_another_one() {
        assert!(ends_well(Some("1"), 0).await);
        assert!(ends_well(Some("1"), 2).await);
        assert!(!ends_well(Some("1"), 3).await, "what is left is not passed over");
        assert!(ends_well(Some("2"), 9).await);
        assert!(ends_well(None, 9).await);
    }
}
