//! Automated operations that the hold of a killed run has frozen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tiphys_argocd::{AppAddress, Application};
use tiphys_e2e::{PlatformFile, Site, World, figure, until};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::{configure, deploy};
use crate::resume::start;
use crate::teardown::teardown;

const FIRST: &str = "froze-first";
const APP: &str = "froze-app";
/// A dead run's Lease takes half a minute of it.
const LIMIT: Duration = Duration::from_secs(120);

/// The next deployment and the next teardown end it, where both waited for ever.
pub(crate) async fn is_freed(world: Arc<World>) {
    let mut site = Site::new(&world, "froze").await;
    site.platform.apps = vec![
        AppSource::new(FIRST, Behaviour::Healthy { after: Duration::from_secs(5) }),
        AppSource::new(APP, Behaviour::ConfigOnly).depends_on(&[FIRST]),
    ];
    site.commit("an app that will be frozen");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;

    freeze(&mut site, &file, 2).await;
    let began = Instant::now();
    deploy(&world, &file, 0).await;
    let deployed = began.elapsed();
    assert!(deployed < LIMIT, "{deployed:?}");
    assert!(world.held(&site.platform.project).await.is_empty(), "everything was handed off");
    assert!(site.application(APP).await.operation.is_none(), "nothing is under way");

    freeze(&mut site, &file, 3).await;
    let began = Instant::now();
    teardown(&world, &file, &[], 0).await;
    let torn_down = began.elapsed();
    assert!(torn_down < LIMIT, "{torn_down:?}");
    site.until_gone(APP).await;
    figure(&format!(
        "with a frozen operation a deployment took {:.0} s, a teardown {:.0} s",
        deployed.as_secs_f64(),
        torn_down.as_secs_f64()
    ));
    site.close().await;
}

/// A run is killed when it holds the apps, and Argo CD had decided to sync one a moment earlier.
async fn freeze(site: &mut Site, file: &PlatformFile, generation: u32) {
    for app in [FIRST, APP] {
        site.platform.app_mut(app).expect("an app").generation = generation;
    }
    site.commit("a change");
    let (world, project) = (site.world.clone(), site.platform.project.clone());
    let mut run = start(&world, file);
    until("the app is held", || async { world.held(&project).await.contains(APP) }).await;
    run.kill().expect("the run can be killed");
    run.wait().expect("it has ended");
    // The controller has to have seen the window.
    tokio::time::sleep(Duration::from_secs(2)).await;

    let source = site.application(APP).await.spec.source;
    let sync =
        json!({ "revision": source["targetRevision"], "syncOptions": ["CreateNamespace=true"] });
    // As Argo CD writes it.
    let operation = json!({
        "operation": { "initiatedBy": { "automated": true }, "sync": sync },
        "status": { "operationState": null },
    });
    let patch = Patch::Merge(operation);
    site.applications().patch(APP, &PatchParams::default(), &patch).await.expect("an operation");
    let blocked = |application: &Application| {
        let state = application.status.operation_state.as_ref();
        state.is_some_and(|state| state.message.contains("blocked by sync window"))
    };
    site.until(APP, "blocked", blocked).await;
    // Somebody tries what the user interface offers.
    world.argocd.terminate(&AppAddress::own(APP, &project)).await.expect("it is under way");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(site.application(APP).await.operation.is_some(), "it is frozen");
}
