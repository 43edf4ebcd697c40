//! Two ways to ask for a sync.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tiphys_argocd::Application;
use tiphys_e2e::{Site, World, operation};
use tiphys_lab::repository::{AppSource, Behaviour};

pub(crate) async fn both_routes_sync(world: Arc<World>) {
    let mut site = Site::new(&world, "fact-route").await;
    let (api, field) = ("fact-route-api", "fact-route-field");
    site.platform.apps = vec![
        AppSource::new(api, Behaviour::ConfigOnly),
        AppSource::new(field, Behaviour::ConfigOnly),
    ];
    let revision = site.commit("two apps");
    site.configure().await;
    site.hold(&["*"]).await;
    site.create_application(api, revision.as_str(), true).await;
    site.create_application(field, revision.as_str(), true).await;

    let accepted = site.sync(api, revision.as_str(), 1).await.expect("the API takes it");
    assert!(accepted.operation.is_some() && accepted.status.operation_state.is_none());

    let id = operation(field, 1);
    let compared = site.until(field, "compared", |a| a.status.sync.status == "OutOfSync").await;
    let patch = json!({
        "metadata": { "resourceVersion": compared.metadata.resource_version },
        "operation": {
            "initiatedBy": { "username": "tiphys" },
            "info": [{ "name": "tiphys.dev/operation", "value": id.to_string() }],
            "retry": { "limit": 0 },
            "sync": { "revision": revision.as_str(), "prune": true, "syncOptions": ["CreateNamespace=true"] },
        },
        "status": { "operationState": null },
    });
    let applications = site.applications();
    let patched = applications.patch(field, &PatchParams::default(), &Patch::Merge(&patch)).await;
    let patched: Application = patched.expect("the field can be set");
    assert!(patched.operation.is_some());

    for (app, by) in [(api, "admin"), (field, "tiphys")] {
        let application = site.until_healthy(app).await;
        let last = application.observe().expect("it can be read").last.expect("an operation");
        assert_eq!(last.operation.id, Some(operation(app, 1)));
        assert_eq!(last.operation.by.to_string(), by);
        assert_eq!(last.revisions.to_string(), revision.as_str());
    }
    // The version in the patch is a guard: what has moved on is not overwritten.
    let stale = applications.patch(field, &PatchParams::default(), &Patch::Merge(&patch)).await;
    assert!(matches!(stale, Err(kube::Error::Api(status)) if status.code == 409));
    site.close().await;
}
