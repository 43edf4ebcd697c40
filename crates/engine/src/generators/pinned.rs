//! Whether apps are pinned: an app of the platform's own repository should be at the commit that
//! the root app was synced at, and at no other until the next run.

use serde_json::Value;
use tiphys_run::Revisions;

use tiphys_argocd::application::Application;

/// What an app of the repository follows instead of the run's revision.
pub(super) fn moving(
    application: &Application,
    repository: &str,
    revisions: &Revisions,
) -> Option<String> {
    let is_own =
        |source: &&Value| is_same(source["repoURL"].as_str().unwrap_or_default(), repository);
    let mut own = application.sources().filter(is_own);
    own.find_map(|source| {
        let target = source["targetRevision"].as_str().unwrap_or_default();
        let pinned = revisions.0.iter().any(|revision| **revision == *target);
        let target = if target.is_empty() { "HEAD" } else { target };
        (!pinned && !is_chart(source)).then(|| target.to_owned())
    })
}

/// A chart by its version is pinned already.
fn is_chart(source: &Value) -> bool {
    source["chart"].as_str().is_some_and(|chart| !chart.is_empty())
}

/// Git servers take a URL with and without its ending.
fn is_same(one: &str, other: &str) -> bool {
    let bare = |url: &str| {
        let url = url.trim_end_matches('/');
        url.strip_suffix(".git").unwrap_or(url).to_ascii_lowercase()
    };
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn follows(spec: &Value) -> Option<String> {
        let value = json!({ "metadata": { "name": "vault" }, "spec": spec });
        let application: Application = serde_json::from_value(value).unwrap();
        let revisions = Revisions(["abc".into()].into());
        moving(&application, "https://git.example/Platform.git", &revisions)
    }

    #[test]
    fn an_app_of_the_repository_has_the_runs_revision_or_is_named() {
        let source = |url: &str, target: Value| json!({ "source": { "repoURL": url, "targetRevision": target } });
        assert_eq!(follows(&source("https://git.example/platform", json!("abc"))), None);
        assert_eq!(
            follows(&source("https://git.example/platform/", json!("main"))).as_deref(),
            Some("main")
        );
        assert_eq!(
            follows(&source("https://git.example/platform.git", Value::Null)).as_deref(),
            Some("HEAD")
        );
        assert_eq!(follows(&source("https://git.example/another.git", json!("main"))), None);
    }

    #[test]
    fn each_of_several_sources_counts_and_charts_are_pinned_by_their_version() {
        let sources = json!({ "sources": [
            { "repoURL": "https://charts.example", "chart": "vault", "targetRevision": "1.2.3" },
            { "repoURL": "https://git.example/platform.git", "targetRevision": "main", "ref": "values" },
        ] });
        assert_eq!(follows(&sources).as_deref(), Some("main"));
        let chart = json!({ "source": {
            "repoURL": "https://git.example/platform.git", "chart": "c", "targetRevision": "1.2.3",
        } });
        assert_eq!(follows(&chart), None);
    }
}
