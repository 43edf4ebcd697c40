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
    match objects.delete(name, params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        Err(error) => Err(RequestError::because(what)(error)),
    }
}
