//! What an app's health says of resources that are not there.

use std::sync::Arc;

use kube::api::DeleteParams;
use tiphys_assess::preflight::Version;
use tiphys_e2e::{Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};

/// From here on, what is missing does not count as long as anything is there.
const IGNORED_SINCE: Version = Version::new(3, 4, 0);

/// Argo CD has a health check for Services and none for ConfigMaps.
const MANIFESTS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: { name: stays }
---
apiVersion: v1
kind: Service
metadata: { name: goes }
spec: { ports: [{ port: 80 }], selector: { app: nobody } }
";

pub(crate) async fn only_sync_status_tells(world: Arc<World>) {
    let said = world.argocd.version().await.expect("Argo CD tells its version");
    let version = Version::find(&said).unwrap_or_else(|| unreachable!("no version in {said}"));
    let mut site = Site::new(&world, "fact-missing").await;
    let app = "fact-missing-app";
    let manifests = MANIFESTS.to_owned();
    site.platform.apps = vec![AppSource::new(app, Behaviour::Resource { manifests })];
    site.commit("two resources");
    site.configure().await;
    site.create_application(app, "main", false).await;
    site.sync(app, "", 1).await.expect("the sync is taken");
    site.until_healthy(app).await;

    let services = site.objects("v1", "Service", Some(&site.platform.namespace(app)));
    services.delete("goes", &DeleteParams::default()).await.expect("it can be deleted");
    let application = site.until(app, "out of sync", |a| a.status.sync.status == "OutOfSync").await;
    let expected = if version < IGNORED_SINCE { "Missing" } else { "Healthy" };
    assert_eq!(application.status.health.status, expected, "Argo CD {version}");
    site.close().await;
}
