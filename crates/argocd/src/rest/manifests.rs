//! What Argo CD makes of an Application's sources: the objects that a sync would apply.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use tiphys_run::Revisions;

use super::{CallError, RestClient};
use crate::address::AppAddress;

/// As long as Argo CD's API server itself waits for what renders. Who has less time gives up before.
const MANIFESTS_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Answer {
    /// Absent if there are none.
    #[serde(default)]
    manifests: Option<Vec<String>>,
}

impl RestClient {
    /// The objects that an Application renders at the revisions that it names, of all its sources.
    /// It takes the right to `get` the Application, and writes nothing: neither does it ask for a
    /// refresh. Argo CD has blanked the values of Secrets.
    pub async fn manifests(&self, app: &AppAddress) -> Result<Vec<Value>, CallError> {
        let path = self.path(app, "/manifests");
        self.render_manifests(&path).await
    }

    /// The same at other revisions, one for each source.
    pub async fn manifests_at(
        &self,
        app: &AppAddress,
        revisions: &Revisions,
    ) -> Result<Vec<Value>, CallError> {
        let path = format!("{}{}", self.path(app, "/manifests"), at(revisions));
        self.render_manifests(&path).await
    }

    async fn render_manifests(&self, path: &str) -> Result<Vec<Value>, CallError> {
        let answer: Answer = self.call(Method::GET, path, None::<&()>, MANIFESTS_TIMEOUT).await?;
        objects(&answer)
    }
}

/// As Argo CD's API is asked for revisions: sources are counted from one.
fn at(Revisions(revisions): &Revisions) -> String {
    match &**revisions {
        [one] => format!("&revision={one}"),
        several => (1..)
            .zip(several)
            .map(|(source, revision)| format!("&sourcePositions={source}&revisions={revision}"))
            .collect(),
    }
}

fn objects(answer: &Answer) -> Result<Vec<Value>, CallError> {
    let manifests = answer.manifests.iter().flatten();
    manifests
        .map(|text| serde_json::from_str(text).map_err(|error| CallError::unreadable(&error)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_source_is_asked_for_at_its_revision() {
        let revisions = |all: &[&str]| Revisions(all.iter().map(|one| (*one).into()).collect());
        assert_eq!(at(&revisions(&["abc"])), "&revision=abc");
        let both = "&sourcePositions=1&revisions=abc&sourcePositions=2&revisions=1.2.3";
        assert_eq!(at(&revisions(&["abc", "1.2.3"])), both);
    }

    #[test]
    fn each_manifest_is_an_object_in_a_string() {
        let read = |answer: Value| objects(&serde_json::from_value(answer).unwrap());
        let service = json!({ "apiVersion": "v1", "kind": "Service" });
        let answer = json!({ "manifests": [service.to_string()], "revision": "abc" });
        assert_eq!(read(answer), Ok(vec![service]));
        assert_eq!(read(json!({})), Ok(vec![]));
        assert_eq!(read(json!({ "manifests": null })), Ok(vec![]));
        let error = read(json!({ "manifests": ["{"] })).unwrap_err();
        assert!(error.to_string().starts_with("invalid response"), "{error}");
    }
}
