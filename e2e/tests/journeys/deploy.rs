//! The reference platform on a real cluster: order, again, and a change of a few apps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_e2e::{PlatformFile, Site, World, figure, tiphys};

use crate::audit::Mark;

pub(crate) async fn in_order(world: Arc<World>) {
    let mut site = Site::reference(&world, "order", Duration::from_secs(3)).await;
    let revision = site.commit("the reference platform");
    let file = site.platform_file();
    configure(&world, &file).await;

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    let finished = events.last().expect("events");
    assert_eq!(finished["counts"]["applied"], 43, "{finished}");
    let writes = before.writes(&site);
    writes.check_order(&site, revision.as_str());
    let operations = writes.operations();
    assert!(operations.len() == 43 && operations.values().all(|o| o.len() == 1), "each once");
    let most = writes.of_ours().into_values().max().unwrap_or_default();
    figure(&format!(
        "makespan {} ms, critical path {} ms, at most {most} writes of ours for an app",
        finished["makespanMs"], finished["criticalPathMs"]
    ));
    assert!(world.held(&site.platform.project).await.is_empty(), "everything was handed off");

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    let finished = events.last().expect("events");
    assert_eq!(finished["counts"]["alreadyCurrent"], 43, "{finished}");
    assert_eq!(before.writes(&site).operations(), BTreeMap::new(), "nothing is synced again");

    let changed = ["order-vault", "order-keycloak", "order-loki"];
    for app in changed {
        site.platform.app_mut(app).expect("an app").generation = 2;
    }
    let revision = site.commit("three apps changed");
    let before = Mark::now(&world);
    deploy(&world, &file, 0).await;
    let writes = before.writes(&site);
    let synced: BTreeSet<String> = writes.operations().into_keys().collect();
    assert_eq!(synced, changed.map(str::to_owned).into());
    writes.check_order(&site, revision.as_str());
    site.close().await;
}

pub(crate) async fn configure(world: &World, file: &PlatformFile) {
    let output = tiphys::run(&["configure", "-f", file.path()], &world.kubeconfig).await;
    let (code, _, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stderr}");
}

/// The arguments of a deployment whose platform file lies in no clone.
pub(crate) fn arguments(file: &PlatformFile) -> [&str; 6] {
    ["deploy", "-f", file.path(), "--allow-uncommitted", "-o", "jsonl"]
}

/// Deploys, and returns the events.
pub(crate) async fn deploy(world: &World, file: &PlatformFile, expected: i32) -> Vec<Value> {
    let output = tiphys::run(&arguments(file), &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(expected), "{stderr}\n{stdout}");
    stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
