//! Finding some Applications among all.

use std::fmt::Debug;

use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use tiphys_cluster::RequestError;

/// As many are in memory at once, however many there are.
const PAGE: u32 = 100;

/// The Applications that somebody wants, with as many of their fields as `K` has.
pub async fn list<K: Clone + Debug + DeserializeOwned>(
    applications: &Api<K>,
    mut wanted: impl FnMut(&K) -> bool,
) -> Result<Vec<K>, RequestError> {
    let mut found = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let listed = applications.list(&page).await;
        let listed = listed.map_err(RequestError::because("cannot list the Applications"))?;
        found.extend(listed.items.into_iter().filter(&mut wanted));
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}
