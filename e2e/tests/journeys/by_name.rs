//! Runs that take the platform file from Git, through the root app.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::configure;

/// What the program has said: its code, stdout and stderr.
async fn run(world: &World, args: &[&str]) -> (Option<i32>, String, String) {
    tiphys::said(&tiphys::run(args, &world.kubeconfig).await)
}

/// The apps that a run of the platform has applied.
async fn applied(world: &World) -> BTreeSet<String> {
    let (code, stdout, stderr) =
        run(world, &["deploy", "--platform", "named", "-o", "jsonl"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let events = stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let applied = events.filter(|event| event["how"] == "applied");
    applied.filter_map(|event| event["app"].as_str().map(str::to_owned)).collect()
}

pub(crate) async fn takes_what_git_has(world: Arc<World>) {
    let mut site = Site::new(&world, "named").await;
    site.platform.apps = vec![AppSource::new("named-db", Behaviour::ConfigOnly)];
    site.commit("without the platform file");
    let file = site.platform_file();
    configure(&world, &file).await;
    let (code, _, stderr) = run(&world, &["deploy", "--platform", "named"]).await;
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("tiphys.dev/platform-file: named"), "{stderr}");

    site.platform.carries_its_file = true;
    site.commit("with it");
    assert_eq!(applied(&world).await, ["named-db".to_owned()].into());
    let root = site.application("named-root").await;
    let root = serde_json::to_value(&root.status).expect("JSON");
    assert_eq!(
        root["sync"]["status"], "Synced",
        "the skipped ConfigMap does not count as drift: {root}"
    );

    // Git moves on; nobody has a file.
    let after = Duration::from_secs(1);
    site.platform.apps = vec![
        AppSource::new("named-db", Behaviour::ConfigOnly).depends_on(&["named-new"]),
        AppSource::new("named-new", Behaviour::Healthy { after }),
    ];
    let revision = site.commit("an app more");
    assert_eq!(applied(&world).await, ["named-new".to_owned()].into());
    let (code, stdout, stderr) = run(&world, &["plan", "--platform", "named", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains(&revision.to_string()), "{stderr}");
    let newest = site.platform_file();
    let (_, local, _) = run(&world, &["plan", "-f", newest.path(), "-o", "json"]).await;
    assert_eq!(stdout, local, "the same plan, byte for byte");

    // The first file is not what Git has any more; a copy of the newest is, wherever it lies.
    let (code, _, stderr) = run(&world, &["deploy", "-f", file.path()]).await;
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("differs from Git"), "{stderr}");
    let (code, _, stderr) = run(&world, &["deploy", "-f", newest.path()]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let (code, _, stderr) = run(&world, &["deploy", "--platform", "nobody"]).await;
    assert_eq!(code, Some(5), "{stderr}");
    site.close().await;
}
