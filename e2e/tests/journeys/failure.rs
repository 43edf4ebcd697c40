//! Apps that fail, each in its own way: what depends on them is skipped, the rest is deployed,
//! and after a repair only what is left is synced.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_e2e::{Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::{Retry, Timeouts};

use crate::audit::Mark;
use crate::deploy::{configure, deploy};

/// Name, behaviour, and how the cause begins.
fn ways() -> [(&'static str, Behaviour, &'static str); 5] {
    [
        (
            "never",
            Behaviour::NeverHealthy,
            "not Healthy before the health timeout: it is Progressing",
        ),
        ("degraded", Behaviour::Degrades { after: Duration::from_secs(1) }, "it is Degraded"),
        ("refused", Behaviour::FailsToSync, "the sync failed: one or more objects failed to apply"),
        ("broken", Behaviour::InvalidManifest, "Argo CD cannot compare it with its source"),
        ("drifting", Behaviour::StaysOutOfSync, "still OutOfSync after the sync: Deployment/"),
    ]
}

fn app(name: &str, behaviour: Behaviour) -> AppSource {
    let mut app = AppSource::new(&format!("fail-{name}"), behaviour);
    let health = Duration::from_secs(if name == "never" { 20 } else { 200 });
    app.timeouts = Some(Timeouts { sync: Duration::from_secs(200), health });
    app.retry = Some(Retry { limit: 0, ..Retry::default() });
    app
}

pub(crate) async fn in_every_way(world: Arc<World>) {
    let mut site = Site::new(&world, "fail").await;
    let mut apps = vec![app("base", Behaviour::ConfigOnly)];
    for (name, behaviour, _) in ways() {
        apps.push(app(name, behaviour).depends_on(&["fail-base"]));
        let after = app(&format!("after-{name}"), Behaviour::ConfigOnly);
        apps.push(after.depends_on(&[&format!("fail-{name}")]));
    }
    apps.push(app("fine", Behaviour::ConfigOnly).depends_on(&["fail-base"]));
    site.platform.apps = apps;
    site.commit("many ways to fail");
    let file = site.platform_file();
    configure(&world, &file).await;
    let events = deploy(&world, &file, 1).await;

    let of = |kind: &str, app: &str| -> Value {
        let app = format!("fail-{app}");
        let found =
            events.iter().find(|event| event["kind"] == kind && event["app"] == app.as_str());
        found.cloned().unwrap_or_default()
    };
    let mut left = BTreeSet::new();
    for (name, _, cause) in ways() {
        let failed = of("step-failed", name);
        let found = failed["cause"].as_str().unwrap_or_default();
        assert!(found.starts_with(cause), "{name}: {failed}");
        assert!(!failed["hint"].as_str().unwrap_or_default().is_empty(), "{name}: {failed}");
        let skipped = of("step-skipped", &format!("after-{name}"));
        assert_eq!(skipped["because"][0], format!("fail-{name}").as_str(), "{skipped}");
        left.extend([format!("fail-{name}"), format!("fail-after-{name}")]);
    }
    assert_eq!(of("handed-off", "fine")["app"], "fail-fine");
    assert_eq!(world.held(&site.platform.project).await, left, "the rest stays held");

    for app in &mut site.platform.apps {
        app.behaviour = Behaviour::ConfigOnly;
    }
    site.commit("repaired");
    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    let synced: BTreeSet<String> = before.writes(&site).operations().into_keys().collect();
    assert_eq!(synced, left, "what had been done is not synced again");
    assert_eq!(world.held(&site.platform.project).await, BTreeSet::new(), "{events:#?}");
    site.close().await;
}
