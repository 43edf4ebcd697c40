//! Children that the root app pins to its own commit.

use std::sync::Arc;
use std::time::Duration;

use tiphys_argocd::AppAddress;
use tiphys_e2e::{Site, World, operation};
use tiphys_lab::repository::{AppSource, Behaviour};

pub(crate) async fn an_app_syncs_from_git(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-git").await;
    site.platform.apps =
        vec![AppSource::new("fact-git-app", Behaviour::Healthy { after: Duration::from_secs(1) })];
    let revision = site.commit("one app");
    site.configure().await;
    site.create_application("fact-git-app", "main", false).await;
    site.sync("fact-git-app", "", 1).await.expect("the sync is taken");
    let application = site.until_healthy("fact-git-app").await;
    assert_eq!(application.status.sync.revision, revision.as_str());
    let seen = application.observe().expect("it can be read");
    let id = operation("fact-git-app", 1);
    assert_eq!(seen.last.expect("an operation").operation.id, Some(id), "our id comes back");
    site.close().await;
}

pub(crate) async fn children_ignore_a_new_commit(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-pin").await;
    site.platform.apps = vec![
        AppSource::new("fact-pin-a", Behaviour::ConfigOnly),
        AppSource::new("fact-pin-b", Behaviour::ConfigOnly),
    ];
    let first = site.commit("two apps");
    site.configure().await;
    site.hold(&["*"]).await;
    site.sync_root(1).await;
    for app in ["fact-pin-a", "fact-pin-b"] {
        let child = site.until(app, "there", |_| true).await;
        assert_eq!(child.spec.source["targetRevision"], first.as_str(), "rendered by the chart");
        assert!(child.automated().is_some());
        // Automated sync is on, and the API accepts the pinned SHA all the same.
        site.sync(app, first.as_str(), 1).await.expect("the sync is taken");
        site.until_healthy(app).await;
    }
    site.hold(&[]).await;

    for app in &mut site.platform.apps {
        app.generation = 2;
    }
    let second = site.commit("both apps changed");
    let refreshed = async |app: &str, project: &str| {
        world.argocd.refresh(&AppAddress::own(app, project)).await.expect("a refresh")
    };
    let root = refreshed(&site.platform.root_name(), &site.platform.root_project).await;
    assert_eq!(root.status.sync.status, "OutOfSync", "the root app sees the new commit");
    assert_eq!(root.status.sync.revision, second.as_str());
    for app in ["fact-pin-a", "fact-pin-b"] {
        let child = refreshed(app, &site.platform.project).await;
        assert_eq!(child.status.sync.status, "Synced", "{app} does not");
        assert_eq!(child.status.sync.revision, first.as_str());
    }

    site.sync_root(2).await;
    for app in ["fact-pin-a", "fact-pin-b"] {
        let child = site
            .until(app, "at the new commit", |child| child.status.sync.revision == second.as_str())
            .await;
        assert_eq!(child.spec.source["targetRevision"], second.as_str());
    }
    site.close().await;
}
