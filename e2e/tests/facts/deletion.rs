//! Removing what does not want to go.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tiphys_argocd::AppAddress;
use tiphys_e2e::{Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};

pub(crate) async fn a_stuck_finalizer_holds(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-stuck").await;
    let app = "fact-stuck-app";
    site.platform.apps = vec![AppSource::new(app, Behaviour::HoldsFinalizer)];
    site.commit("an app that holds a finalizer");
    site.configure().await;
    site.create_application(app, "main", false).await;
    site.sync(app, "", 1).await.expect("the sync is taken");
    site.until_healthy(app).await;

    world
        .argocd
        .delete(&AppAddress::own(app, &site.platform.project))
        .await
        .expect("the deletion is taken");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let seen = site.application(app).await.observe().expect("it can be read");
    let deleting = seen.deleting.expect("it is being deleted");
    let waits = deleting.finalizers.iter().any(|f| f.starts_with("resources-finalizer.argocd"));
    assert!(waits, "{:?}", deleting.finalizers);
    let maps = site.objects("v1", "ConfigMap", Some(&site.platform.namespace(app)));
    let map = maps.get(app).await.expect("what blocks it is still there");
    assert!(map.metadata.deletion_timestamp.is_some());
    assert_eq!(map.metadata.finalizers.as_deref(), Some(&["lab.tiphys.dev/held".to_owned()][..]));

    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch(app, &PatchParams::default(), &free).await.expect("the finalizer can be removed");
    site.until_gone(app).await;
    site.close().await;
}
