//! Runs whose output cannot be written: they end as they would have, and say what is missing.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_e2e::{PlatformFile, Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::configure;

const FULL: &str = "No space left on device (os error 28)";
const LEASE: &str = "tiphys-full";

pub(crate) async fn on_a_full_disk(world: Arc<World>) {
    let mut site = Site::new(&world, "full").await;
    site.platform.apps = vec![
        AppSource::new("full-a", Behaviour::Healthy { after: Duration::from_secs(1) }),
        AppSource::new("full-b", Behaviour::ConfigOnly).depends_on(&["full-a"]),
    ];
    site.commit("two apps");
    let file = site.platform_file();
    configure(&world, &file).await;

    let deploy = ["deploy", "--allow-uncommitted"];
    let said = ended(&world, &file, &deploy, &["--events", "/dev/full"], 0).await;
    assert!(said.contains(&format!("lines were not written to /dev/full: {FULL}")), "{said}");
    assert!(said.contains(&format!("lines were not written to stdout: {FULL}")), "{said}");
    for app in ["full-a", "full-b"] {
        let status = site.application(app).await.status;
        assert_eq!((&*status.health.status, &*status.sync.status), ("Healthy", "Synced"), "{app}");
    }
    assert_eq!(world.held(&site.platform.project).await, [].into(), "everything was handed off");
    assert_eq!(holder(&site).await, None);

    // Whoever reads half a log must not take it for a whole one; the file has the whole one.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events");
    let events = ["-o", "jsonl", "--events", path.to_str().expect("a plain name")];
    let said = ended(&world, &file, &deploy, &events, 1).await;
    let log = log(&path);
    assert_eq!(log.last().expect("a line")["counts"]["alreadyCurrent"], 2);
    let missing = format!("{} lines were not written to stdout: {FULL}", log.len());
    assert!(said.contains(&missing) && !said.contains("written to /"), "{said}");
    assert_eq!(holder(&site).await, None);

    let said = ended(&world, &file, &["teardown", "--yes"], &["--events", "/dev/full"], 0).await;
    assert!(said.contains(&format!("lines were not written to /dev/full: {FULL}")), "{said}");
    let leases = site.objects("coordination.k8s.io/v1", "Lease", Some("argocd"));
    assert!(leases.get_opt(LEASE).await.expect("it can be asked for").is_none());
    site.close().await;
}

/// What an action has said on stderr, with a full disk as stdout.
async fn ended(
    world: &World,
    file: &PlatformFile,
    action: &[&str],
    flags: &[&str],
    code: i32,
) -> String {
    let args = [action, &["-f", file.path()], flags].concat();
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let mut command = tiphys::command(&args, &world.kubeconfig);
    command.stdout(full).stderr(Stdio::piped());
    let run = move || command.output().expect("the program can be started");
    let output = tokio::task::spawn_blocking(run).await.expect("nobody cancels it");
    let (found, _, stderr) = tiphys::said(&output);
    assert_eq!(found, Some(code), "{stderr}");
    stderr
}

fn log(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the events");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Who holds the platform.
async fn holder(site: &Site) -> Option<String> {
    let leases = site.objects("coordination.k8s.io/v1", "Lease", Some("argocd"));
    let lease = leases.get(LEASE).await.expect("a Lease");
    let holder = lease.data["spec"]["holderIdentity"].as_str().map(str::to_owned);
    holder.filter(|holder| !holder.is_empty())
}
