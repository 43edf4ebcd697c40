//! Finding some Applications among all.

use kube::Api;
use kube::api::ListParams;

use super::Application;
use tiphys_cluster::RequestError;

/// As many are in memory at once, however many there are.
const PAGE: u32 = 100;

/// The Applications that somebody wants.
pub async fn list(
    applications: &Api<Application>,
    mut wanted: impl FnMut(&Application) -> bool,
) -> Result<Vec<Application>, RequestError> {
    let mut found = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let listed = applications.list(&page).await;
        let listed = listed.map_err(RequestError::because("the Applications cannot be listed"))?;
        found.extend(listed.items.into_iter().filter(&mut wanted));
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}
