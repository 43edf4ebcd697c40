//! Sync windows of others, and others who change ours.

use super::*;
use crate::testkit::argocd::PROJECT;

/// Lets `b` be synced at no time.
fn closed() -> Value {
    json!({
        "kind": "allow", "schedule": "* * * * *", "duration": "0", "applications": ["b"],
        "description": "freeze",
    })
}

/// Leaves the windows of the project for which this is true.
fn keep_windows(server: &Server, keep: impl Fn(&Value) -> bool) {
    server.change(|objects| {
        let mut project = objects.get(PROJECT).unwrap();
        let windows = project["spec"]["syncWindows"].as_array().cloned().unwrap_or_default();
        project["spec"]["syncWindows"] = windows.into_iter().filter(&keep).collect();
        objects.put(PROJECT, project);
    });
}

fn is_synced(server: &Server, app: &str) -> bool {
    server.get(&application(app)).unwrap()["status"]["sync"]["status"] == "Synced"
}

/// Longer than its sync may take: that counts from when it may begin.
#[tokio::test(start_paused = true)]
async fn a_sync_waits_until_windows_of_others_let_it_through() {
    let server = server();
    server.put(PROJECT, json!({ "spec": { "syncWindows": [closed()] } }));
    let thaws = async {
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert!(is_synced(&server, "a") && !is_synced(&server, "b"));
        keep_windows(&server, |window| window["description"] != "freeze");
    };
    let platform = "{ name: b, dependsOn: [a], timeouts: { sync: 20s, health: 5m } }";
    let run = run_platform(&server, Action::Deploy, testkit::platform_with(platform));
    let (ended, ()) = tokio::join!(run, thaws);
    assert_eq!(ended.verdict.unwrap(), Verdict::Succeeded);
    assert!(ended.took < Duration::from_secs(210), "{:?}", ended.took);
    assert_eq!(ended.warnings.len(), 1, "{:?}", ended.warnings);
    let told =
        "`b` waits to be synced: the sync window `allow * * * * *` for 0 (freeze) is not open";
    assert_eq!(ended.warnings[0], told);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_hold_is_removed_again_and_again_ends() {
    let server = server();
    // Something to wait for.
    server.put(PROJECT, json!({ "spec": { "syncWindows": [closed()] } }));
    let meddles = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(5)).await;
            keep_windows(&server, |window| window["description"] == "freeze");
        }
    };
    let (ended, ()) = tokio::join!(run(&server, Action::Deploy), meddles);
    assert!(ended.took < Duration::from_secs(25), "{:?}", ended.took);
    let again = ended.warnings.iter().filter(|warning| warning.contains("set it again"));
    assert_eq!(again.count(), 3, "{:?}", ended.warnings);
    assert_eq!(ended.exit(), Exit::Held);
}

/// Whose project cannot be read does not know what others forbid.
#[tokio::test(start_paused = true)]
async fn nothing_is_synced_while_windows_cannot_be_read() {
    let server = server();
    for _ in 0..1000 {
        let read = in_run(Method::GET, "appprojects/apps");
        server.next_where(read, Answer::refused(500, "no"));
    }
    let ended = run(&server, Action::Deploy).await;
    assert!(!is_synced(&server, "a"));
    assert_eq!(ended.exit(), Exit::Failed);
}
