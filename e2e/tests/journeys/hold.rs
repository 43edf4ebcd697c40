//! What others do to the sync windows of a project while a run goes on.

use std::process::{Child, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::{PlatformFile, Site, World, tiphys, until};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::Mark;
use crate::deploy::{configure, deploy};
use crate::resume::start;

/// Who meddles.
const MANAGER: &str = "somebody";

/// An app that takes its time, and two that wait for it.
async fn site(world: &Arc<World>, name: &str, after: Duration) -> (Site, PlatformFile, String) {
    let mut site = Site::new(world, name).await;
    let app = |app: &str, behaviour| AppSource::new(&format!("{name}-{app}"), behaviour);
    site.platform.apps = vec![
        app("first", Behaviour::Healthy { after }),
        app("second", Behaviour::ConfigOnly).depends_on(&[&format!("{name}-first")]),
        app("third", Behaviour::ConfigOnly).depends_on(&[&format!("{name}-second")]),
    ];
    let revision = site.commit("an app that takes its time").to_string();
    let file = site.platform_file();
    configure(world, &file).await;
    (site, file, revision)
}

async fn windows(site: &Site) -> Vec<Value> {
    let projects = site.objects("argoproj.io/v1alpha1", "AppProject", Some("argocd"));
    let project = projects.get(&site.platform.project).await.expect("the project can be read");
    project.data["spec"]["syncWindows"].as_array().cloned().unwrap_or_default()
}

async fn set_windows(site: &Site, windows: Value) {
    let projects = site.objects("argoproj.io/v1alpha1", "AppProject", Some("argocd"));
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({ "spec": { "syncWindows": windows } }));
    let patched = projects.patch(&site.platform.project, &params, &patch).await;
    patched.expect("the project can be changed");
}

async fn is_held(site: &Site) -> bool {
    !site.world.held(&site.platform.project).await.is_empty()
}

async fn end(run: Child) -> Output {
    let ended = tokio::task::spawn_blocking(|| run.wait_with_output()).await;
    ended.expect("nobody cancels it").expect("it ends")
}

pub(crate) async fn that_is_removed_is_set_again(world: Arc<World>) {
    let (site, file, revision) = site(&world, "again", Duration::from_secs(15)).await;
    let before = Mark::now(&world);
    let run = start(&world, &file);
    let synced =
        |application: &tiphys_argocd::Application| application.status.operation_state.is_some();
    site.until("again-first", "being synced", synced).await;
    assert!(is_held(&site).await);
    set_windows(&site, json!([])).await;
    let removed = Instant::now();
    until("the hold is set again", || is_held(&site)).await;
    assert!(removed.elapsed() < Duration::from_secs(10), "after {:?}", removed.elapsed());

    let (code, stdout, stderr) = tiphys::said(&end(run).await);
    assert_eq!(code, Some(0), "{stderr}\n{stdout}");
    let told = format!("removed by the field manager `{MANAGER}`");
    assert_eq!(stderr.matches(&told).count(), 1, "{stderr}");
    let writes = before.writes(&site);
    writes.check_order(&site, &revision);
    for app in ["again-second", "again-third"] {
        assert_eq!(writes.automated(app), [], "{app} was not synced by Argo CD");
    }
    assert!(!is_held(&site).await, "everything was handed off");
    site.close().await;
}

pub(crate) async fn that_is_removed_each_time_ends_the_run(world: Arc<World>) {
    let (site, file, _) = site(&world, "thrice", Duration::from_secs(60)).await;
    let run = start(&world, &file);
    for _ in 0..4 {
        until("the apps are held", || is_held(&site)).await;
        // Argo CD gets to see it, and so does the run.
        tokio::time::sleep(Duration::from_secs(3)).await;
        set_windows(&site, json!([])).await;
    }
    let (code, stdout, stderr) = tiphys::said(&end(run).await);
    assert_eq!(code, Some(8), "{stderr}\n{stdout}");
    assert!(stderr.contains("keeps changing the hold"), "{stderr}");
    assert_eq!(stderr.matches(&format!("`{MANAGER}`")).count(), 4, "{stderr}");
    assert!(!is_held(&site).await, "it is not set a fourth time");
    // Left in peace, the same command goes on from there.
    deploy(&world, &file, 0).await;
    site.close().await;
}

/// An allow window that is not open would not keep Argo CD from a manual sync while we hold.
pub(crate) async fn leaves_freezes_of_others(world: Arc<World>) {
    let (site, file, _) = site(&world, "freeze", Duration::from_secs(1)).await;
    let closed = json!({
        "kind": "allow", "schedule": "* * * * *", "duration": "0s",
        "applications": ["freeze-second"], "description": "never",
    });
    set_windows(&site, json!([closed])).await;
    let run = start(&world, &file);
    site.until_healthy("freeze-first").await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let frozen = site.application("freeze-second").await;
    assert!(frozen.status.operation_state.is_none(), "it is not synced");
    let all = windows(&site).await;
    assert_eq!(all.first(), Some(&closed), "it stays as it is");
    set_windows(&site, json!(all[1..])).await;

    let (code, stdout, stderr) = tiphys::said(&end(run).await);
    assert_eq!(code, Some(0), "{stderr}\n{stdout}");
    assert!(stderr.contains("`freeze-second` waits to be synced"), "{stderr}");
    assert!(stderr.contains("(never) is not open"), "{stderr}");
    assert!(!stderr.contains(MANAGER), "taking a freeze away is no change of ours: {stderr}");
    site.close().await;
}
